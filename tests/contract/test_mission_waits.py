"""Work that waits: for delegated work, for a message of the Lead, and without blocking anything else (M8, M9, M12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results, last_words, words
from tests.contract.missions import BUILD, ONBOARDING

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import NoticeKind
from punchlist.errors import IllegalTransition
from punchlist.missions.model import MissionScope
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.models.model import ModelRequest, Reply
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import RunKind
from punchlist.toolcalls.policy import Mode

Open = Callable[..., Office]


@pytest.fixture
def office(tmp_path: Path, database: str, clock: StoppedClock) -> Iterator[Open]:
    opened: list[Office] = []

    def open(answers: Callable[[str, ModelRequest], Reply], **mission: Any) -> Office:
        opened.append(Office(tmp_path / "project", database, clock, answers, **mission))
        return opened[0]

    yield open
    for each in opened:
        each.close()


def complete(ours: Office, request: ModelRequest) -> Reply:
    """The Lead accepts the todo in progress."""
    if has_results(request):
        return Reply("Completed.")
    (todo,) = [todo for todo in ours.team.todos.list(ours.team.slug).items if todo.status is TodoStatus.IN_PROGRESS]
    return call("mission_todo_complete", missionSlug=ours.team.slug, todoId=todo.id, outcome="It is done.")


@pytest.mark.spec("M8", "M9")
def test_a_todo_waits_for_its_delegated_work_and_continues_with_the_result(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "coder":
            return Reply("It takes 72 seconds.")
        if agent == "mission-lead":
            return complete(ours, request)
        if "Results for: Measure the build" in last_words(request):
            assert "> It takes 72 seconds." in last_words(request)
            return Reply("The build takes 72 seconds.")
        return Reply("A coder measures.") if has_results(request) else delegation

    delegation = call("delegate", type="coder", mission="Measure it.", **{"async": True})
    ours = office(answers)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS, "Measure the build")
    ours.work()
    assert ours.team.todos.get(todo.id).status is TodoStatus.COMPLETED
    agents = [agent for agent, _ in ours.asked]
    assert agents.index("coder") < agents.index("mission-lead"), "the Lead reviews after the result has arrived"
    reviews = [request for agent, request in ours.asked if agent == "mission-lead"]
    assert "The build takes 72 seconds." in last_words(reviews[0])


@pytest.mark.spec("M8")
def test_the_lead_resumes_an_idle_todo_with_a_message_and_the_question_is_closed(office: Open) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        if agent == "mission-lead":
            return complete(ours, request) if "Ready" in last_words(request) else Reply("Not good enough.")
        return Reply("Ready." if "Use the new loader" in last_words(request) else "Tried.")

    ours = office(answers, todo={"maxReviews": 0})
    team = ours.team
    todo = team.todo_in(TodoStatus.IN_PROGRESS, "Replace the loader")
    ours.work()
    assert [item.kind for item in ours.services.inbox.list()] == ["escalation"]
    team.update(todo, TodoAction.RESUME, "Use the new loader.")
    assert ours.services.inbox.list() == []
    with pytest.raises(IllegalTransition, match="A run works on"):
        team.update(todo, TodoAction.RESUME, "again")
    ours.work()
    assert team.todos.get(todo.id).status is TodoStatus.COMPLETED


@pytest.mark.spec("M12")
def test_an_unanswered_approval_stops_neither_other_pillars_nor_later_cycles(office: Open) -> None:
    """It is never answered, for 40 days."""

    def answers(agent: str, request: ModelRequest) -> Reply:
        text = words(request)
        if agent == "pillar-owner" and ("Execute: Deploy" in text or "Please deploy" in text):
            return call("run_command", command="make deploy")
        return Reply("Noted.")

    ours = office(answers, cadence={"cron": "0 9 * * *", "timezone": "UTC"})
    team, pillars = ours.team, ours.team.pillars
    chats = MessageQueue(team.store)
    person = team.person.actor
    team.todo_in(TodoStatus.IN_PROGRESS, "Deploy")
    chats.add(MissionScope(pillars[BUILD].conversation_id, person), "Please deploy.")
    ours.work(Mode.DEFAULT)
    waiting = [run for run in ours.services.runs.list() if run.status is RunStatus.WAITING]
    assert {run.kind for run in waiting} == {RunKind.EXECUTE, RunKind.CHAT}
    for _ in range(4):
        ours.clock.advance(days=10)
        ours.work(Mode.DEFAULT)
        # A cycle gives planning that cannot start ten minutes.
        ours.clock.advance(minutes=11)
        ours.work(Mode.DEFAULT)
    cycles = [run for run in ours.services.runs.list(ended=True, limit=500) if run.kind is RunKind.CYCLE]
    assert [run.status for run in cycles] == [RunStatus.DONE] * 4
    planned = [run for run in ours.services.runs.list(ended=True, limit=500) if run.kind is RunKind.PLAN]
    assert sum(run.status is RunStatus.DONE and run.pillar_id == pillars[ONBOARDING].id for run in planned) == 4
    reviews = ours.services.conversations.messages(team.mission.conversation_id)
    told = [
        message.content for message in reviews if message.kind == NoticeKind.CYCLE_REPORT and message.role == "user"
    ]
    assert "skipped" in told[-1]
    chats.add(MissionScope(pillars[ONBOARDING].conversation_id, person), "Hello?")
    ours.work(Mode.DEFAULT)
    answered = ours.services.conversations.messages(pillars[ONBOARDING].conversation_id)
    assert "Noted." in answered[-1].content
