"""The state of a session as its hooks see it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from punchlist.agent.list_state import ListState
from punchlist.agent.message_kinds import CONTINUATION
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.conversations.model import Message, StoredTurn
from punchlist.integrations.session_history import SessionHistory
from punchlist.kernel.processes import is_running
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.verification.model import Verification
from punchlist.verification.output import failure_key


@dataclass(frozen=True, slots=True)
class UncheckedItem:
    id: str
    title: str
    verification: Verification
    turn_id: str | None = None
    """The turn of a plan todo; None for an item of the checklist."""


@dataclass(frozen=True, slots=True)
class SessionState:
    turn: StoredTurn | None
    messages: tuple[Message, ...]
    request: Message | None
    """The user's last message in the turn."""
    lists: ListState
    checklist: Checklist
    todos: tuple[TurnTodo, ...]
    """The plan of the turn."""
    history: SessionHistory
    planned_by_person: bool
    """A person created the whole plan since the user's last message."""

    @property
    def fingerprint(self) -> str:
        """Changes with what the lists contain, not with every write: an item that is completed and opened again
        because its check fails as before is no progress (C5)."""
        plan = [
            (todo.id, todo.title, todo.status, todo.outcome, todo.verification and failure_key(todo.verified()))
            for todo in self.todos
        ]
        items = [(item.id, item.content, item.status, failure_key(item.verification)) for item in self.checklist.items]
        return hashlib.sha256(repr((plan, items)).encode(errors="surrogateescape")).hexdigest()[:32]

    @property
    def unchecked(self) -> list[UncheckedItem]:
        """Completed items whose check has not been run since they were completed."""
        return [*unchecked_todos(self.todos), *unchecked_items(self.checklist.items)]

    @property
    def continuations(self) -> list[Message]:
        """Since the user's last message."""
        last = self.request.position if self.request else 0
        return [message for message in self.messages if message.kind == CONTINUATION and message.position > last]

    @property
    def fruitless_continuations(self) -> int:
        """The continuations since the user's last message, less one for each item completed since the first (C4)."""
        continuations = self.continuations
        if not continuations:
            return 0
        since = continuations[0].created_at
        todos = {
            todo.id for todo in self.todos if todo.status is PlanStatus.COMPLETED and (todo.completed_at or "") >= since
        }
        # A completed item may have left the list since.
        still_open = {item.id for item in self.checklist.items if item.is_open}
        items = {id for at, id in self.history.completions if at >= since and id not in still_open}
        return max(0, len(continuations) - len(todos) - len(items))

    @property
    def has_open_plan(self) -> bool:
        listed = {item.id for item in self.checklist.items}
        return any(item.id not in listed for item in self.lists.open)

    @property
    def is_earlier_list(self) -> bool:
        """Everything open existed before the host session started."""
        return self.history.initial_revision == self.checklist.revision and not self.has_open_plan

    @property
    def is_untouched(self) -> bool:
        """The agent has not changed its checklist since the user's last message, and has no plan."""
        changed_at = self.checklist.updated_at
        if self.request is None or changed_at is None or self.has_open_plan:
            return False
        return changed_at < self.request.created_at

    @property
    def is_prepared(self) -> bool:
        """A person planned the turn, and this is the user's first message about it."""
        begun_by_person = self.history.turn_of_person == (self.turn.id if self.turn else "")
        if begun_by_person and not self.continuations and not self.request:
            return True
        return self.has_open_plan and self.planned_by_person

    @property
    def is_owned_by_own_agent(self) -> bool:
        owner = self.turn.owner if self.turn else None
        return owner is not None and is_running(owner) is not False


def unchecked_todos(todos: Sequence[TurnTodo]) -> Iterator[UncheckedItem]:
    for todo in todos:
        # Most todos have no verification to decode.
        if todo.status is PlanStatus.COMPLETED and todo.verification is not None:
            verification = todo.verified()
            if verification.needs_check:
                yield UncheckedItem(todo.id, todo.title, verification, todo.turn_id)


def unchecked_items(items: Sequence[ChecklistItem]) -> Iterator[UncheckedItem]:
    for item in items:
        if item.status is ChecklistStatus.COMPLETED and item.verification.needs_check:
            yield UncheckedItem(item.id, item.content, item.verification)
