"""The changes of a mission todo: who, when, why, and the old and new values of the fields that changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_case, camel_json
from punchlist.missions.changes import event_stream
from punchlist.missions.model import MissionTodo
from punchlist.storage.store import Store
from punchlist.views import mission_repository as view_repository
from punchlist.views.mission_repository import TodoEvent

PAGE: Final = 100
MAX_PAGE: Final = 500
_COLUMNS: Final = {
    **{name: name for name in ("title", "description", "justification", "completion_criteria", "deadline", "priority")},
    "also_affects": "also_affects",
    "completion_check": "check",
    "labels": "labels",
    "parent_id": "parent_id",
}
"""The columns that people and agents set, and their names as fields."""
_JSON_COLUMNS: Final = frozenset({"also_affects", "completion_check", "labels"})


class FieldChange(NamedTuple):
    field: str
    before: Any
    after: Any

    @property
    def name(self) -> str:
        """In words."""
        return self.field.removesuffix("_id").replace("_", " ")

    def as_json(self) -> dict[str, Any]:
        return {"field": camel_case(self.field), "from": self.before, "to": self.after}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A change of a todo."""

    version: int
    """Numbered within the mission."""
    at: str
    actor: str
    action: str
    from_status: str | None
    to_status: str | None
    reason: str
    changes: Sequence[FieldChange] = ()
    """Of its fields; none for the creation."""

    def as_json(self) -> dict[str, Any]:
        fields = camel_json(self, "version", "at", "actor", "action", "from_status", "to_status", "reason")
        return {**fields, "changes": [change.as_json() for change in self.changes]}


@dataclass(frozen=True, slots=True)
class HistoryPage:
    entries: Sequence[HistoryEntry]
    """Oldest first."""
    cursor: str | None
    """None on the last page."""

    def as_json(self) -> dict[str, Any]:
        more = {"nextCursor": self.cursor} if self.cursor else {}
        return {"items": [entry.as_json() for entry in self.entries], **more}


def read_history(store: Store, todo: MissionTodo, *, after: int = 0, limit: int = PAGE) -> list[HistoryEntry]:
    """A page of the changes of a todo, oldest first. `after` is the version of the last entry of the page before."""
    with store.read() as tx:
        place = {"stream": event_stream(todo.mission_id), "todo_id": todo.id}
        # The values before the page are those after all earlier changes.
        earlier = view_repository.history_until(tx, **place, until=after) if after else []
        events = view_repository.history(tx, **place, after=after, most=min(limit, MAX_PAGE))
    values: dict[str, Any] = {}
    for event in earlier:
        values.update(_set_by(event))
    return list(_entries(events, values))


def read_history_page(store: Store, todo: MissionTodo, *, cursor: str | None = None, limit: int = PAGE) -> HistoryPage:
    if cursor is not None and (not cursor.isdecimal() or len(cursor) > 9):
        raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
    limit = max(1, min(limit, MAX_PAGE - 1))
    found = read_history(store, todo, after=int(cursor or 0), limit=limit + 1)
    return HistoryPage(found[:limit], str(found[limit - 1].version) if len(found) > limit else None)


def _entries(events: Sequence[TodoEvent], values: dict[str, Any]) -> Iterator[HistoryEntry]:
    for event in events:
        changes = [] if event.from_status is None else list(_changes(event, values))
        yield HistoryEntry(*event[:-1], changes)
        values.update(_set_by(event))


def _changes(event: TodoEvent, values: Mapping[str, Any]) -> Iterator[FieldChange]:
    written = _payload(event)
    before = written.get("before")
    known = {**values, **before} if isinstance(before, dict) else values
    for column, field in _COLUMNS.items():
        if column in written and known.get(column) != written[column]:
            yield FieldChange(field, _value(column, known.get(column)), _value(column, written[column]))


def _set_by(event: TodoEvent) -> dict[str, Any]:
    written = _payload(event)
    return {column: written[column] for column in _COLUMNS if column in written}


def _payload(event: TodoEvent) -> dict[str, Any]:
    try:
        found = json.loads(event.data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _value(column: str, stored: Any) -> Any:
    if column not in _JSON_COLUMNS or not isinstance(stored, str):
        return stored
    try:
        return json.loads(stored)
    except ValueError:
        return stored
