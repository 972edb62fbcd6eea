"""A person approves what was shown: a call that would do something else by now is shown again (S4, S6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.contract.toolcalls import ANN, Desk, approval, request, run, soon, until, way

from punchlist.audit.check import check
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.model import ErroredToolCall, WaitingToolCall
from punchlist.toolcalls.policy import Mode
from punchlist.tools.command import command_tool
from punchlist.tools.files import file_tools
from punchlist.tools.workspace import Workspace

pytestmark = pytest.mark.spec("S4", "S6")

SCRIPT, WORSE = "echo fine >> log\n", "echo bad >> log\n"


def desk(store: Store | None, root: Path, mode: Mode = Mode.DEFAULT) -> Desk:
    workspace = Workspace(root)
    made = Desk(store, mode, tools=[*file_tools(workspace), command_tool(workspace)])
    made.policy.paths = workspace.paths
    return made


def question(desk: Desk, call_id: str) -> str:
    (call,) = [call for call in desk.scheduler.calls if call.request.call_id == call_id]
    assert isinstance(call, WaitingToolCall)
    return call.question.text


def log(root: Path) -> str:
    return (root / "log").read_text() if (root / "log").exists() else ""


def test_a_command_whose_script_an_earlier_call_changes_is_asked_about_again(store: Store, tmp_path: Path) -> None:
    (tmp_path / "deploy.sh").write_text(SCRIPT)

    async def scene() -> None:
        async with desk(store, tmp_path) as at:
            write = request("write_file", {"path": "deploy.sh", "content": WORSE}, "write")
            await at.waiting(write, request("run_command", {"command": "sh deploy.sh"}, "go"))
            first = question(at, "go")
            assert "deploy.sh (17 bytes, sha256" in first
            await at.say("go")
            await at.say("write")
            await until(lambda: "write" not in {call.request.call_id for call in at.scheduler.calls})
            second = question(at, "go")
            assert (second != first, log(tmp_path)) == (True, "")
            assert at.recorder
            await at.recorder.flushed()
            asked = approval(store, "go")
            assert (asked.status, asked.question, asked.answer) == ("pending", second, None)
            assert asked.why.startswith("it has changed since it was approved")
            await at.say("go")
            await at.over()
            assert log(tmp_path) == "bad\n"

    run(scene())
    assert [state for state in way(store, "go") if state in {"awaiting_approval", "executing"}] == [
        "awaiting_approval",
        "awaiting_approval",
        "executing",
    ]
    assert check(store, SCHEMA_VERSION).problems == []


def test_an_answer_of_another_process_to_the_earlier_question_does_not_count(store: Store, tmp_path: Path) -> None:
    (tmp_path / "deploy.sh").write_text(SCRIPT)

    async def scene() -> None:
        async with desk(store, tmp_path) as at:
            await at.waiting(request("run_command", {"command": "./deploy.sh; sh < deploy.sh"}, "go"))
            first = question(at, "go")
            (tmp_path / "deploy.sh").write_text(WORSE)
            elsewhere = Approvals(store)
            await asyncio.to_thread(elsewhere.answer, "go", ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, ANN))
            await until(lambda: question(at, "go") != first)
            await until(lambda: approval(store, "go").status == "pending")
            (waiting,) = elsewhere.waiting()
            assert waiting.question == question(at, "go")
            assert log(tmp_path) == ""
            denied = ApprovalAnswer(ApprovalOutcome.CANCEL, ANN, reason="not that")
            await asyncio.to_thread(elsewhere.answer, "go", denied)
            await at.heard_of("go")

    run(scene())
    assert log(tmp_path) == ""
    assert approval(store, "go").status == "denied"


def test_two_diffs_of_one_file_are_each_approved_as_they_will_apply(store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{number}\n" for number in range(40)))

    def edit(id: str, old: str, new: str) -> object:
        return request("edit_file", {"path": "a.txt", "old": old, "new": new}, id)

    async def scene() -> None:
        async with desk(store, tmp_path) as at:
            calls = [edit("near", "5\n6", "five\n6"), edit("same", "6\n7", "6\nseven"), edit("far", "30\n", "thirty\n")]
            calls[0] = edit("near", "5\n6", "five\nmore\n6")
            await at.waiting(*calls)  # type: ignore[arg-type]
            for id in ("same", "far", "near"):
                await at.say(id)
            # The hunk of the last one has only moved.
            await until(lambda: [call.request.call_id for call in at.scheduler.calls] == ["same", "far"])
            assert "five" in question(at, "same")
            await at.say("same")
            await at.over()

    run(scene())
    text = (tmp_path / "a.txt").read_text()
    assert "five\nmore\n6\nseven\n" in text
    assert "thirty" in text


def test_a_call_on_a_file_that_an_earlier_call_creates_is_asked_about_in_its_turn(store: Store, tmp_path: Path) -> None:
    async def scene() -> None:
        async with desk(store, tmp_path) as at:
            write = request("write_file", {"path": "new.txt", "content": "one\n"}, "write")
            edit = request("edit_file", {"path": "new.txt", "old": "one", "new": "two"}, "edit")
            again = request("edit_file", {"path": "other.txt", "old": "one", "new": "two"}, "missing")
            calls = await at.waiting(write, edit, again)
            assert [call.status for call in calls] == ["awaiting_approval", "scheduled", "error"]
            await at.say("write")
            await until(lambda: at.heard.way("edit")[-1] == "awaiting_approval")
            assert "-one\n+two" in question(at, "edit")
            await at.say("edit")
            await at.over()

    run(scene())
    assert (tmp_path / "new.txt").read_text() == "two\n"


def test_a_call_that_is_no_longer_possible_is_not_run(tmp_path: Path) -> None:
    async def scene() -> None:
        async with desk(None, tmp_path) as at:
            batch = at.scheduler.schedule(request("write_file", {"path": "b", "content": "text"}, "b"))
            await soon(batch.settled())
            (tmp_path / "b").write_bytes(b"\0binary")
            await at.say("b")
            (call,) = await soon(batch.ended())
            assert isinstance(call, ErroredToolCall)
            assert call.status is CallStatus.ERROR

    run(scene())
    assert (tmp_path / "b").read_bytes() == b"\0binary"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("sh run.sh", ["run.sh"]),
        ("./run.sh --fast", ["run.sh"]),
        ("python3 tool.py; sh run.sh", ["tool.py", "run.sh"]),
        ("cd sub && sh inner.sh", ["sub/inner.sh"]),
        ("bash < run.sh", ["run.sh"]),
        ("env X=1 timeout 5 sh ./sub/../run.sh", ["run.sh"]),
        ("make build", ["Makefile"]),
        ("npm test", ["package.json"]),
        ("git apply --index fix.patch", ["fix.patch"]),
        ("node --require=./run.sh tool.py", ["run.sh", "tool.py"]),
        ("cat run.sh", []),
        ("grep -r x run.sh", []),
        ("echo run.sh.missing", []),
        ("sh /etc/profile", []),
    ],
)
def test_the_question_names_the_files_that_a_command_runs(tmp_path: Path, line: str, named: list[str]) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("run.sh", "tool.py", "Makefile", "package.json", "fix.patch", "sub/inner.sh"):
        (tmp_path / name).write_text("x")
    shown = command_tool(Workspace(tmp_path)).preview({"command": line})
    files = [text.partition(" ")[2].partition(" (")[0] for text in shown.splitlines() if text.startswith("with ")]
    assert sorted(files) == sorted(named)
