"""In which order a mission's todos are listed, and how a list is continued. Pure.

Open ones first: what is worked on, what is next, what might be; the most urgent of each, then the
oldest. There are as many as the limits allow. Then those that ended, the newest first, of which
there may be any number: they are read in pages, along an index.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
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
    """The last todo of a page, when it had ended; the next page begins after it."""

    at: str
    id: str


NEWEST: Final = EndedCursor("9999", "")
"""Before the first of those that ended."""


@dataclass(frozen=True, slots=True)
class TodoPage:
    """A page of a mission's todos."""

    items: list[MissionTodo]
    capacity: Capacity
    cursor: str | None
    """Where the next page begins; None when this is the last."""
    escalated: frozenset[str]
    """Ids of todos that a person is asked about."""
    pillars: Mapping[str, str]
    """Slugs by id."""


def sort_key(todo: MissionTodo) -> SortKey:
    """Where an open todo stands among the open ones."""
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
    raise InvalidInput("cursor: must be the nextCursor of a list, as it was given; leave it out to begin anew")


def _plain(*texts: str) -> bool:
    return all(text.isascii() and text.isprintable() for text in texts)
