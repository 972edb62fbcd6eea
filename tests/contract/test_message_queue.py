"""What is said while the agent works waits, can be changed, and begins the next turn, once (S10)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.conftest import ROOT, StoppedClock
from tests.contract.front import by_hand, nothing_changes, trail
from tests.unit.examples import examples

from punchlist.audit.check import check
from punchlist.conversations.message_queue import MessageQueue, stream
from punchlist.conversations.model import DeliveredMessage, Scope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

ADA = Actor(Role.PERSON, "ada")
AGENT = Actor(Role.SUPERVISOR, "test")


@pytest.fixture
def queue(store: Store) -> MessageQueue:
    return MessageQueue(store)


@pytest.fixture
def person() -> Scope:
    return Scope("s", ADA)


def waiting(queue: MessageQueue) -> list[str]:
    return [one.content for one in queue.pending("s")]


def deliver_all(queue: MessageQueue, conversations: Conversations, agent: Scope) -> list[DeliveredMessage]:
    """As the loop does: whenever a turn has ended."""
    found = []
    while delivered := queue.deliver(agent):
        found.append(delivered)
        conversations.end_turn(agent, reason="completed")
    return found


def problems(store: Store) -> list[str]:
    return check(store, SCHEMA_VERSION).problems


# --- waiting --------------------------------------------------------------------------------------------------


@pytest.mark.spec("S10")
def test_what_a_person_says_waits_in_its_order(store: Store, queue: MessageQueue, person: Scope) -> None:
    for said in ("first", " second\nline ", "third"):
        queue.add(person, said)
    assert waiting(queue) == waiting(MessageQueue(store)) == ["first", "second\nline", "third"]
    assert [(one.said_by, one.status, one.turn_id) for one in queue.pending("s")] == [
        ("person:ada", "queued", None)
    ] * 3
    assert queue.pending("another") == []
    assert problems(store) == []


@pytest.mark.spec("S10")
def test_a_message_that_waits_can_be_said_otherwise_and_keeps_its_place(
    queue: MessageQueue, person: Scope, clock: StoppedClock
) -> None:
    first, _ = queue.add(person, "first"), queue.add(person, "second")
    clock.advance(seconds=1)
    edited = queue.edit(person, first.id, "first, but better")
    assert waiting(queue) == ["first, but better", "second"]
    assert (edited.created_at, edited.changed_at) == ("2026-02-21T09:00:00.000000Z", "2026-02-21T09:00:01.000000Z")


@pytest.mark.spec("S10")
def test_a_message_that_was_withdrawn_is_not_delivered(
    queue: MessageQueue, conversations: Conversations, person: Scope, agent: Scope
) -> None:
    first = queue.add(person, "first")
    queue.add(person, "second")
    queue.withdraw(person, first.id)
    assert waiting(queue) == ["second"]
    assert [one.queued.content for one in deliver_all(queue, conversations, agent)] == ["second"]


@pytest.mark.spec("S10")
@pytest.mark.parametrize("content", ["", " \n ", "a\x00b", "\ud800", "x" * (MAX_MESSAGE_LENGTH + 1), 5])
def test_what_cannot_be_a_message_is_refused_and_nothing_changes(
    store: Store, queue: MessageQueue, person: Scope, content: str
) -> None:
    made = queue.add(person, "good")
    with nothing_changes(store):
        with pytest.raises(InvalidInput, match=r"^content: must "):
            queue.add(person, content)
        with pytest.raises(InvalidInput, match=r"^content: must "):
            queue.edit(person, made.id, content)


@pytest.mark.spec("S10")
def test_only_a_person_queues_and_only_who_begins_turns_delivers(
    store: Store, queue: MessageQueue, person: Scope, agent: Scope
) -> None:
    made = queue.add(person, "hello")
    worker = Scope("s", Actor(Role.WORKER, "coder"))
    with nothing_changes(store):
        for scope in (agent, worker, Scope("s", SYSTEM)):
            with pytest.raises(NotAllowed):
                queue.add(scope, "for myself")
            with pytest.raises(NotAllowed):
                queue.edit(scope, made.id, "for myself")
            with pytest.raises(NotAllowed):
                queue.withdraw(scope, made.id)
        for scope in (person, worker):
            with pytest.raises(NotAllowed):
                queue.deliver(scope)


@pytest.mark.spec("S10")
def test_a_message_is_found_by_the_end_of_its_id_in_its_own_session(queue: MessageQueue, person: Scope) -> None:
    # Seventeen ids: at least two end with the same digit.
    made = [queue.add(person, f"message {number}") for number in range(17)]
    first = made[0]
    assert queue.find("s", first.id) == queue.find("s", first.id[-12:]) == first
    ends = [one.id[-1] for one in made]
    with pytest.raises(InvalidInput, match=r"is the end of \d+ ids"):
        queue.find("s", next(end for end in ends if ends.count(end) > 1))
    for session, wanted in (("s", ""), ("s", "nonsense"), ("another", first.id)):
        with pytest.raises(NotFound, match="`punchlist queue` lists"):
            queue.find(session, wanted)


# --- delivery -------------------------------------------------------------------------------------------------


@pytest.mark.spec("S10")
def test_each_message_begins_a_turn_of_its_own_in_their_order(
    store: Store, queue: MessageQueue, conversations: Conversations, person: Scope, agent: Scope
) -> None:
    said = ["first", "second", "third"]
    for one in said:
        queue.add(person, one)
    delivered = deliver_all(queue, conversations, agent)
    assert [one.queued.content for one in delivered] == said
    assert len({one.turn.id for one in delivered}) == 3
    messages = conversations.messages("s")
    assert [(one.role, one.kind, one.content, one.turn_id) for one in messages] == [
        ("user", "text", one.queued.content, one.turn.id) for one in delivered
    ]
    assert {one.queued.turn_id for one in delivered} == {one.turn.id for one in delivered}
    assert queue.pending("s") == []
    assert problems(store) == []


@pytest.mark.spec("S10")
def test_nothing_is_delivered_while_a_turn_is_open_or_nothing_waits(
    store: Store, queue: MessageQueue, conversations: Conversations, person: Scope, agent: Scope
) -> None:
    with nothing_changes(store):
        assert queue.deliver(agent) is None
    conversations.open_turn(agent)
    queue.add(person, "when you are done")
    with nothing_changes(store):
        assert queue.deliver(agent) is None
    conversations.end_turn(agent, reason="completed")
    assert queue.deliver(agent)


@pytest.mark.spec("S10")
def test_a_turn_that_a_message_begins_belongs_to_the_process_that_took_it(
    store: Store, queue: MessageQueue, conversations: Conversations, person: Scope, agent: Scope
) -> None:
    queue.add(person, "hello")
    delivered = queue.deliver(agent, owner="host/1/2")
    assert delivered
    assert delivered.turn.owner == "host/1/2"
    assert conversations.current_turn("s") == delivered.turn
    assert problems(store) == []


@pytest.mark.spec("S10")
def test_a_process_that_dies_while_it_begins_the_turn_loses_nothing(
    store: Store, queue: MessageQueue, person: Scope, agent: Scope
) -> None:
    queue.add(person, "hello")

    def begin_and_die() -> None:
        with store.write() as tx:
            assert queue.deliver_next(tx, agent)
            raise ZeroDivisionError

    with nothing_changes(store), pytest.raises(ZeroDivisionError):
        begin_and_die()
    assert waiting(queue) == ["hello"]


@pytest.mark.spec("S10")
def test_a_message_that_has_ended_takes_no_further_step(
    store: Store, queue: MessageQueue, person: Scope, agent: Scope
) -> None:
    taken, withdrawn = queue.add(person, "taken"), queue.add(person, "withdrawn")
    queue.withdraw(person, withdrawn.id)
    queue.deliver(agent)
    with nothing_changes(store):
        for id, status in ((taken.id, "delivered"), (withdrawn.id, "withdrawn")):
            with pytest.raises(IllegalTransition, match=f"queued message that is {status}"):
                queue.edit(person, id, "too late")
            with pytest.raises(IllegalTransition, match=f"queued message that is {status}"):
                queue.withdraw(person, id)


# --- the trail ------------------------------------------------------------------------------------------------


@pytest.mark.spec("S10", "X5")
def test_every_step_of_a_message_is_in_the_trail_without_its_content(
    store: Store, queue: MessageQueue, person: Scope, agent: Scope
) -> None:
    made = queue.add(person, "a secret plan")
    queue.edit(person, made.id, "another plan")
    queue.deliver(agent)
    events = trail(store, stream("s"))
    assert [(event.actor, event.action, event.to_status) for event in events] == [
        ("person:ada", "queue", "queued"),
        ("person:ada", "edit", "queued"),
        ("supervisor:test", "deliver", "delivered"),
    ]
    assert not [event for event in events if "plan" in event.data]


@pytest.mark.spec("S10", "X5")
@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE queued_messages SET content = 'other'",
        "UPDATE queued_messages SET status = 'withdrawn'",
        "UPDATE queued_messages SET position = 7",
        "UPDATE queued_messages SET said_by = 'person:eve'",
        "UPDATE queued_messages SET turn_id = NULL",
        "UPDATE messages SET content = 'other'",
        "DELETE FROM queued_messages",
        "DELETE FROM events WHERE stream = 'queue:s' AND action = 'deliver'",
        "DELETE FROM events WHERE stream = 'queue:s'",
    ],
)
def test_a_queue_that_was_changed_by_hand_is_noticed(
    store: Store, queue: MessageQueue, person: Scope, agent: Scope, harm: str
) -> None:
    queue.add(person, "hello")
    queue.deliver(agent)
    assert problems(store) == []
    by_hand(store, harm)
    assert problems(store)


@pytest.mark.spec("S10", "X5")
def test_a_message_that_waits_without_a_trail_is_noticed(store: Store, queue: MessageQueue, person: Scope) -> None:
    queue.add(person, "hello")
    by_hand(store, "DELETE FROM events WHERE stream = 'queue:s'")
    assert problems(store) == ["queued_messages: has 1 rows, its events made 0"]


# --- several at once ------------------------------------------------------------------------------------------


@pytest.mark.spec("S10")
def test_of_many_who_take_one_message_at_once_exactly_one_gets_it(
    store: Store, queue: MessageQueue, person: Scope, agent: Scope
) -> None:
    queue.add(person, "the one")
    start = Barrier(8)

    def take(_: int) -> DeliveredMessage | None:
        start.wait(60)
        return MessageQueue(store).deliver(agent)

    with ThreadPoolExecutor(8) as pool:
        taken = [one for one in pool.map(take, range(8)) if one]
    assert [one.queued.content for one in taken] == ["the one"]
    assert problems(store) == []


@pytest.mark.spec("S10")
def test_two_processes_deliver_everything_once_and_in_order(
    store: Store, database: str, queue: MessageQueue, conversations: Conversations, person: Scope
) -> None:
    said = [f"message {number}" for number in range(40)]
    for one in said[:20]:
        queue.add(person, one)
    command = [sys.executable, "-m", "tests.contract.deliverer", database]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    # A person goes on typing meanwhile.
    for one in said[20:]:
        queue.add(person, one)
    taken = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    left = waiting(queue)
    delivered = [message.content for message in conversations.messages("s")]
    assert delivered + left == said
    assert sorted(taken[0] + taken[1]) == sorted(delivered)
    assert [sorted(each, key=said.index) for each in taken] == taken
    assert problems(store) == []


# --- random steps against a list ------------------------------------------------------------------------------

contents = st.sampled_from(["A", "B", "日本", "two\nlines"])
which = st.integers(min_value=0, max_value=7)
hands = st.integers(min_value=0, max_value=1)


class QueueMachine(RuleBasedStateMachine):
    """Two handles on one database, as two processes have them, and a list of what waits."""

    stores: ClassVar[tuple[Store, Store]]
    numbers: ClassVar = count(1)

    def __init__(self) -> None:
        super().__init__()
        self.session = f"machine-{next(self.numbers)}"
        self.person, self.agent = Scope(self.session, ADA), Scope(self.session, AGENT)
        self.queues = [MessageQueue(store) for store in self.stores]
        self.conversations = Conversations(self.stores[0])
        self.waiting: list[tuple[str, str]] = []
        self.ended: list[str] = []
        self.delivered: list[str] = []
        self.busy = False

    @rule(hand=hands, content=contents)
    def add(self, hand: int, content: str) -> None:
        self.waiting.append((self.queues[hand].add(self.person, content).id, content))

    @precondition(lambda self: self.waiting)
    @rule(hand=hands, index=which, content=contents)
    def edit(self, hand: int, index: int, content: str) -> None:
        index %= len(self.waiting)
        id, _ = self.waiting[index]
        self.queues[hand].edit(self.person, id, content)
        self.waiting[index] = (id, content)

    @precondition(lambda self: self.waiting)
    @rule(hand=hands, index=which)
    def withdraw(self, hand: int, index: int) -> None:
        id, _ = self.waiting.pop(index % len(self.waiting))
        self.queues[hand].withdraw(self.person, id)
        self.ended.append(id)

    @rule(hand=hands)
    def deliver(self, hand: int) -> None:
        delivered = self.queues[hand].deliver(self.agent)
        assert (delivered is not None) == (bool(self.waiting) and not self.busy)
        if delivered:
            assert (delivered.queued.id, delivered.queued.content) == self.waiting.pop(0)
            self.ended.append(delivered.queued.id)
            self.delivered.append(delivered.queued.content)
            self.busy = True

    @rule()
    def finish(self) -> None:
        self.conversations.end_turn(self.agent, reason="completed")
        self.busy = False

    @precondition(lambda self: self.ended)
    @rule(hand=hands, index=which)
    def touch_what_has_ended(self, hand: int, index: int) -> None:
        id = self.ended[index % len(self.ended)]
        with pytest.raises(IllegalTransition):
            self.queues[hand].edit(self.person, id, "too late")
        with pytest.raises(IllegalTransition):
            self.queues[hand].withdraw(self.person, id)

    @invariant()
    def both_see_the_same(self) -> None:
        for queue in self.queues:
            assert [(one.id, one.content) for one in queue.pending(self.session)] == self.waiting
        assert [one.content for one in self.conversations.messages(self.session)] == self.delivered

    def teardown(self) -> None:
        assert check(self.stores[0], SCHEMA_VERSION).problems == []


@pytest.fixture
def handles(store: Store, database: str, clock: StoppedClock) -> Iterator[tuple[Store, Store]]:
    other = open_store(database, clock=clock)
    yield store, other
    other.close()


@pytest.mark.spec("S10", "X5")
def test_random_steps_of_two_handles_do_what_a_simple_list_does(handles: tuple[Store, Store]) -> None:
    QueueMachine.stores = handles
    number = 30 if handles[0].database.kind == "sqlite" else 6
    run_state_machine_as_test(QueueMachine, settings=settings(examples(number), stateful_step_count=25))
