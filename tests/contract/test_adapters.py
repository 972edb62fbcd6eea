"""The lists in other people's frameworks: one behaviour in all of them."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.contract.frameworks import FRAMEWORKS, TOKENS, WAYS, Framework, Script, Step, complete, drive, plan

from punchlist.adapters.session_lists import SessionLists
from punchlist.agent.continuation import Limits, Reason
from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import current_process

Make = Callable[..., SessionLists]
PERSON = Actor(Role.PERSON, "ada")


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    return FRAMEWORKS[request.param]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Framework:
    return WAYS[request.param]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SessionLists] = []

    def lists(session: str | None = None, **options: Any) -> SessionLists:
        options.setdefault("database", str(tmp_path / "lists.db"))
        made.append(SessionLists(session, **options))
        return made[-1]

    yield lists
    for one in made:
        one.close()


@pytest.mark.spec("X2", "C3", "C13", "T11")
def test_an_agent_that_stops_early_is_sent_back_until_its_list_is_clear(way: Framework, make: Make) -> None:
    lists = make()
    text, script = drive(way, lists, plan("Oslo", "Rome"), complete(0), "Soon…", complete(1), "Go to Rome.")
    assert (text, lists.reason, lists.why) == ("Go to Rome.", Reason.COMPLETED, "nothing is open")
    assert [(todo.title, todo.status) for todo in lists.todos()] == [("Oslo", "completed"), ("Rome", "completed")]
    assert script.sent_back() == 1
    # The lists come last in every request, and are no part of what was said.
    assert "1 of 2 items ended" in script.heard[3].said[-1]
    assert "“Rome”" in script.heard[3].said[-2]
    assert sum("<state>" in text for text in script.heard[-1].said) == 1
    assert "call create_todo once" in script.heard[0].system


@pytest.mark.spec("C3", "X7")
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_it_is_so_on_both_databases(name: str, database: str, make: Make) -> None:
    lists = make(database=database)
    text, _ = drive(FRAMEWORKS[name], lists, plan("Oslo"), "Soon…", complete(0), "Done.")
    assert (text, lists.reason) == ("Done.", Reason.COMPLETED)


def test_without_a_list_nobody_is_sent_back(framework: Framework, make: Make) -> None:
    lists = make()
    text, script = drive(framework, lists, "Hello.")
    assert (text, lists.reason, len(script.heard)) == ("Hello.", Reason.COMPLETED, 1)


@pytest.mark.spec("C5")
def test_a_model_that_changes_nothing_ends_as_stalled(framework: Framework, make: Make) -> None:
    lists = make()
    text, script = drive(framework, lists, plan("Oslo"), "Soon…")
    assert (text, lists.reason) == ("Soon…", Reason.STALLED)
    assert (script.sent_back(), len(script.heard)) == (3, 5)


@pytest.mark.spec("C5")
def test_progress_lets_it_be_sent_back_as_often_as_before(framework: Framework, make: Make) -> None:
    lists = make()
    steps = (plan("Oslo", "Rome"), "Soon…", "Soon…", "Soon…", complete(0), "Soon…", "Soon…", complete(1), "Done.")
    _, script = drive(framework, lists, *steps)
    assert (lists.reason, script.sent_back()) == (Reason.COMPLETED, 5)


@pytest.mark.spec("C13", "C15", "X5")
def test_people_can_read_how_often_it_was_sent_back_and_why_it_ended(framework: Framework, make: Make) -> None:
    lists = make("trip", limits=Limits(continuations=1))
    drive(framework, lists, plan("Oslo"), "Soon…")
    sent_back, ended = lists._app.conversations.messages("trip")
    assert (sent_back.kind, ended.kind) == ("continuation", "ending")
    assert ended.content == "Ended as capped: limit of 1 continuations reached. Not finished:\n- Oslo"


@pytest.mark.spec("C5")
def test_calls_that_leave_the_list_as_it_is_are_no_progress(framework: Framework, make: Make) -> None:
    lists = make()
    busy: list[Step] = [[("list_todo", {})], "Soon…"] * 4
    _, script = drive(framework, lists, plan("Oslo"), "Soon…", *busy)
    assert (lists.reason, script.sent_back()) == (Reason.STALLED, 3)


@pytest.mark.spec("C4", "C6", "C13")
def test_limits_end_it(framework: Framework, make: Make) -> None:
    capped = make(limits=Limits(continuations=1))
    drive(framework, capped, plan("Oslo"), "Soon…")
    assert (capped.reason, capped.why) == (Reason.CAPPED, "limit of 1 continuations reached")
    few = make(limits=Limits(base_iterations=2, max_iterations=2))
    drive(framework, few, plan("Oslo"), "Soon…")
    assert (few.reason, few.why) == (Reason.CAPPED, "limit of 2 iterations reached")
    frugal = make(limits=Limits(tokens=2 * TOKENS))
    drive(framework, frugal, plan("Oslo"), "Soon…")
    assert frugal.reason is Reason.BUDGET
    off = make(continues=False)
    drive(framework, off, plan("Oslo"), "Soon…")
    assert off.reason is Reason.OPEN


@pytest.mark.spec("C1")
def test_the_limits_are_those_of_the_supervisor_unless_the_program_names_its_own(
    framework: Framework, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(**options: Any) -> tuple[Reason | None, int]:
        """Why an agent that does nothing about its todo is let go, and how often it was sent back before."""
        lists = make(workspace=tmp_path, **options)
        _, script = drive(framework, lists, plan("Oslo"), *["Soon…"] * 4)
        return lists.reason, script.sent_back()

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "PUNCHLIST_AUTO_COMPLETE_TODOS", "PUNCHLIST_MAX_TODO_CONTINUATIONS"):
        monkeypatch.delenv(name, raising=False)
    assert make(workspace=tmp_path).limits == Limits()
    # Tighter ones need no trust. What the model costs is not known here.
    settings = "max_todo_continuations = 2\nmax_seconds = 60\nmax_cost = 1.0\ntodo_driven_execution = false\n"
    (tmp_path / "punchlist.toml").write_text(f"[agents.supervisor]\n{settings}")
    assert make(workspace=tmp_path).limits == Limits(continuations=2, seconds=60)
    assert ended() == (Reason.OPEN, 0)
    monkeypatch.setenv("PUNCHLIST_AUTO_COMPLETE_TODOS", "true")
    monkeypatch.setenv("PUNCHLIST_MAX_TODO_CONTINUATIONS", "1")
    assert make(workspace=tmp_path).limits == Limits(continuations=1, seconds=60)
    assert ended() == (Reason.CAPPED, 1)
    assert ended(limits=Limits()) == (Reason.STALLED, 3)
    assert ended(continues=False) == (Reason.OPEN, 0)


@pytest.mark.spec("C10")
def test_a_list_that_waits_lets_go_and_is_gone_on_with(framework: Framework, make: Make) -> None:
    lists = make("trip")
    question = plan("Book", blockedBy=[{"person": "Which seat?"}])
    text, script = drive(framework, lists, question, "I wait.")
    assert (text, lists.reason, script.sent_back()) == ("I wait.", Reason.WAITING, 0)
    assert "Which seat?" in lists.why
    run = lists.last("trip")
    assert run is not None
    house = lists._app
    (todo,) = house.plans.list(lists._scope(run)).items
    (condition,) = house.plans.conditions(lists._scope(run))
    house.plans.resolve("trip", condition.id, "window", PERSON)
    house.plans.end(lists._scope(run), todo.id, "window")
    drive(framework, lists, "Booked.")
    assert lists.reason is Reason.COMPLETED


@pytest.mark.spec("T4", "S3")
def test_what_is_wrong_with_a_call_is_said_to_the_model(framework: Framework, make: Make) -> None:
    lists = make()
    wrong = [("create_todo", {"items": [{"title": ""}]})]
    text, script = drive(framework, lists, wrong, [("start_todo", {"todoId": "nobody"})], "I give up.")
    assert (text, lists.reason) == ("I give up.", Reason.COMPLETED)
    heard = script.heard[-1].results
    assert "items[0].title: must be 1 to" in heard[0]
    assert "There is no todo 'nobody' in this turn's plan. Give its number, its id" in heard[1]


@pytest.mark.spec("W6")
def test_the_list_is_there_again_after_a_restart(framework: Framework, make: Make) -> None:
    def crash(_: object) -> str:
        raise RuntimeError("the power is out")

    with pytest.raises(RuntimeError, match="power"):
        drive(framework, make(), plan("Oslo", "Rome"), complete(0), crash, conversation="trip")
    lists = make()
    listed: Step = [("list_todo", {})]

    def rest(heard: Any) -> Any:
        (found,) = re.findall(r'"id": ?"([^"]+)"', heard.results[-1])
        return [("complete_todo", {"todoId": found, "outcome": "done"})]

    _, script = drive(framework, lists, "Where was I?", listed, rest, "Done.", conversation="trip")
    assert "Rome" in script.heard[0].said[-1]
    assert lists.reason is Reason.COMPLETED
    assert [todo.status for todo in lists.todos("trip")] == ["completed", "completed"]


@pytest.mark.spec("W1", "W6")
def test_the_checklist_keeps_an_agent_at_it_as_well(framework: Framework, make: Make) -> None:
    def written(*statuses: str) -> Any:
        items = [{"content": f"Step {at}", "activeForm": "…", "status": one} for at, one in enumerate(statuses)]
        return [("TodoWrite", {"todos": items})]

    lists = make("trip", role="worker")
    steps = (written("in_progress", "pending"), "Soon…", written("completed", "completed"), "Done.")
    _, script = drive(framework, lists, *steps)
    assert (lists.reason, script.sent_back()) == (Reason.COMPLETED, 1)


@pytest.mark.spec("T13")
def test_a_worker_has_no_plan(framework: Framework, make: Make) -> None:
    _, worker = drive(framework, make(role="worker"), "Hello.")
    _, supervisor = drive(framework, make(), "Hello.")
    assert worker.heard[0].tools == ["TodoWrite"]
    assert {"TodoWrite", "create_todo", "list_todo", "start_todo", "wait_todo", "complete_todo"} <= set(
        supervisor.heard[0].tools
    )
    assert "create_todo" not in worker.heard[0].system


@pytest.mark.spec("X3")
def test_agents_in_one_session_share_its_plan_and_claim_from_it(make: Make) -> None:
    lists = make("trip")
    one, two = lists.begin(), make("trip", agent="other").begin()
    assert one.turn_id == two.turn_id
    lists.call(one, "create_todo", {"items": [{"title": "Oslo"}, {"title": "Rome"}]})
    claimed = [lists.call(run, "claim_todo", {}).text for run in (one, two)]
    assert ["Oslo" in claimed[0], "Rome" in claimed[1]] == [True, True]


@pytest.mark.spec("X2")
def test_a_run_goes_on_beside_one_that_began_when_all_was_done(make: Make) -> None:
    lists = make("trip")
    slow, quick = lists.begin(), lists.begin()
    created = json.loads(lists.call(quick, "create_todo", {"items": [{"title": "Oslo"}]}).text)["created"]
    lists.call(quick, "complete_todo", {"todoId": created[0]["id"], "outcome": "done"})
    assert lists.after(quick)[0].reason == Reason.COMPLETED
    next_one = lists.begin()

    slow, _ = lists.before(slow)
    assert slow.turn_id == next_one.turn_id
    assert not lists.call(slow, "create_todo", {"items": [{"title": "Rome"}]}).failed
    assert "Rome" in lists.before(next_one)[1]


def test_a_lead_has_the_todos_of_missions(make: Make) -> None:
    lists = make("trip", role="lead")
    run = lists.begin()
    said = lists.call(run, "mission_todo_list", {"missionSlug": "growth"})
    assert (said.failed, "growth" in said.text) == (True, True)
    assert "mission_todo_list" in [tool.name for tool in lists.tools]
    assert "mission_todo_list" not in [tool.name for tool in make("other").tools]
    assert lists.call(run, "create_todos", {}).text.endswith("Did you mean create_todo?")


@pytest.mark.spec("C16")
def test_conversations_share_neither_lists_nor_counters(framework: Framework, make: Make) -> None:
    lists = make()
    drive(framework, lists, plan("Oslo"), "Soon…", conversation="one")
    _, script = drive(framework, lists, plan("Rome"), "Soon…", complete(0), "Done.", conversation="two")
    assert not any("Oslo" in text for heard in script.heard for text in heard.said)
    one, two = lists.last("one"), lists.last("two")
    assert one is not None
    assert two is not None
    assert (one.reason, one.continuations) == (Reason.STALLED, 3)
    assert (two.reason, two.continuations) == (Reason.COMPLETED, 1)


@pytest.mark.spec("C16")
def test_a_conversation_may_be_called_anything(make: Make) -> None:
    lists = make()
    names = ["a b", "a-b", "Zürich\n", "x" * 5_000, "\x1b[31m"]
    for name in names:
        drive(FRAMEWORKS["langchain"], lists, plan("Ask"), "Soon…", conversation=name)
    sessions = {getattr(lists.last(name), "session", None) for name in names}
    assert ("a-b" in sessions, len(sessions)) == (True, 5)


@pytest.mark.parametrize("arguments", ["null", "[1, 2]", '"x"', "{nope"])
@pytest.mark.parametrize("name", ["pydantic-ai", "openai-agents"])
def test_arguments_that_are_no_object_are_named(name: str, arguments: str, make: Make) -> None:
    lists = make()
    text, script = drive(FRAMEWORKS[name], lists, [("create_todo", arguments)], "I give up.")
    assert (text, lists.reason) == ("I give up.", Reason.COMPLETED)
    assert re.search("must be an|Invalid JSON|must be a JSON object", script.heard[-1].results[0])


@pytest.mark.spec("C16")
def test_many_run_at_the_same_time(framework: Framework, make: Make) -> None:
    lists = make()
    steps = (plan("Oslo", "Rome"), complete(0), "Soon…", complete(1), "Done.")

    def work(number: int) -> tuple[str, int]:
        text, script = drive(framework, lists, *steps, conversation=f"c{number}")
        return text, script.sent_back()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(8))) == [("Done.", 1)] * 8
    assert {getattr(lists.last(f"c{number}"), "reason", None) for number in range(8)} == {Reason.COMPLETED}


@pytest.mark.spec("C16")
def test_many_run_in_one_event_loop(database: str, make: Make) -> None:
    lists = make(database=database)
    steps = (plan("Oslo", "Rome"), complete(0), "Soon…", complete(1), "Done.")
    ways = [WAYS["langchain-async"], WAYS["pydantic-ai"], WAYS["openai-agents"], WAYS["openai-agents-stream"]] * 3

    async def work() -> list[str]:
        runs = (way(lists, Script(steps), conversation=f"c{number}") for number, way in enumerate(ways))
        return list(await asyncio.gather(*runs))

    assert asyncio.run(work()) == ["Done."] * len(ways)
    assert {getattr(lists.last(f"c{number}"), "reason", None) for number in range(len(ways))} == {Reason.COMPLETED}


@pytest.mark.spec("C14")
def test_a_persons_stop_wins(framework: Framework, make: Make, tmp_path: Path) -> None:
    lists = make("trip")

    def stop(_: object) -> str:
        lists._app.conversations.end_turn(Scope("trip", PERSON), reason="enough")
        return "Soon…"

    _, script = drive(framework, lists, plan("Oslo"), stop, "Soon…")
    assert (lists.reason, lists.why) == (Reason.CANCELLED, "the turn was ended from outside (enough)")
    assert (script.sent_back(), len(script.heard)) == (0, 2)
    # And the next run begins with a list of its own.
    _, script = drive(framework, lists, "Hello.")
    assert lists.reason is Reason.COMPLETED
    assert not any("Oslo" in text for text in script.heard[0].said)


def test_a_turn_that_is_ended_with_nothing_open_was_completed(framework: Framework, make: Make) -> None:
    lists = make("trip")

    def end(_: object) -> str:
        lists._app.conversations.end_turn(Scope("trip", PERSON), reason="enough")
        return "Done."

    drive(framework, lists, plan("Oslo"), complete(0), end)
    assert lists.reason is Reason.COMPLETED


def test_a_session_that_a_process_works_in_is_left_alone(make: Make) -> None:
    lists = make("trip")
    lists._app.conversations.begin_turn(Scope("trip", PERSON), reason="run", owner=current_process())
    with pytest.raises(Conflict, match="works on turn"):
        lists.begin()


def test_a_finished_list_is_not_carried_into_the_next_run(framework: Framework, make: Make) -> None:
    lists = make("trip")
    drive(framework, lists, plan("Oslo"), complete(0), "Done.")
    _, script = drive(framework, lists, plan("Rome"), complete(0), "Done.")
    assert [todo.title for todo in lists.todos()] == ["Rome"]
    # Nor is it told again that there is none yet.
    assert script.heard[0].said == ["Do it."]
    turns = lists._app.conversations.turns("trip")
    assert [turn.end_reason for turn in turns] == [None, "completed: nothing is open"]


@pytest.mark.spec("W7")
def test_a_model_that_forgets_its_list_is_reminded_once(framework: Framework, make: Make) -> None:
    lists = make(remind_after=2)
    _, script = drive(framework, lists, plan("Oslo"), *[[("list_todo", {})]] * 5, complete(0), "Done.")
    last = [heard.said[-1] for heard in script.heard]
    assert ["There is no todo list yet" in text for text in last] == [True] + [False] * 7
    assert sum("has not changed for" in text for text in last) == 1


def test_a_database_that_goes_away_lets_the_agent_go(framework: Framework, make: Make) -> None:
    lists = make()

    def lose(_: object) -> str:
        def gone(*_: object, **__: object) -> None:
            raise PunchlistError("The database is gone.")

        lists._read_lists = gone  # type: ignore[method-assign,assignment]
        return "Soon…"

    text, _ = drive(framework, lists, plan("Oslo"), lose)
    assert (text, lists.reason, lists.why) == ("Soon…", Reason.ERROR, "The database is gone.")


def test_what_a_framework_gives_up_on_has_a_reason(way: Framework, make: Make) -> None:
    def fail(_: object) -> str:
        raise RuntimeError("no such model")

    lists = make()
    with pytest.raises(RuntimeError, match="no such model"):
        drive(way, lists, plan("Oslo"), fail)
    assert (lists.reason, lists.why) == (Reason.ERROR, "RuntimeError: no such model")


def test_wrong_settings_are_named(make: Make, tmp_path: Path) -> None:
    with pytest.raises(PunchlistError, match="role: must be one of"):
        make(role="king")
    with pytest.raises(PunchlistError, match="Limit tokens or seconds"):
        make(limits=Limits(cost=1.0))
    (tmp_path / "file").touch()
    with pytest.raises(PunchlistError):
        make(database=str(tmp_path / "file" / "lists.db"))


@pytest.mark.spec("C3", "C13")
@pytest.mark.parametrize("name", ["langchain", "pydantic_ai", "openai_agents"])
def test_the_example_plans_stops_early_and_is_sent_back(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "examples" / f"in_{name}.py"
    with asyncio.Runner() as runner:
        if name == "pydantic_ai":
            # Otherwise it makes an event loop that nobody closes.
            runner.get_loop()
        runpy.run_path(str(path))
    assert capsys.readouterr().out.splitlines() == [
        "Ask for Oslo: completed · Ask for Rome: completed",
        "completed, continued 1 of 10 times",
        "Go to Rome.",
    ]
    assert len(path.read_text().splitlines()) <= 70


@pytest.mark.parametrize(("module", "extra"), [("langchain", "langchain"), ("openai_agents", "openai-agents")])
def test_a_framework_that_is_not_installed_is_named_with_its_extra(
    module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("langchain.agents.middleware", "agents", f"punchlist.adapters.{module}"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"punchlist.adapters.{module}")
    with pytest.raises(ImportError, match=re.escape(f"pip install 'punchlist[{extra}]'")):
        import_module(f"punchlist.adapters.{module}")
