"""Work that is delegated without waiting: it keeps to the limits of its mission, stops with the work on its todo, and
no result of it is lost (M9, M11, M19)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results, last_words, words

from punchlist.audit.check import check
from punchlist.missions.budgets import repository as budget_repository
from punchlist.missions.budgets.service import Budgets
from punchlist.missions.directives.service import Directives
from punchlist.missions.run_control import MissionRuns
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.models.model import ModelRefused, ModelRequest, Reply
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.toolcalls.policy import Mode

Open = Callable[..., Office]
Answers = Callable[[str, ModelRequest], Reply]


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Open]:
    opened: list[Office] = []

    def open(answers: Answers, **mission: Any) -> Office:
        opened.append(Office(tmp_path / "project", database, clock, answers, **mission))
        return opened[0]

    yield open
    for each in opened:
        each.close()


def delegate(mission: str) -> Reply:
    return call("delegate", type="coder", mission=mission, **{"async": True})


def accept(ours: Office, request: ModelRequest) -> Reply:
    """The Lead completes the todo in progress."""
    if has_results(request):
        return Reply("Completed.")
    (todo,) = [todo for todo in ours.team.todos.list(ours.team.slug).items if todo.status is TodoStatus.IN_PROGRESS]
    return call("mission_todo_complete", missionSlug=ours.team.slug, todoId=todo.id, outcome="It is done.")


def runs_of(ours: Office, todo_id: str, kind: RunKind) -> list[Run]:
    return [run for run in reversed(ours.services.runs.for_todo(todo_id)) if run.kind is kind]


# --- the limits of the mission ----------------------------------------------------------------------------


@pytest.mark.spec("M9", "M19")
@pytest.mark.parametrize(("limit", "written"), [("plan", False), ("default", False), ("yolo", True)])
def test_the_mode_of_a_mission_limits_work_that_its_owners_delegate(
    office: Open, tmp_path: Path, limit: str, written: bool
) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "coder":
            return Reply("Written.") if has_results(request) else call("write_file", path="x", content="hello")
        if agent == "mission-lead":
            return accept(ours, request)
        return Reply("A coder writes it.") if has_results(request) else delegate("Write x.")

    ours = office(answers, limits={"mode": limit})
    ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work(Mode.YOLO)
    assert "coder" in {agent for agent, _ in ours.asked}
    assert (tmp_path / "project" / "x").exists() is written


@pytest.mark.spec("M9", "M19")
def test_delegated_work_is_charged_to_the_day_and_to_its_todo(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "mission-lead":
            return accept(ours, request)
        if agent == "coder" or "Results for: " in last_words(request):
            return Reply("Done.")
        return Reply("A coder measures.") if has_results(request) else delegate("Measure it.")

    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    asked = [agent for agent, _ in ours.asked]
    assert asked.count("coder") == 1
    with ours.services.store.read() as tx:
        of_todo = budget_repository.spend_of_todo(tx, todo.id)
    assert of_todo is not None
    # Reviews are part of what the todo costs.
    assert of_todo.requests == len(asked)
    assert Budgets(ours.services.store).today(ours.team.mission).requests == len(asked)


@pytest.mark.spec("M9", "M19")
@pytest.mark.parametrize("limit", ["tokensPerTodo", "tokensPerDay", "costPerTodo"])
def test_delegated_work_waits_when_a_budget_is_reached(office: Open, limit: str) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        assert agent == "pillar-owner", "the request of the coder would exceed the budget"
        if has_results(request):
            return Reply("A coder reads it.")
        return delegate("Read this: " + "x" * 40_000)

    # A thousand tokens cost a dollar.
    ours = office(answers, limits={limit: 8_000 if limit.startswith("tokens") else 8})
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work()
    (delegated,) = runs_of(ours, todo.id, RunKind.DELEGATE)
    assert (delegated.status, f"({limit})" in delegated.why) == (RunStatus.WAITING, True)
    assert [(item.kind, limit in item.question) for item in ours.services.inbox.list()] == [("budget", True)]


@pytest.mark.spec("M9", "M10")
def test_directives_reach_work_that_is_delegated_without_waiting(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "mission-lead":
            return accept(ours, request)
        if agent == "coder" or "Results for: " in last_words(request):
            return Reply("Done.")
        return Reply("A coder measures.") if has_results(request) else delegate("Measure it.")

    ours = office(answers)
    Directives(ours.services.store).add(ours.team.person, ours.team.slug, "Builds come first this quarter")
    ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work()
    (asked,) = [request for agent, request in ours.asked if agent == "coder"]
    assert "Builds come first this quarter" in words(asked)
    # It has a conversation of its own and no tools of the mission.
    offered = {tool.name for tool in asked.tools}
    assert not offered & {"mission_todo_list", "mission_todo_update", "delegate"}


# --- stopped and continued --------------------------------------------------------------------------------


@pytest.mark.spec("M9", "M11")
@pytest.mark.parametrize("by", ["a person", "the end of the todo"])
def test_delegated_work_stops_with_the_work_on_its_todo(office: Open, by: str) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "coder":
            if by == "a person":
                (work,) = runs_of(ours, todo.id, RunKind.EXECUTE)
                ours.services.runs.stop(ours.team.person, work.id, "enough")
            else:
                ours.team.todos.update(ours.team.person, ours.team.slug, todo.id, TodoAction.CANCEL, "enough")
            return call("run_command", command="sleep 60")
        return Reply("A coder measures.") if has_results(request) else delegate("Measure it.")

    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    ours.work()
    assert {run.status for run in ours.services.runs.for_todo(todo.id)} == {RunStatus.STOPPED}
    assert check(ours.services.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M9", "M11")
def test_a_run_that_follows_a_stopped_one_gets_the_results_that_it_did_not(office: Open) -> None:
    """Two delegations: one ends before the stop, the other is stopped."""

    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "mission-lead":
            return accept(ours, request)
        if agent == "coder" and "Measure it." in words(request):
            return Reply("It takes 72 seconds.")
        if agent == "coder":
            if any(run.status is RunStatus.DONE for run in runs_of(ours, todo.id, RunKind.DELEGATE)):
                (work,) = runs_of(ours, todo.id, RunKind.EXECUTE)
                ours.services.runs.stop(ours.team.person, work.id, "enough")
                return call("run_command", command="sleep 60")
            return call("run_command", command=f"echo {len(request.messages)}")
        if len(runs_of(ours, todo.id, RunKind.EXECUTE)) == 2:
            return Reply(f"Heard: {'72 seconds' in last_words(request)}")
        if has_results(request):
            return Reply("They work.")
        (second,) = delegate("Write it.").calls
        return Reply("", (*delegate("Measure it.").calls, replace(second, id="second")))

    ours = office(answers)
    team = ours.team
    todo = team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    ours.work()
    assert [run.status for run in runs_of(ours, todo.id, RunKind.DELEGATE)] == [RunStatus.DONE, RunStatus.STOPPED]
    ours.clock.advance(minutes=1)
    team.todos.update(team.person, team.slug, todo.id, TodoAction.RESUME, "Go on.")
    ours.work()
    assert team.todos.get(todo.id).status is TodoStatus.COMPLETED
    (heard,) = [last_words(request) for agent, request in ours.asked if agent == "pillar-owner"][-1:]
    assert "Results of work that you delegated earlier:" in heard
    assert "coder, “Measure it.”:\n> It takes 72 seconds." in heard
    assert "coder, “Write it.”:\n> It was stopped: enough" in heard
    second = runs_of(ours, todo.id, RunKind.EXECUTE)[1]
    assert {run.delivered_to for run in runs_of(ours, todo.id, RunKind.DELEGATE)} == {second.id}
    assert check(ours.services.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M8", "M9", "M11")
def test_a_todo_waits_for_work_that_an_earlier_run_delegated(office: Open) -> None:
    """The earlier run failed, so its delegated work goes on."""

    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "mission-lead":
            delegated = runs_of(ours, todo.id, RunKind.DELEGATE)
            reviewed.append([run.status for run in delegated])
            return accept(ours, request)
        if agent == "coder":
            if not has_results(request):
                return call("write_file", path="x", content="hello")
            return Reply("It takes 72 seconds.")
        if len(runs_of(ours, todo.id, RunKind.EXECUTE)) == 2:
            return Reply("Noted.")
        if has_results(request):
            raise ModelRefused("Not with this key.")
        return delegate("Measure it.")

    reviewed: list[list[RunStatus]] = []
    ours = office(answers)
    team = ours.team
    todo = team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    # The coder waits for an approval.
    ours.work(Mode.DEFAULT)
    assert [run.status for run in runs_of(ours, todo.id, RunKind.EXECUTE)] == [RunStatus.FAILED]
    ours.clock.advance(minutes=1)
    team.todos.update(team.person, team.slug, todo.id, TodoAction.RESUME, "Go on.")
    ours.work(Mode.DEFAULT)
    assert reviewed == []
    assert runs_of(ours, todo.id, RunKind.EXECUTE)[1].why == "the results of delegated work (coder)"
    (item,) = [item for item in ours.services.inbox.list() if item.kind == "approval"]
    ours.services.inbox.answer(team.person, item.id, "approve")
    ours.work(Mode.DEFAULT)
    assert reviewed == [[RunStatus.DONE]] * len(reviewed) != []
    assert any("> It takes 72 seconds." in last_words(request) for agent, request in ours.asked if agent != "coder")


@pytest.mark.spec("M9", "M11")
def test_a_todo_says_which_delegated_work_it_still_waits_for(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "writer":
            return call("write_file", path="x", content="hello")
        if agent == "coder":
            return Reply("It takes 72 seconds.")
        if has_results(request):
            return Reply("They work.")
        writes = call("delegate", type="writer", mission="Write it.", **{"async": True}).calls
        return Reply("", (*delegate("Measure it.").calls, replace(writes[0], id="second")))

    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work(Mode.DEFAULT)
    (work,) = runs_of(ours, todo.id, RunKind.EXECUTE)
    assert (work.status, work.why) == (RunStatus.WAITING, "the results of delegated work (writer)")


@pytest.mark.spec("M9", "M11")
def test_a_retried_delegation_delivers_its_next_result(office: Open) -> None:
    ours = office(lambda *_: Reply("Done."))
    team, runs = ours.team, MissionRuns(ours.services.store)
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    (work,) = runs.for_todo(todo.id)
    chat = next(state.pillar.todo_conversation_id for state in team.missions.pillars(team.mission))
    request = {"mission": "Measure it.", "origin": chat}
    found = {"mission_id": team.mission.id, "todo_id": todo.id, "request": request}
    delegated = runs.enqueue(team.system, kind=RunKind.DELEGATE, conversation_id=chat, agent="coder", **found)
    runs.stop(team.person, delegated.id)
    ours.work()
    assert runs.get(delegated.id).delivered_to == work.id
    runs.resume(team.person, delegated.id)
    assert (runs.get(delegated.id).status, runs.get(delegated.id).delivered_to) == (RunStatus.QUEUED, None)


# --- the review -------------------------------------------------------------------------------------------


@pytest.mark.spec("M8", "M9")
def test_a_review_counts_delegated_work_to_the_round_in_which_it_was_done(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        ours.clock.advance(seconds=1)
        if agent == "mission-lead":
            return accept(ours, request)
        if agent == "coder":
            return Reply("Done.") if has_results(request) else call("run_command", command="echo measured")
        if "Results for: " in last_words(request):
            return Reply("Measured.")
        return Reply("A coder measures.") if has_results(request) else delegate("Measure it.")

    ours = office(answers)
    ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    ours.work()
    reviews = [last_words(request) for agent, request in ours.asked if agent == "mission-lead"]
    record = reviews[0].partition("Recorded by the program")[2]
    assert "`echo measured`" in record
    assert "In earlier rounds" not in record
    assert "No tool call was made" not in record
