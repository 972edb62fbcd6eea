"""Todos of all missions, newest first, a page at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.errors import InvalidInput
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import Mission, MissionTodo
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.tools import todo_json
from punchlist.storage.statements import SelectAll, columns
from punchlist.storage.store import Store

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
_NEWEST: Final = "zzzz"
"""After every id, which is hexadecimal."""
_CURSOR: Final = re.compile(r"[0-9a-f-]{1,64}", re.ASCII)

# Ids follow the order of creation.
_todos: Final = SelectAll(
    todo_repository.from_row,
    f"SELECT {columns((*MissionTodo._fields, 'checksum'))} FROM mission_todos WHERE id < :before "
    "AND :statuses LIKE '%,' || status || ',%' "
    "AND mission_id IN (SELECT id FROM missions WHERE :archived = 1 OR status = 'active') "
    "ORDER BY id DESC LIMIT :most",
)


class PlacedTodo(NamedTuple):
    todo: MissionTodo
    mission: Mission
    pillar_slug: str

    def as_json(self) -> dict[str, Any]:
        return {**todo_json(self.todo, self.pillar_slug), "missionSlug": self.mission.slug}


@dataclass(frozen=True, slots=True)
class AllTodosPage:
    items: Sequence[PlacedTodo]
    cursor: str | None
    """None on the last page."""

    def as_json(self) -> dict[str, Any]:
        more = {"nextCursor": self.cursor} if self.cursor else {}
        return {"items": [item.as_json() for item in self.items], **more}


def read_all_todos(
    store: Store,
    statuses: Collection[TodoStatus],
    *,
    archived: bool = False,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> AllTodosPage:
    """`archived` includes archived missions."""
    limit = max(1, min(limit, MAX_LIMIT))
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
    names = f",{','.join(sorted(status.value for status in statuses))},"
    with store.read() as tx:
        found = _todos(tx, before=cursor or _NEWEST, statuses=names, archived=int(archived), most=limit + 1)
        missions = {mission.id: mission for mission in mission_repository.all_missions(tx)}
        shown = {todo.mission_id for todo in found}
        pillars = {pillar.id: pillar.slug for id in shown for pillar in mission_repository.pillars_of(tx, id)}
    items = [PlacedTodo(todo, missions[todo.mission_id], pillars[todo.pillar_id]) for todo in found[:limit]]
    return AllTodosPage(items, items[-1].todo.id if len(found) > limit else None)
