"""What `create_todo` needs to know of a large plan, kept in memory: counts, and the ids of open todos by title.

Reading the titles of 10,000 todos for each new one takes far longer than writing it. An index holds what the plan was
at one version of its event stream; the events since then bring it up to date. It is verified by the version and the
subject of its last event: if they are no longer stored, the database was restored, and the index is useless.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from punchlist.plan.lifecycle import OPEN, PlanAction, PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.plan.validation import normalized_title

MIN_INDEXED: Final = 200
"""Todos from which on a plan is indexed. Smaller ones are read."""
MAX_INDEXES: Final = 8
_CHANGES: Final = frozenset(PlanAction)
"""Claims and answers are in the same stream but do not change todos."""


class PlanIndex:
    """Belongs to one thread at a time."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        """`rows`: id, status and title of every todo."""
        self.version = 0
        self.last_subject = ""
        self._titles: dict[str, str] = {}
        self._status: dict[str, PlanStatus] = {}
        self._open: dict[str, dict[str, None]] = {}
        """The ids of open todos by normalized title."""
        self.pending = 0
        for id, status, title in rows:
            self._set(id, PlanStatus(status), normalized_title(title))

    @property
    def total(self) -> int:
        return len(self._status)

    def open_ids(self, title: str) -> Sequence[str]:
        """The open todos with this normalized title."""
        return list(self._open.get(title, ()))

    def add(self, todos: Sequence[TurnTodo], version: int) -> None:
        """Add the todos whose last event has this version."""
        for todo in todos:
            self._set(todo.id, todo.status, normalized_title(todo.title))
        self.version, self.last_subject = version, todos[-1].id

    def catch_up(self, events: Sequence[Sequence[Any]]) -> bool:
        """Apply events (version, subject, action, new status, data) from the index's last one on. False if that one
        is no longer stored."""
        if not events or tuple(events[0][:2]) != (self.version, self.last_subject):
            return False
        for version, subject, action, status, data in events[1:]:
            self.version, self.last_subject = version, subject
            if action in _CHANGES:
                new_title = action in (PlanAction.CREATE, PlanAction.EDIT)
                title = normalized_title(json.loads(data)["title"]) if new_title else self._titles[subject]
                self._set(subject, PlanStatus(status), title)
        return True

    def _set(self, id: str, status: PlanStatus, title: str) -> None:
        before = self._status.get(id)
        if before is PlanStatus.PENDING:
            self.pending -= 1
        if before in OPEN:
            same = self._open[self._titles[id]]
            del same[id]
            if not same:
                del self._open[self._titles[id]]
        self._titles[id], self._status[id] = title, status
        if status is PlanStatus.PENDING:
            self.pending += 1
        if status in OPEN:
            self._open.setdefault(title, {})[id] = None


def keep(indexes: dict[str, PlanIndex], turn_id: str, index: PlanIndex) -> None:
    """Keep the index of a plan that was written. A writer takes it out, and puts it back after its commit."""
    if len(indexes) >= MAX_INDEXES:
        indexes.pop(next(iter(indexes), ""), None)
    indexes[turn_id] = index
