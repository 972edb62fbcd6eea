"""A turn that ends takes its open calls and questions with it: a person is not asked about work that has stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office, call, has_results

from punchlist.agent.turn_process import interrupt_turn
from punchlist.audit.check import check
from punchlist.conversations.model import NewMessage, Scope, StoredTurn
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import current_process
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.models.model import ModelRequest, Reply
from punchlist.runs import service as run_service
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.queue import RunQueue
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.toolcalls import repository as call_repository
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.stored_call import StoredCall

pytestmark = pytest.mark.spec("I1", "M11")
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


def asks(agent: str, request: ModelRequest) -> Reply:
    """Asks for an approval."""
    return call("write_file", path="x", content="hello")


def delegates(agent: str, request: ModelRequest) -> Reply:
    """A worker of the owner asks."""
    if agent == "pillar-owner" and not has_results(request):
        return call("delegate", type="coder", mission="Write it.")
    return asks(agent, request)


def questions(agent: str, request: ModelRequest) -> Reply:
    """The plan waits for a person."""
    if has_results(request):
        return Reply("It waits.")
    return call("create_todo", items=[{"title": "Roll out", "blockedBy": [{"person": "Which region?"}]}])


def stop_live(ours: Office, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours.services.runs.stop(ours.team.person, run_id, "enough")
    ours.work(Mode.DEFAULT)


def stop_dead(ours: Office, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_service, "is_running", lambda _: False)
    ours.services.runs.stop(ours.team.person, run_id, "enough")


def cancel_todo(ours: Office, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    todo_id = ours.services.runs.get(run_id).todo_id
    ours.team.todos.update(ours.team.person, ours.team.slug, str(todo_id), TodoAction.CANCEL, "enough")
    ours.work(Mode.DEFAULT)


def interrupt(ours: Office, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_turn(ours.services, ours.services.runs.get(run_id).conversation_id)
    ours.work(Mode.DEFAULT)


@pytest.mark.parametrize("answers", [asks, delegates, questions])
@pytest.mark.parametrize("end", [stop_live, stop_dead, cancel_todo, interrupt])
def test_a_run_that_ends_leaves_no_request_in_the_inbox(
    office: Open,
    answers: Answers,
    end: Callable[[Office, str, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = office(answers)
    services, person = ours.services, ours.team.person
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work(Mode.DEFAULT)
    (item,) = services.inbox.list()
    assert item.kind == ("question" if answers is questions else "approval")
    (run,) = services.runs.for_todo(todo.id)
    end(ours, run.id, monkeypatch)
    assert services.runs.get(run.id).status is RunStatus.STOPPED
    assert {each.kind for each in services.inbox.list()} <= {"escalation"}
    assert {each.kind for each in services.inbox.about_todo(todo.id)} <= {"escalation"}
    assert services.inbox.from_chat(run.conversation_id) == []
    with pytest.raises(NotFound, match=f"Request '{item.number}' is closed."):
        services.inbox.find(str(item.number))
    if item.kind == "approval":
        assert services.approvals.waiting() == []
        stored = services.approvals.find(item.id)
        assert (stored.status, services.approvals.call(item.id).status) == ("withdrawn", "cancelled")
        with pytest.raises(Conflict, match=r"The turn that asked has ended \(cancelled: "):
            services.approvals.answer(item.id, ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, person.actor))
        # Also by the end of its id.
        assert services.approvals.find(item.id[-8:]).call_id == item.id
        with pytest.raises(NotFound, match="The turn that asked has ended"):
            services.inbox.find(str(item.number))
    assert check(services.store, SCHEMA_VERSION).problems == []


def test_a_run_that_fails_leaves_no_request_in_the_inbox(office: Open) -> None:
    ours = office(asks)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work(Mode.DEFAULT)
    (run,) = ours.services.runs.for_todo(todo.id)
    assert RunQueue(ours.services.store, "other").fail_lost(run, "the durable engine lost the run")
    assert ours.services.inbox.list() == []
    assert ours.services.conversations.turn(str(run.turn_id)).end_reason == "error: the durable engine lost the run"


def test_a_stop_ends_a_turn_that_its_worker_has_begun_and_not_recorded(office: Open) -> None:
    ours = office(asks)
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work(Mode.DEFAULT)
    (run,) = ours.services.runs.for_todo(todo.id)
    conversations, scope = ours.services.conversations, Scope(run.conversation_id, Actor(Role.LEAD, "mission-lead"))
    request = NewMessage("user", "text", "Review it.")
    begun = conversations.begin_turn(scope, reason="a run", request=request, abandoned=True, run_id=run.id)
    ours.services.runs.stop(ours.team.person, run.id, "enough")
    ours.work(Mode.DEFAULT)
    assert conversations.turn(begun.id).end_reason == "cancelled: enough"
    assert [item.kind for item in ours.services.inbox.list()] == ["escalation"]


def test_what_an_earlier_version_left_open_is_not_listed_and_not_answered(office: Open) -> None:
    ours = office(asks)
    services, person = ours.services, ours.team.person
    todo = ours.team.todo_in(TodoStatus.IN_PROGRESS)
    ours.work(Mode.DEFAULT)
    (item,) = services.inbox.list()
    with services.store.write() as tx:
        tx.raw_step("UPDATE turns SET ended_at = '2026-02-21T09:00:00.000000Z', end_reason = 'cancelled: long ago'")
    assert services.approvals.find(item.id).status == "pending"
    assert (services.inbox.list(), services.inbox.counts(), services.approvals.waiting()) == ([], {}, [])
    assert services.inbox.about_todo(todo.id) == []
    with pytest.raises(Conflict, match="The turn that asked has ended"):
        services.approvals.answer(item.id, ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, person.actor))


# --- in a session -----------------------------------------------------------------------------------------


def stored_call(turn: StoredTurn, status: str, owner: str, id: str) -> StoredCall:
    started = turn.started_at if status == "executing" else None
    return StoredCall(
        *(id, turn.conversation_id, turn.id, len(id), "work", "{}", None, status, None, None, "{}", "/project"),
        *(owner, None, None, None, None, turn.started_at, started, None),
    )


@pytest.mark.parametrize("how", ["ended", "replaced"])
def test_the_end_of_a_turn_in_a_session_ends_its_calls(store: Store, how: str) -> None:
    conversations, scope = Conversations(store), Scope("s", Actor(Role.SUPERVISOR, "supervisor"))
    turn = conversations.open_turn(scope)
    dead, live = f"{socket.gethostname()}:999999999:1", current_process()
    with store.write() as tx:
        for number, (status, owner) in enumerate(
            [("scheduled", dead), ("awaiting_approval", live), ("executing", dead), ("executing", live)], start=1
        ):
            assert call_repository.insert_call(tx, stored_call(turn, status, owner, "c" * number))
    if how == "ended":
        conversations.end_turn(scope, reason="enough")
    else:
        conversations.begin_turn(scope, reason="another request")
    with store.read() as tx:
        found = [call_repository.find_call(tx, "c" * number) for number in range(1, 5)]
    # The process that executes the last one ends it.
    assert [each and each.status for each in found] == ["cancelled", "cancelled", "error", "executing"]
    assert [each and each.error_code for each in found] == [None, None, "interrupted", None]
