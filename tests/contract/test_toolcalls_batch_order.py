"""The calls of one reply take effect in the order given (S6)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.rehearsing import Rehearse, calls, every_call_has_one_result, says
from tests.contract.toolcalls import Desk, request, run, soon, stored, until

from punchlist.agent.continuation import Reason
from punchlist.errors import InvalidInput
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import CallReturn
from punchlist.storage.store import Store
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import ToolCallRequest
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import Effect, Resources
from punchlist.tools.function_tool import tool

pytestmark = pytest.mark.spec("S6")


@pytest.mark.spec("S4")
def test_a_call_is_judged_again_after_the_calls_before_it(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    """The first call puts a link where the rule allows to write."""
    settings = Path(environment["HOME"], ".config/punchlist/punchlist.toml")
    settings.parent.mkdir(parents=True)
    settings.write_text(
        '[[policy.rules]]\ndecision = "allow"\ntool = "run_command"\n'
        '[[policy.rules]]\ndecision = "allow"\ntool = "write_file"\narguments = { path = "docs/*" }\n'
    )
    for folder in ("docs", "src"):
        (project / folder).mkdir()
    script = """
        - calls:
          - {tool: run_command, arguments: {command: "ln -s ../src docs/sub"}}
          - {tool: write_file, arguments: {path: docs/sub/y, content: x}}
        - Done.
    """
    (project / "links.yaml").write_text(textwrap.dedent(script))
    done = punchlist("run", "Do it.", "--model", f"rehearsal:{project / 'links.yaml'}", "--json")
    assert (project / "docs/sub").is_symlink(), done.stderr
    assert not (project / "src/y").exists()
    calls = json.loads(punchlist("tools", "history", "--json").stdout)
    assert {call["tool"]: call.get("error", {}).get("code") for call in calls} == {
        "run_command": None,
        "write_file": "changed",
    }


class Steps:
    """Writers that note when they begin and end; each waits until all that could overlap with it has begun."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def _step(self, name: str) -> str:
        self.log.append(f"{name}>")
        for _ in range(5):
            await asyncio.sleep(0)
        self.log.append(f"<{name}")
        return name

    def tools(self) -> list[Any]:
        @tool
        async def change(name: str) -> str:
            """Change something, and say nothing of what."""
            return await self._step(name)

        @tool(effect=Effect.LIST)
        async def note(name: str) -> str:
            return await self._step(name)

        @tool(effect=Effect.EDIT, resources=lambda name: Resources(writes=frozenset({name[0]})))
        async def put(name: str) -> str:
            return await self._step(name)

        @tool(effect=Effect.READ, resources=lambda name: Resources(reads=frozenset({name[0]})))
        async def get(name: str) -> str:
            return await self._step(name)

        @tool(effect=Effect.READ)
        async def look_around(name: str) -> str:
            return await self._step(name)

        return [change, note, put, get, look_around]


def batch(text: str) -> list[ToolCallRequest]:
    """`change a, get b` as requests."""
    pairs = [part.split() for part in text.split(",")]
    return [request(name, {"name": value}, f"c{number}") for number, (name, value) in enumerate(pairs)]


def overlaps(log: list[str]) -> set[str]:
    """The pairs that ran at the same time."""
    running: list[str] = []
    found = set()
    for entry in log:
        if entry.startswith("<"):
            running.remove(entry[1:])
        else:
            found |= {f"{other}{entry[:-1]}" for other in running}
            running.append(entry[:-1])
    return found


@pytest.mark.parametrize(
    ("text", "together"),
    [
        ("change a, change b, change c", ""),
        ("note a, note b", ""),
        ("change a, look_around b, look_around c", "bc"),
        ("look_around a, look_around b, change c, look_around d", "ab"),
        ("look_around a, note b", ""),
        ("put a, put b, put a2", "ab"),
        ("put a, get a2, get b", "ab"),
        ("get a, put a2, put b", "ab"),
        ("put a, look_around b", ""),
        ("look_around a, put b", ""),
        ("put a, change b, put c", ""),
        ("get a, get b, look_around c", "ab ac bc"),
    ],
)
def test_what_could_conflict_runs_in_order_and_the_rest_overlaps(store: Store, text: str, together: str) -> None:
    async def scene() -> None:
        steps = Steps()
        async with Desk(store, tools=steps.tools()) as desk:
            done = await desk.do(*batch(text))
            assert {call.status for call in done} == {CallStatus.SUCCESS}
        began = [entry[:-1] for entry in steps.log if entry.endswith(">")]
        if not together:
            assert began == [part.split()[1] for part in text.split(",")]
        assert {pair for pair in overlaps(steps.log) if len(pair) == 2} == set(together.split())

    run(scene())


def test_a_program_can_have_its_calls_run_concurrently(store: Store) -> None:
    async def scene() -> None:
        steps = Steps()
        async with Desk(store, tools=steps.tools(), ordered=False) as desk:
            await desk.do(*batch("change a, change b"))
        assert overlaps(steps.log) == {"ab"}
        steps = Steps()
        async with Desk(None, tools=steps.tools()) as desk:
            await soon(desk.scheduler.schedule(batch("change a, change b"), ordered=False).ended())
        assert overlaps(steps.log) == {"ab"}

    run(scene())


def test_a_write_that_fails_or_is_denied_does_not_stop_the_next(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            requests = [
                request("work", {"on": "a"}, "a"),
                request("fail", {}, "b", writes="x"),
                request("work", {"on": "c"}, "c"),
                request("look", {"at": "d"}, "d"),
            ]
            waiting = await desk.waiting(*requests)
            assert [call.status.value for call in waiting] == [
                "awaiting_approval",
                "scheduled",
                "awaiting_approval",
                "scheduled",
            ]
            # The later one is answered first, and waits all the same.
            await desk.say("c")
            assert desk.ran == []
            await desk.say("a", ApprovalOutcome.CANCEL)
            await desk.over()
            assert desk.ran == ["no luck", "c", "d"]

    run(scene())


def test_a_call_that_is_made_again_after_a_change_runs_again(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            again = [request("work", {"on": "t"}, "a"), request("edit", {"path": "x"}, "b")]
            await desk.do(*again, request("work", {"on": "t"}, "c"), request("work", {"on": "t"}, "d"))
            assert desk.ran == ["t", "x", "t"]
            # A change of something else does not matter.
            first, between, second = (
                request("look", {"at": "f"}, "e", reads="f"),
                request("edit", {"path": "y"}, "f"),
                request("look", {"at": "f"}, "g", reads="f"),
            )
            await desk.do(first, between, second)
            assert desk.ran[3:] in (["f", "y"], ["y", "f"])

    run(scene())


def test_identical_calls_keep_their_place_when_the_first_is_cancelled(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            twins = [request("work", {"on": "t"}, id) for id in "ab"]
            made = desk.scheduler.schedule([*twins, request("look", {"at": "after"}, "c")])
            await soon(made.settled())
            desk.scheduler.cancel("a")
            await until(lambda: made.calls[1].status is CallStatus.AWAITING_APPROVAL)
            assert desk.ran == []
            await desk.say("b")
            await desk.over()
            assert desk.ran == ["t", "after"]

    run(scene())


def test_a_dependency_on_a_later_call_comes_before_the_order(store: Store) -> None:
    async def scene() -> None:
        async with Desk(store) as desk:
            await desk.do(
                request("work", {"on": "a"}, "a", after=("c",)),
                request("work", {"on": "b"}, "b"),
                request("work", {"on": "c"}, "c"),
            )
            assert desk.ran == ["b", "c", "a"]

    run(scene())


def test_what_comes_after_a_waiting_call_is_on_record_as_not_started(store: Store) -> None:
    async def scene() -> None:
        desk = Desk(store, Mode.DEFAULT)
        await desk.waiting(request("work", {}, "a"), request("look", {}, "b"), request("look", {"at": "x"}, "c"))
        await desk.close()

    run(scene())
    assert stored(store, "a").status == "awaiting_approval"
    assert [(stored(store, id).status, stored(store, id).error_code) for id in "bc"] == [
        ("cancelled", "not_started"),
        ("cancelled", "not_started"),
    ]


# --- a tool that uses its own scheduler ---------------------------------------------------------------------------


@pytest.mark.parametrize("concurrent", [1, 16])
def test_a_tool_that_schedules_on_its_own_scheduler_fails_at_once(store: Store, concurrent: int) -> None:
    async def scene() -> None:
        desks: list[Desk] = []

        @tool
        async def nested() -> str:
            await desks[0].scheduler.schedule(request("look", {}, "inner"))
            return "never"

        @tool
        async def waits_for_its_batch() -> str:
            return str(await batches[0])

        async with Desk(store, tools=[nested, waits_for_its_batch], concurrent=concurrent) as desk:
            desks.append(desk)
            (call,) = await desk.do(request("nested", {}, "outer"))
            error = getattr(call, "error", None)
            assert error is not None
            assert error.code == InvalidInput.code
            assert "The tool nested (call outer) uses the scheduler that runs it" in error.message
            batches = [desk.scheduler.schedule(request("waits_for_its_batch", {}, "self"))]
            (call,) = await soon(batches[0].ended())
            assert call.status is CallStatus.ERROR
            assert desk.ran == []

    run(scene())


def test_a_tool_may_use_another_scheduler(store: Store) -> None:
    async def scene() -> None:
        async with Desk() as inner:

            @tool
            async def nested() -> str:
                (call,) = await inner.scheduler.schedule(request("look", {}, "inner"))
                return call.status.value

            async with Desk(store, tools=[nested], concurrent=1) as desk:
                await desk.do(request("nested", {}, "a"), request("work", {}, "b"))
                assert inner.ran == ["it"]

    run(scene())


# --- an agent -------------------------------------------------------------------------------------------------


def results(scene: Any) -> list[str]:
    return [message.text for message in scene.asked[-1].messages if isinstance(message, CallReturn)]


def command(line: str) -> tuple[str, dict[str, Any]]:
    return "run_command", {"command": line}


def test_add_commit_and_log_in_one_reply(rehearse: Rehearse) -> None:
    scene = rehearse(
        calls(
            ("write_file", {"path": "x", "content": "1"}),
            command("git add x"),
            command("git -c user.name=n -c user.email=e commit -m first"),
            command("git log --oneline"),
        ),
        says("Done."),
    )
    root = Path(scene.runtime.site.root)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    assert scene.run().reason is Reason.COMPLETED
    assert "first" in results(scene)[3]


def test_a_plan_is_changed_in_the_order_of_the_calls(rehearse: Rehearse) -> None:
    todo = "{{ created[0].id }}"
    scene = rehearse(
        calls(("create_todo", {"items": [{"title": "A"}, {"title": "B"}]})),
        calls(
            ("start_todo", {"todoId": todo}),
            ("list_directory", {}),
            ("complete_todo", {"todoId": todo, "outcome": "done"}),
            ("start_todo", {"todoId": "{{ created[1].id }}"}),
            ("list_todo", {"status": "all"}),
            ("find_files", {"pattern": "*"}),
            ("complete_todo", {"todoId": "{{ created[1].id }}", "outcome": "done"}),
        ),
        says("Done."),
    )
    assert scene.run().reason is Reason.COMPLETED
    listed = json.loads(results(scene)[5])
    assert [item["status"] for item in listed["items"]] == ["completed", "in_progress"]


def answer(store: Store, text: str) -> None:
    """Say yes to the waiting call with this text, as another process does."""
    approvals = Approvals(store)
    for approval in approvals.waiting("s"):
        if text and text in approval.question:
            approvals.answer(approval.call_id, ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, Actor(Role.PERSON, "ann")))


@pytest.mark.spec("C9")
def test_a_suspended_turn_runs_its_remaining_calls_in_order_when_it_is_resumed(
    rehearse: Rehearse, store: Store
) -> None:
    scene = rehearse(
        calls(
            ("list_directory", {"path": "."}),
            command("echo one >> log"),
            ("read_file", {"path": "log"}),
            command("echo two >> log"),
            ("read_file", {"path": "log"}),
        ),
        says("Done."),
    ).in_mode(Mode.DEFAULT)
    root = Path(scene.runtime.site.root)
    outcome = scene.run()
    assert outcome.reason is Reason.WAITING
    assert not (root / "log").exists()
    # Without an answer, with an answer to the last question only, and with all.
    for command_line in ("", "two", "one"):
        answer(store, command_line)
        assert outcome.reason is Reason.WAITING
        outcome = asyncio.run(soon(scene.runtime.resume(scene.agent, outcome.turn_id, scene.signal)))
    assert outcome.reason is Reason.COMPLETED, outcome.why
    assert every_call_has_one_result(scene.asked[-1].messages)
    _, _, read, _, last = results(scene)
    assert ("one" in read, "two" in read) == (True, False)
    assert ("one" in last, "two" in last) == (True, True)
    assert (root / "log").read_text() == "one\ntwo\n"
