"""The SQL of mission todos. The caller owns the transaction. Reading a row verifies its checksum."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.model import MissionTodo
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus
from punchlist.missions.todos.pagination import EndedCursor
from punchlist.storage.statements import SelectAll, SelectOne, Statement, columns, first_column, insert, update
from punchlist.storage.store import Transaction

_WIDTH: Final = len(MissionTodo._fields)
_NAMES: Final = (*MissionTodo._fields, "checksum")
_ROW: Final = f"SELECT {columns(_NAMES)} FROM mission_todos"
MUTABLE_COLUMNS: Final = (
    *("deadline", "status", "priority", "outcome", "started_at", "completed_at", "ended_at"),
    *("check_result", "worked_at", "override_reason", "overdue_at"),
)
"""All other columns keep the values from creation."""

_STATUS: Final = {status.value: status for status in TodoStatus}
_PRIORITY: Final = {priority.value: priority for priority in TodoPriority}


def from_row(row: tuple[Any, ...]) -> MissionTodo:
    try:
        todo = MissionTodo._make(row[:_WIDTH])
        if todo.checksum() == row[_WIDTH]:
            return todo._replace(status=_STATUS[todo.status], priority=_PRIORITY[todo.priority])
    except (TypeError, KeyError):
        # A column that is not text, or not a known status or priority.
        pass
    raise StoreDamaged.not_as_written(f"Todo {row[0]!r} of a mission")


INSERT: Final = insert("mission_todos", _NAMES)
find: Final = SelectOne(from_row, f"{_ROW} WHERE id = :id")
find_by_request: Final = SelectOne(from_row, f"{_ROW} WHERE mission_id = :mission_id AND request_id = :request_id")
open_in_mission: Final = SelectAll(from_row, f"{_ROW} WHERE mission_id = :mission_id AND ended_at IS NULL")
"""Unordered."""
all_in_mission: Final = SelectAll(from_row, f"{_ROW} WHERE mission_id = :mission_id")
_by_suffix: Final = SelectAll(from_row, f"{_ROW} WHERE id LIKE :pattern ORDER BY id DESC LIMIT 20")
# Matches only the row as it was read: the checksum detects a change by another writer.
UPDATE: Final = update(
    "mission_todos",
    (*MUTABLE_COLUMNS, "checksum"),
    where="id = :todo_id AND status = :from_status AND checksum = :from_checksum",
)
WORK_TIMES: Final = Statement("SELECT started_at, worked_at FROM mission_todos WHERE id = :id")
RUNS_SINCE: Final = Statement(
    "SELECT coalesce(sum(CASE WHEN kind = :kind THEN 1 ELSE 0 END), 0), coalesce(sum(cost), 0.0) "
    "FROM runs WHERE mission_id = :mission_id AND created_at > :since"
)
creation_data: Final = SelectOne[str](
    first_column, "SELECT data FROM events WHERE stream = :stream AND subject = :subject AND from_status IS NULL"
)
"""The data of the event that created a todo."""


def _ended(of_pillar: bool, status: TodoStatus | None) -> SelectAll[MissionTodo]:
    """A page of ended todos, newest first, that starts after (`at`, `id`) and stops at `since`."""
    whose = "pillar_id" if of_pillar else "mission_id"
    only = f"AND status = '{status}' " if status is not None else ""
    return SelectAll(
        from_row,
        f"{_ROW} WHERE {whose} = :owner AND ended_at >= :since AND ended_at <= :at "
        f"AND NOT (ended_at = :at AND id >= :id) {only}ORDER BY ended_at DESC, id DESC LIMIT :most",
    )


ENDED: Final = {
    (of_pillar, status): _ended(of_pillar, status)
    for of_pillar in (False, True)
    for status in (None, TodoStatus.COMPLETED, TodoStatus.CANCELLED)
}


def insert_todo(tx: Transaction, todo: MissionTodo) -> None:
    tx.run(INSERT, **_plain(todo._asdict()), checksum=todo.checksum())


def find_by_suffix(tx: Transaction, suffix: str) -> list[MissionTodo]:
    """At most 20 todos whose ids end with `suffix`, newest first."""
    return _by_suffix(tx, f"%{suffix}")


def ended_page(
    tx: Transaction,
    *,
    mission_id: str,
    pillar_id: str | None,
    status: TodoStatus | None,
    since: str,
    after: EndedCursor,
    limit: int,
) -> list[MissionTodo]:
    """Newest first: todos that ended before `after`, but not before `since`."""
    ended = ENDED[pillar_id is not None, status]
    return ended(tx, owner=pillar_id or mission_id, since=since, at=after.at, id=after.id, most=limit)


def update_row(tx: Transaction, todo: MissionTodo, changes: dict[str, Any]) -> MissionTodo | None:
    """Write the changes; None when another writer changed the todo since it was read."""
    changed = todo._replace(**changes)
    rows = tx.run(
        UPDATE,
        todo_id=todo.id,
        from_status=todo.status.value,
        from_checksum=todo.checksum(),
        checksum=changed.checksum(),
        **_plain({name: getattr(changed, name) for name in MUTABLE_COLUMNS}),
    )
    return changed if rows else None


def last_worked_at(tx: Transaction, todo: MissionTodo) -> str:
    """When work on a todo last started or was reported, as stored now."""
    row = tx.one(WORK_TIMES, id=todo.id)
    return max((at for at in row or () if at), default=todo.created_at)


def runs_since(tx: Transaction, mission_id: str, kind: str, since: str) -> tuple[int, float]:
    """The number of runs of one kind, and the cost of all runs of the mission, since a moment."""
    row = tx.one(RUNS_SINCE, mission_id=mission_id, since=since, kind=kind)
    return (int(row[0]), float(row[1])) if row else (0, 0.0)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    # Plain strings: the SQLite driver is slow with subclasses.
    return {**values, "status": values["status"].value, "priority": values["priority"].value}
