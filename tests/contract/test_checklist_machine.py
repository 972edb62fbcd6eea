"""Random calls on a checklist, good and bad, against a model of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.contract.front import todo
from tests.sessions import start_session
from tests.unit.examples import examples

from punchlist.checklist.lifecycle import CHECKLIST, OPEN, SENDABLE, ChecklistAction, ChecklistStatus
from punchlist.checklist.model import ChecklistItem
from punchlist.checklist.replay import replay_checklist
from punchlist.checklist.repository import checklist_stream
from punchlist.checklist.service import Checklists
from punchlist.checklist.validation import MAX_DROPPED
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotFound, PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.storage import event_log
from punchlist.storage.store import Store

LIMIT = 20
MOVES = [action for action in ChecklistAction if action not in (ChecklistAction.CHECK, ChecklistAction.ACCEPT)]
contents = st.sampled_from(["A", "B", "C", "日本", "🧑‍💻"])
statuses = st.sampled_from(SENDABLE)
which = st.integers(min_value=0, max_value=7)
wanted_lists = st.lists(st.tuples(contents, statuses, st.none() | which), max_size=6) | st.lists(
    st.tuples(contents, st.just(ChecklistStatus.PENDING), st.none()), min_size=18, max_size=22
)
bad_items = st.sampled_from(
    [
        *(None, "A", {}, todo(""), todo("x" * 501), todo("a\nb"), todo("A", "cancelled"), todo("A", None)),
        *(todo("A", id=7), todo("A", "dropped"), todo("A", "cancelled", reason=""), todo("A", check=7)),
    ]
)


@dataclass(frozen=True)
class Node:
    """A list, and the one an undo leads back to."""

    items: tuple[ChecklistItem, ...] = ()
    before: Node | None = None


class ChecklistMachine(RuleBasedStateMachine):
    store: ClassVar[Store]
    numbers: ClassVar = count(1)

    def __init__(self) -> None:
        super().__init__()
        conversations = Conversations(self.store)
        self.checklists = Checklists(self.store, conversations)
        self.scope = Scope(f"machine-{next(self.numbers)}", Actor(Role.SUPERVISOR, "test"))
        start_session(self.store, self.scope)
        self.now = Node()
        self.revision = 0

    # --- what may be called -----------------------------------------------------------------------

    @rule(wanted=wanted_lists)
    def rewrite(self, wanted: list[tuple[str, ChecklistStatus, int | None]]) -> None:
        ids = [self._id_at(index) for _, _, index in wanted]
        sent = [
            todo(content, status.value, id=id, reason="because")
            for (content, status, _), id in zip(wanted, ids, strict=True)
        ]
        named = [id for id in ids if id]
        running = [status for _, status, _ in wanted if status is ChecklistStatus.IN_PROGRESS]
        same = self._matches(wanted, ids)
        left_out = [item for item in self.now.items if item.is_open and item.id not in same]
        too_many = len(sent) > LIMIT or len(left_out) > MAX_DROPPED
        if too_many or len(running) > 1 or len(set(named)) < len(named):
            self._refused(InvalidInput, lambda: self.checklists.rewrite(self.scope, sent))
            return
        before = self.now.items
        rewrite = self.checklists.rewrite(self.scope, sent)
        after = rewrite.checklist.items
        new, dropped = after[: len(sent)], after[len(sent) :]
        assert [(item.content, item.status) for item in new] == [(content, status) for content, status, _ in wanted]
        known = {item.id for item in before}
        assert [item.id if item.id in known else None for item in new] == same
        assert [item.id for item in dropped] == [item.id for item in left_out]
        assert {item.status for item in dropped} <= {ChecklistStatus.DROPPED}
        assert rewrite.dropped == tuple(item for item in left_out if item.status is not ChecklistStatus.DROPPED)
        self._became(after)

    @rule(content=contents)
    def add(self, content: str) -> None:
        def change() -> tuple[ChecklistItem, ...]:
            return self.checklists.add(self.scope, content, reason="test").checklist.items

        items = self.now.items
        listed = self._listed(items)
        if len(listed) == LIMIT:
            self._refused(InvalidInput, change)
            return
        after = change()
        new = after[len(listed)]
        assert tuple(item for item in after if item is not new) == items
        assert new.id not in {item.id for item in items}
        assert (new.content, new.status) == (content, ChecklistStatus.PENDING)
        self._became(after)

    @precondition(lambda self: self.now.items)
    @rule(index=which, action=st.sampled_from(MOVES))
    def advance(self, index: int, action: ChecklistAction) -> None:
        def change() -> tuple[ChecklistItem, ...]:
            return self.checklists.advance(self.scope, str(chosen + 1), action, reason="test").checklist.items

        items = self.now.items
        chosen = index % len(items)
        status = CHECKLIST.table.get((items[chosen].status, action))
        if status is None or (status is ChecklistStatus.IN_PROGRESS and any(item.status is status for item in items)):
            self._refused(IllegalTransition, change)
            return
        if items[chosen].status is ChecklistStatus.DROPPED and len(self._listed(items)) == LIMIT:
            self._refused(InvalidInput, change)
            return
        after = change()
        states = {item.id: item.status for item in items} | {items[chosen].id: status}
        assert {item.id: item.status for item in after} == states
        self._became(after)

    @precondition(lambda self: self.now.items)
    @rule(index=which, content=contents)
    def edit(self, index: int, content: str) -> None:
        items = self.now.items
        chosen = items[index % len(items)]
        after = self.checklists.edit(self.scope, chosen.id, content, reason="test").checklist.items
        assert [(item.id, item.status) for item in after] == [(item.id, item.status) for item in items]
        assert [item.content for item in after] == [content if item is chosen else item.content for item in items]
        self._became(after)

    @precondition(lambda self: self.now.items)
    @rule(index=which)
    def remove(self, index: int) -> None:
        items = self.now.items
        chosen = items[index % len(items)]
        self.checklists.remove(self.scope, chosen.id, reason="test")
        self._became([item for item in items if item is not chosen])

    @rule(good=st.lists(contents.map(todo), max_size=3), bad=bad_items, past=which)
    def meddle(self, good: list[Any], bad: Any, past: int) -> None:
        """A bad item, and one that is not there."""
        self._refused(InvalidInput, lambda: self.checklists.rewrite(self.scope, [*good, bad]))
        reference = str(len(self.now.items) + 1 + past)
        self._refused(
            NotFound, lambda: self.checklists.advance(self.scope, reference, ChecklistAction.START, reason="test")
        )
        self._refused(NotFound, lambda: self.checklists.edit(self.scope, reference, "A", reason="test"))
        self._refused(NotFound, lambda: self.checklists.remove(self.scope, "nothing", reason="test"))

    @precondition(lambda self: len(self.now.items) > 4)
    @rule()
    def clear(self) -> None:
        self.checklists.clear(self.scope, reason="test")
        self._became(())

    @rule()
    def undo(self) -> None:
        if self.now.before is None:
            self._refused(IllegalTransition, lambda: self.checklists.undo(self.scope, reason="test"))
            self.add("A")
            return
        self.checklists.undo(self.scope, reason="test")
        self.now = self.now.before
        self.revision += 1

    # --- what always holds ------------------------------------------------------------------------

    @invariant()
    def the_list_is_the_models(self) -> None:
        stored = self.checklists.get(self.scope.conversation_id)
        assert (stored.items, stored.revision) == (self.now.items, self.revision)
        assert len(self._listed(stored.items)) <= LIMIT
        assert self._listed(stored.items) == stored.items[: len(self._listed(stored.items))]
        assert sum(1 for item in stored.items if item.status is ChecklistStatus.IN_PROGRESS) <= 1
        assert len({item.id for item in stored.items}) == len(stored.items)

    @invariant()
    def the_trail_tells_the_same(self) -> None:
        with self.store.read() as tx:
            events = event_log.read_stream(tx, checklist_stream(self.scope.conversation_id))
        assert len(events) == self.revision
        assert list(event_log.broken_links(events)) == []
        if events:
            assert replay_checklist(events) == self.checklists.get(self.scope.conversation_id)

    # --- the model --------------------------------------------------------------------------------

    def _listed(self, items: Sequence[ChecklistItem]) -> tuple[ChecklistItem, ...]:
        return tuple(item for item in items if item.status is not ChecklistStatus.DROPPED)

    def _matches(
        self, wanted: Sequence[tuple[str, ChecklistStatus, int | None]], named: Sequence[str | None]
    ) -> list[str | None]:
        """The item that each one of a replacement is: by id, else by content, else none. An id does not end an item of
        another content."""
        items = {item.id: item for item in self.now.items}
        found: list[str | None] = []
        for (content, status, _), id in zip(wanted, named, strict=True):
            old = items.get(id or "")
            ends = old is not None and old.is_open and status not in OPEN
            found.append(id if old is not None and (old.content == content or not ends) else None)
        for with_id in (False, True):
            for index, (content, _, _) in enumerate(wanted):
                if found[index] is None and (named[index] is not None) is with_id:
                    same = (item.id for item in self.now.items if item.content == content and item.id not in found)
                    found[index] = next(same, None)
        return found

    def _id_at(self, index: int | None) -> str | None:
        return self.now.items[index].id if index is not None and index < len(self.now.items) else None

    def _became(self, items: Sequence[ChecklistItem]) -> None:
        if tuple(items) != self.now.items:
            self.now = Node(tuple(items), self.now)
            self.revision += 1

    def _refused(self, kind: type[PunchlistError], change: Callable[[], object]) -> None:
        with pytest.raises(kind):
            change()


def play(store: Store, on_sqlite: int, on_postgresql: int, *, new: bool = False) -> None:
    ChecklistMachine.store = store
    count = on_sqlite if store.database.kind == "sqlite" else on_postgresql
    run_state_machine_as_test(ChecklistMachine, settings=settings(examples(count, new=new), stateful_step_count=30))


@pytest.mark.spec("W1", "W2", "W3", "X5")
def test_random_calls_on_a_checklist_do_what_a_simple_model_does(store: Store) -> None:
    play(store, 50, 6)


@pytest.mark.soak
@pytest.mark.spec("W1", "W2", "W3", "X5")
def test_a_great_many_random_calls_on_a_checklist_do_what_a_simple_model_does(store: Store) -> None:
    play(store, 3_000, 500, new=True)
