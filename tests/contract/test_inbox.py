"""The inbox: every kind of request in one list, with numbers that stay, answered by one function (I1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import BUILD, Team, developer_experience
from tests.contract.toolcalls import Desk, request, soon

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import NewMessage, Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.engine.periodic import enqueue_cycle
from punchlist.errors import InvalidInput, NotAllowed, NotFound
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.run_control import MissionRuns
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan.service import Plans
from punchlist.plan.validation import parse_items
from punchlist.runs.model import Run
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.lifecycle import CallStatus
from punchlist.toolcalls.policy import Mode
from punchlist.views.inbox import Inbox
from punchlist.views.inbox_model import InboxItem, RequestKind

pytestmark = pytest.mark.spec("I1")
REQUEST = NewMessage("user", "text", "Work on it.")
ANN = Scope("s", Actor(Role.PERSON, "ann"))


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


@pytest.fixture
def inbox(store: Store) -> Inbox:
    return inbox_of(store)


def inbox_of(store: Store) -> Inbox:
    services = SimpleNamespace(
        store=store,
        approvals=Approvals(store),
        plans=Plans(store),
        escalations=Escalations(store),
        runs=MissionRuns(store),
    )
    return Inbox(cast("Any", services))


def wait_for(store: Store, session: str, **condition: str) -> None:
    """A plan todo waits for something."""
    scope = Scope(session, Actor(Role.SUPERVISOR, "supervisor"))
    turn = Conversations(store).open_turn(scope)
    todos = parse_items([{"title": "Deploy", "blockedBy": [condition]}])
    Plans(store).create(TurnScope(session, scope.actor, turn.id), todos)


def fail_cycle(team: Team) -> Run:
    run = enqueue_cycle(team.store, team.system, team.mission)
    queue = RunQueue(team.store, "worker")
    assert queue.dispatch(run)
    assert queue.begin(run.id)
    queue.fail(run.id, "the model is busy")
    return run


def escalate(team: Team, clock: StoppedClock, title: str = "Profile the build") -> None:
    team.todo_in(TodoStatus.IN_PROGRESS, title, deadline=clock.now.date().isoformat())
    clock.advance(days=1)
    OverdueService(team.store).process_mission(team.system, team.mission.id)


def ask_about(team: Team, run: Run, question: str) -> None:
    """The owner of a todo waits for a person."""
    scope = Scope(run.conversation_id, Actor(Role.OWNER, "pillar-owner"))
    turn = Conversations(team.store).begin_turn(scope, reason="a run", request=REQUEST, run_id=run.id)
    todos = parse_items([{"title": "Deploy", "blockedBy": [{"person": question}]}])
    Plans(team.store).create(TurnScope(run.conversation_id, scope.actor, turn.id), todos)


def only(inbox: Inbox, kind: RequestKind) -> InboxItem:
    (item,) = [item for item in inbox.list() if item.kind is kind]
    return item


# --- each kind --------------------------------------------------------------------------------------------


def test_an_approval_is_answered_and_the_call_runs(store: Store, inbox: Inbox) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule([request("work", {"on": "a"}, "a")])
            await soon(batch.settled())
            item = await asyncio.to_thread(only, inbox, RequestKind.APPROVAL)
            assert (item.subject, item.session, item.id) == ("work", "s", "a")
            assert item.always["tool"] == "every call of work"
            await asyncio.to_thread(inbox.answer, ANN, "1", "approve", always="tool")
            (call,) = await soon(batch.ended())
            assert call.status is CallStatus.SUCCESS
        assert inbox.list() == []

    asyncio.run(scene())


def test_a_denied_call_does_not_run_and_the_model_reads_why(store: Store, inbox: Inbox) -> None:
    async def scene() -> None:
        async with Desk(store, Mode.DEFAULT) as desk:
            batch = desk.scheduler.schedule([request("work", {"on": "a"}, "a")])
            await soon(batch.settled())
            answered = await asyncio.to_thread(inbox.answer, ANN, "1", "deny", reason="not on a Friday")
            (call,) = await soon(batch.ended())
            assert (answered.answer, call.status, desk.ran) == ("cancel", CallStatus.CANCELLED, [])
            assert "not on a Friday" in str(call)

    asyncio.run(scene())


def test_a_question_is_answered(store: Store, inbox: Inbox) -> None:
    wait_for(store, "s", person="Which region?")
    item = only(inbox, RequestKind.QUESTION)
    assert (item.subject, item.question, item.requester) == ("Deploy", "Which region?", "supervisor")
    answered = inbox.answer(ANN, str(item.number), "answer", text="eu-west")
    assert (answered.answer, answered.message) == (
        "eu-west",
        "Answered request 1: eu-west. `punchlist run --resume` continues the work.",
    )
    assert inbox.list() == []


def test_an_event_is_reported(store: Store, inbox: Inbox) -> None:
    wait_for(store, "s", event="the build has passed")
    assert inbox.answer(ANN, "1", "answer", text="build 7").item.kind is RequestKind.EVENT
    assert inbox.list() == []


def test_a_time_that_has_passed_without_a_process_to_continue_needs_a_person(
    store: Store, inbox: Inbox, clock: StoppedClock
) -> None:
    wait_for(store, "s", time=timestamp(clock.now + timedelta(hours=1)))
    assert inbox.list() == []
    clock.advance(hours=2)
    assert only(inbox, RequestKind.TIME).answers == ("acknowledge",)
    inbox.answer(ANN, "1", "acknowledge")
    assert inbox.list() == []


@pytest.mark.spec("M13")
def test_an_escalation_is_answered(team: Team, inbox: Inbox, clock: StoppedClock) -> None:
    escalate(team, clock)
    item = only(inbox, RequestKind.ESCALATION)
    assert (item.mission, item.pillar, item.todo_title) == (team.slug, BUILD, "Profile the build")
    assert item.run_id is not None
    assert item.age_seconds(clock.now + timedelta(hours=3)) == 10_800
    inbox.answer(ANN, str(item.number), "acknowledge")
    assert only(inbox, RequestKind.ESCALATION).reason == "acknowledged"
    inbox.answer(ANN, str(item.number), "extend", deadline="2026-03-21", reason="more time")
    assert team.todos.get(item.todo_id or "").deadline == "2026-03-21"
    assert RequestKind.ESCALATION not in inbox.counts()


def test_a_failed_cycle_needs_a_person(team: Team, inbox: Inbox, clock: StoppedClock) -> None:
    assert inbox.list() == []
    run = fail_cycle(team)
    item = only(inbox, RequestKind.FAILURE)
    assert (item.subject, item.mission, item.run_id) == ("cycle", team.slug, run.id)
    assert (item.question, item.answers, item.requester) == (
        "the model is busy",
        ("retry", "acknowledge"),
        run.created_by,
    )
    assert item.reason == f"is retried at {timestamp(clock.now + timedelta(minutes=1))}"
    assert inbox.find(str(item.number)) == item
    inbox.answer(ANN, str(item.number), "retry")
    assert inbox.list() == []


def test_an_acknowledged_failure_is_left_out(team: Team, inbox: Inbox) -> None:
    fail_cycle(team)
    inbox.answer(ANN, "1", "acknowledge")
    assert (inbox.list(), inbox.counts()) == ([], {})
    with pytest.raises(NotFound):
        inbox.answer(ANN, "1", "retry")


@pytest.mark.spec("I3")
def test_a_mission_without_a_worker_says_so(team: Team, inbox: Inbox, clock: StoppedClock) -> None:
    assert inbox.list() == []
    clock.advance(minutes=6)
    item = only(inbox, RequestKind.WORKER)
    assert (item.mission, "punchlist worker" in item.question) == (team.slug, True)
    inbox.answer(ANN, str(item.number), "acknowledge")
    assert inbox.list() == []


@pytest.mark.spec("I3", "M10")
@pytest.mark.parametrize("chat", ["mission", "pillar", "todos"])
def test_a_message_to_a_mission_without_a_cadence_needs_a_worker(store: Store, clock: StoppedClock, chat: str) -> None:
    team, inbox = developer_experience(store, cadence={}), inbox_of(store)
    developer_experience(store, "another", cadence={})
    clock.advance(hours=1)
    assert inbox.list() == []
    build = team.pillars[BUILD]
    chats = {"pillar": build.conversation_id, "todos": build.todo_conversation_id}
    scope = Scope(chats.get(chat, team.mission.conversation_id), ANN.actor)
    message = MessageQueue(store, Conversations(store)).add(scope, "Hello?")
    assert (only(inbox, RequestKind.WORKER).mission, len(inbox.list())) == (team.slug, 1)
    MessageQueue(store, Conversations(store)).withdraw(scope, message.id)
    assert inbox.list() == []


# --- numbers, pages, permission ---------------------------------------------------------------------------


def test_a_number_stays_with_its_request(store: Store, team: Team, inbox: Inbox, clock: StoppedClock) -> None:
    wait_for(store, "a", person="First?")
    clock.advance(seconds=1)
    wait_for(store, "b", person="Second?")
    assert [item.number for item in inbox.list()] == [1, 2]
    inbox.answer(ANN, "1", "answer", text="yes")
    wait_for(store, "c", person="Third?")
    assert [(item.number, item.question) for item in inbox.list()] == [(2, "Second?"), (3, "Third?")]
    with pytest.raises(NotFound, match="Request '1' is closed"):
        inbox.answer(ANN, "1", "answer", text="again")


def test_pages_follow_each_other(store: Store, inbox: Inbox, clock: StoppedClock) -> None:
    for number in range(5):
        wait_for(store, f"s{number}", person=f"Question {number}?")
        clock.advance(seconds=1)
    first = inbox.page(limit=2)
    second = inbox.page(limit=2, cursor=first.cursor)
    last = inbox.page(limit=2, cursor=second.cursor)
    shown = [item.question for page in (first, second, last) for item in page.items]
    assert shown == [f"Question {number}?" for number in range(5)]
    assert (first.counts, last.cursor) == ({RequestKind.QUESTION: 5}, None)
    with pytest.raises(InvalidInput, match="nextCursor"):
        inbox.page(cursor="x y")


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.PERSON])
def test_only_a_person_answers(store: Store, inbox: Inbox, role: Role) -> None:
    wait_for(store, "s", person="Which region?")
    with pytest.raises(NotAllowed, match="A person can"):
        inbox.answer(Scope("s", Actor(role, "x")), "1", "answer", text="eu")
    assert len(inbox.list()) == 1


@pytest.mark.parametrize(
    ("action", "details", "message"),
    [
        ("approve", {}, "It can be answered with: answer"),
        ("shout", {}, "must be one of approve"),
        ("answer", {"text": "eu", "deadline": "2026-03-01"}, "deadline: is not used by `answer`"),
        ("answer", {}, "answer"),
    ],
)
def test_a_wrong_answer_changes_nothing(
    store: Store, inbox: Inbox, action: str, details: dict[str, Any], message: str
) -> None:
    wait_for(store, "s", person="Which region?")
    with pytest.raises(InvalidInput, match=message):
        inbox.answer(ANN, "1", action, **details)
    assert len(inbox.list()) == 1


def test_the_number_of_statements_does_not_depend_on_the_number_of_requests(
    store: Store, team: Team, inbox: Inbox, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[Statement] = []
    for name in ("one", "all", "run"):
        monkeypatch.setattr(Transaction, name, _counting(getattr(Transaction, name), executed))

    def statements() -> int:
        inbox.list()
        executed.clear()
        inbox.list()
        return len(executed)

    wait_for(store, "s", person="Question?")
    few = statements()
    for number in range(8):
        wait_for(store, f"s{number}", person="Question?")
        escalate(team, clock, f"todo {number}")
    assert len(inbox.list()) > 16
    assert statements() == few


def _counting(execute: Callable[..., Any], executed: list[Statement]) -> Callable[..., Any]:
    def counted(tx: Transaction, statement: Statement, /, **params: Any) -> Any:
        executed.append(statement)
        return execute(tx, statement, **params)

    return counted


# --- of one todo or chat ----------------------------------------------------------------------------------


@pytest.mark.spec("X7")
def test_the_requests_of_one_todo_or_chat_are_selected(
    store: Store, inbox: Inbox, team: Team, clock: StoppedClock
) -> None:
    todo, other = team.todo_in(TodoStatus.IN_PROGRESS, "Deploy"), team.todo_in(TodoStatus.IN_PROGRESS, "Cache")
    [run], [another] = Runs(store).for_todo(todo.id), Runs(store).for_todo(other.id)
    ask_about(team, run, "Which region?")
    ask_about(team, another, "Which size?")
    escalate(team, clock)
    late = next(each for each in team.todos.list(team.slug).items if each.title == "Profile the build")
    fail_cycle(team)

    def told(items: Sequence[InboxItem]) -> list[tuple[int, str]]:
        return [(item.number, item.question) for item in items]

    assert told(inbox.about_todo(todo.id)) == [(1, "Which region?")]
    assert told(inbox.about_todo(other.id)) == [(2, "Which size?")]
    assert [item.kind for item in inbox.about_todo(late.id)] == [RequestKind.ESCALATION]
    assert told(inbox.from_chat(run.conversation_id)) == [(1, "Which region?"), (2, "Which size?")]
    assert [item.kind for item in inbox.from_chat(team.mission.conversation_id)] == [RequestKind.FAILURE]
    everything = {item.number: item for item in inbox.list()}
    assert [everything[item.number] for item in inbox.about_todo(todo.id)] == list(inbox.about_todo(todo.id))
    inbox.answer(ANN, "1", "answer", text="eu-west")
    assert inbox.about_todo(todo.id) == []
    assert inbox.from_chat("nowhere") == []
