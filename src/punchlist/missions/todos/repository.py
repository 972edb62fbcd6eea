"""The SQL of mission todos. The caller owns the transaction. Reading a row verifies its checksum."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.model import LinkKind, MissionTodo, TodoComment, TodoFile, TodoLink
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus
from punchlist.missions.todos.pagination import EndedCursor
from punchlist.storage.statements import SelectAll, SelectOne, Statement, first_column, insert, select, update
from punchlist.storage.store import Transaction

_WIDTH: Final = len(MissionTodo._fields)
_NAMES: Final = (*MissionTodo._fields, "checksum")
_ROW: Final = select("mission_todos", _NAMES)
MUTABLE_COLUMNS: Final = (
    *("title", "description", "justification", "completion_criteria", "also_affects", "completion_check"),
    *("parent_id", "labels", "unarchived_at"),
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
children: Final = SelectAll(
    from_row, f"{_ROW} WHERE mission_id = :mission_id AND parent_id = :parent_id ORDER BY created_at, id"
)
parents: Final = SelectAll[tuple[str, str]](
    tuple, "SELECT id, parent_id FROM mission_todos WHERE mission_id = :mission_id AND parent_id IS NOT NULL"
)
"""The ids of sub-items and their parents."""
child_counts: Final = SelectAll[tuple[str, str, int]](
    tuple,
    "SELECT parent_id, status, count(*) FROM mission_todos WHERE mission_id = :mission_id AND parent_id IS NOT NULL "
    "GROUP BY parent_id, status",
)
open_blockers: Final = SelectAll(
    from_row,
    f"{_ROW} WHERE ended_at IS NULL AND id IN "
    f"(SELECT todo_id FROM todo_links WHERE other_id = :todo_id AND kind = '{LinkKind.BLOCKS}') ORDER BY id",
)
open_blocks: Final = SelectAll[tuple[str, str]](
    tuple,
    "SELECT other_id, todo_id FROM todo_links WHERE mission_id = :mission_id "
    f"AND kind = '{LinkKind.BLOCKS}' AND todo_id IN "
    "(SELECT id FROM mission_todos WHERE mission_id = :mission_id AND ended_at IS NULL)",
)
"""The ids of blocked todos and of what blocks them, as far as that is open."""
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


_LABEL: Final = "AND (:label = '' OR labels LIKE :label ESCAPE '!') "


def label_pattern(label: str | None) -> str:
    """For LIKE: a label in the stored JSON, which contains no escapes."""
    if label is None:
        return ""
    escaped = label.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f'%"{escaped}"%'


def _pages(of_mission: str, of_pillar: str) -> dict[tuple[bool, TodoStatus | None], SelectAll[MissionTodo]]:
    """Pages of ended todos, newest first, that start after (`at`, `id`): by whether of a pillar, and by status."""
    only: dict[TodoStatus | None, str] = {None: ""}
    only |= {status: f"AND status = '{status}' " for status in (TodoStatus.COMPLETED, TodoStatus.CANCELLED)}
    return {
        (condition is of_pillar, status): SelectAll(
            from_row,
            f"{_ROW} WHERE {condition} AND ended_at <= :at AND NOT (ended_at = :at AND id >= :id) "
            f"{with_status}{_LABEL}ORDER BY ended_at DESC, id DESC LIMIT :most",
        )
        for condition in (of_mission, of_pillar)
        for status, with_status in only.items()
    }


ENDED: Final = _pages("mission_id = :owner AND ended_at >= :since", "pillar_id = :owner AND ended_at >= :since")
_BEFORE: Final = "mission_id = :mission_id AND unarchived_at >= :since AND ended_at < :since"
UNARCHIVED: Final = _pages(_BEFORE, f"pillar_id = :owner AND {_BEFORE}")
"""Those that ended before `since` and were unarchived after it."""


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
    label: str | None = None,
) -> list[MissionTodo]:
    """Newest first: todos that ended before `after`, but not before `since`; then those that were unarchived since."""
    chosen = (pillar_id is not None, status)
    place = {"owner": pillar_id or mission_id, "since": since, "at": after.at, "id": after.id}
    place["label"] = label_pattern(label)
    found = ENDED[chosen](tx, **place, most=limit)
    if len(found) < limit:
        # All of these ended before those above.
        found += UNARCHIVED[chosen](tx, **place, mission_id=mission_id, most=limit - len(found))
    return found


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


# --- links, comments and files ----------------------------------------------------------------------------

_LINK: Final = select("todo_links", TodoLink._fields)
insert_link: Final = insert("todo_links", TodoLink._fields)
find_link: Final = SelectOne(
    TodoLink._make, f"{_LINK} WHERE todo_id = :todo_id AND kind = :kind AND other_id = :other_id"
)
links_of: Final = SelectAll(
    TodoLink._make, f"{_LINK} WHERE todo_id = :todo_id OR other_id = :todo_id ORDER BY created_at, id"
)
"""In both directions."""
links_of_kind: Final = SelectAll(TodoLink._make, f"{_LINK} WHERE mission_id = :mission_id AND kind = :kind")
links_in_mission: Final = SelectAll(TodoLink._make, f"{_LINK} WHERE mission_id = :mission_id")
DELETE_LINK: Final = Statement("DELETE FROM todo_links WHERE id = :id")

_COMMENT: Final = select("todo_comments", TodoComment._fields)
insert_comment: Final = insert("todo_comments", TodoComment._fields)
comments_of: Final = SelectAll(TodoComment._make, f"{_COMMENT} WHERE todo_id = :todo_id ORDER BY created_at, id")
comments_in_mission: Final = SelectAll(TodoComment._make, f"{_COMMENT} WHERE mission_id = :mission_id")

_FILE: Final = select("todo_files", TodoFile._fields)
insert_file: Final = insert("todo_files", TodoFile._fields)
files_of: Final = SelectAll(TodoFile._make, f"{_FILE} WHERE todo_id = :todo_id ORDER BY created_at, id")
files_in_mission: Final = SelectAll(TodoFile._make, f"{_FILE} WHERE mission_id = :mission_id")
DELETE_FILE: Final = Statement("DELETE FROM todo_files WHERE id = :id")
