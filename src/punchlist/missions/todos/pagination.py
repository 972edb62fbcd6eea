"""Order and cursors of a mission's todo list. Pure.

Open todos come first: in progress, pending, backlog; by priority within each, then by age. The mission's limits bound
their number. Ended todos follow, newest first; their number is unbounded, so pages read them along an index.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from punchlist.errors import InvalidInput
from punchlist.missions.model import Capacity, MissionTodo
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
MAX_CURSOR_LENGTH: Final = 300

_STATUSES: Final = {
    status: rank for rank, status in enumerate((TodoStatus.IN_PROGRESS, TodoStatus.PENDING, TodoStatus.BACKLOG))
}
_PRIORITIES: Final = {priority: rank for rank, priority in enumerate(TodoPriority)}

SortKey = tuple[int, int, str, str]


class EndedCursor(NamedTuple):
    """The position after the last todo of a page, when that todo has ended."""

    at: str
    id: str


NEWEST: Final = EndedCursor("9999", "")
"""The position before the first ended todo."""


@dataclass(frozen=True, slots=True)
class SubItems:
    """How many sub-items a todo has, and how many of them have ended."""

    total: int = 0
    completed: int = 0
    cancelled: int = 0

    def add(self, status: str, count: int) -> SubItems:
        completed = self.completed + (count if status == TodoStatus.COMPLETED else 0)
        cancelled = self.cancelled + (count if status == TodoStatus.CANCELLED else 0)
        return SubItems(self.total + count, completed, cancelled)

    def as_json(self) -> dict[str, int]:
        return {"total": self.total, "completed": self.completed, "cancelled": self.cancelled}

    def __str__(self) -> str:
        return f"{self.completed + self.cancelled}/{self.total} sub-items"


@dataclass(frozen=True, slots=True)
class TodoPage:
    """A page of a mission's todos."""

    items: list[MissionTodo]
    capacity: Capacity
    cursor: str | None
    """None on the last page."""
    escalated: frozenset[str]
    """Ids of todos with an unanswered escalation."""
    pillars: Mapping[str, str]
    """Slugs by id."""
    sub_items: Mapping[str, SubItems] = field(default_factory=dict)
    """The progress of the sub-items, by the id of their parent."""
    blocked_by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ids of the open todos that block a todo, by its id."""


def sort_key(todo: MissionTodo) -> SortKey:
    """Orders open todos."""
    return _STATUSES[todo.status], _PRIORITIES[todo.priority], todo.created_at, todo.id


def cursor_after(todo: MissionTodo) -> str:
    mark = sort_key(todo) if todo.ended_at is None else (todo.ended_at, todo.id)
    return base64.urlsafe_b64encode(json.dumps(mark).encode()).decode().rstrip("=")


def parse_cursor(cursor: str) -> SortKey | EndedCursor:
    try:
        if len(cursor) <= MAX_CURSOR_LENGTH:
            match json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))):
                case [str(at), str(id)] if _plain(at, id):
                    return EndedCursor(at, id)
                case [int(status), int(priority), str(at), str(id)] if _plain(at, id):
                    return status, priority, at, id
    except (ValueError, binascii.Error, RecursionError):
        pass
    raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")


def _plain(*texts: str) -> bool:
    return all(text.isascii() and text.isprintable() for text in texts)
