"""The SQL of a mission's todos, inside somebody's transaction. Every row's checksum is checked when it is read."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.model import Escalation, MissionTodo
from punchlist.missions.todos.lifecycle import EscalationStatus, TodoPriority, TodoStatus
from punchlist.missions.todos.pagination import EndedCursor
from punchlist.storage.statements import Statement, columns, insert, literals, update
from punchlist.storage.store import Transaction

_WIDTH: Final = len(MissionTodo._fields)
_NAMES: Final = (*MissionTodo._fields, "checksum")
_ROW: Final = f"SELECT {columns(_NAMES)} FROM mission_todos"
MUTABLE_COLUMNS: Final = (
    "deadline",
    "status",
    "priority",
    "outcome",
    "started_at",
    "completed_at",
    "ended_at",
    "check_result",
    "worked_at",
    "override_reason",
    "overdue_at",
)
"""What may change of a todo; the rest stays as it was said."""

INSERT: Final = insert("mission_todos", _NAMES)
BY_ID: Final = Statement(f"{_ROW} WHERE id = :id")
BY_REQUEST: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id AND request_id = :request_id")
OPEN_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id AND ended_at IS NULL")
ALL_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id")
ENDING_IN: Final = Statement(f"{_ROW} WHERE id LIKE :pattern ORDER BY id DESC LIMIT 20")
# The todo as it was read, whatever of it somebody else may have changed.
UPDATE: Final = update(
    "mission_todos",
    (*MUTABLE_COLUMNS, "checksum"),
    where="id = :todo_id AND status = :from_status AND checksum = :from_checksum",
)
_UNANSWERED: Final = literals(status for status in EscalationStatus if status != EscalationStatus.ANSWERED)
ESCALATED: Final = Statement(
    f"SELECT todo_id FROM escalations WHERE mission_id = :mission_id AND status IN ({_UNANSWERED})"
)
ASKED: Final = Statement(
    f"SELECT {columns(Escalation._fields)} FROM escalations "
    f"WHERE todo_id = :todo_id AND status <> '{EscalationStatus.ANSWERED}'"
)
ANSWER: Final = update(
    "escalations",
    ("status", "answer", "answered_by", "answered_at"),
    where="id = :escalation_id AND status = :from_status",
)
CREATED: Final = Statement(
    "SELECT data FROM events WHERE stream = :stream AND subject = :subject AND from_status IS NULL"
)


def _ended(of_pillar: bool, status: TodoStatus | None) -> Statement:
    """A page of those that ended, newest first, after `at` and `id`, down to what is archived."""
    whose = "pillar_id" if of_pillar else "mission_id"
    only = f"AND status = '{status}' " if status is not None else ""
    return Statement(
        f"{_ROW} WHERE {whose} = :owner AND ended_at >= :since AND ended_at <= :at "
        f"AND NOT (ended_at = :at AND id >= :id) {only}ORDER BY ended_at DESC, id DESC LIMIT :most"
    )


ENDED: Final = {
    (of_pillar, status): _ended(of_pillar, status)
    for of_pillar in (False, True)
    for status in (None, TodoStatus.COMPLETED, TodoStatus.CANCELLED)
}


def insert_todo(tx: Transaction, todo: MissionTodo) -> None:
    tx.run(INSERT, **_plain(todo._asdict()), checksum=todo.checksum())


def find(tx: Transaction, todo_id: str) -> MissionTodo | None:
    row = tx.one(BY_ID, id=todo_id)
    return from_row(row) if row else None


def find_by_request(tx: Transaction, mission_id: str, request_id: str) -> MissionTodo | None:
    row = tx.one(BY_REQUEST, mission_id=mission_id, request_id=request_id)
    return from_row(row) if row else None


def find_by_suffix(tx: Transaction, end: str) -> list[MissionTodo]:
    """Those whose ids end so, up to some number, newest first."""
    return [from_row(row) for row in tx.all(ENDING_IN, pattern=f"%{end}")]


def open_in_mission(tx: Transaction, mission_id: str) -> list[MissionTodo]:
    """In no order."""
    return [from_row(row) for row in tx.all(OPEN_OF_MISSION, mission_id=mission_id)]


def all_in_mission(tx: Transaction, mission_id: str) -> list[MissionTodo]:
    return [from_row(row) for row in tx.all(ALL_OF_MISSION, mission_id=mission_id)]


def ended_page(
    tx: Transaction,
    *,
    mission_id: str,
    pillar_id: str | None,
    status: TodoStatus | None,
    since: str,
    after: EndedCursor,
    most: int,
) -> list[MissionTodo]:
    """Newest first: those that ended before `after`, but not before `since`."""
    statement = ENDED[pillar_id is not None, status]
    rows = tx.all(statement, owner=pillar_id or mission_id, since=since, at=after.at, id=after.id, most=most)
    return [from_row(row) for row in rows]


def update_row(tx: Transaction, todo: MissionTodo, changes: dict[str, Any]) -> MissionTodo | None:
    """Write the changes if the todo is still as it was read; None when it is not."""
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


def escalated_todo_ids(tx: Transaction, mission_id: str) -> frozenset[str]:
    """Ids of todos that a person is asked about."""
    return frozenset(row[0] for row in tx.all(ESCALATED, mission_id=mission_id))


def asked(tx: Transaction, todo_id: str) -> list[Escalation]:
    """What a person is still asked about a todo."""
    return [Escalation._make(row) for row in tx.all(ASKED, todo_id=todo_id)]


def answer(tx: Transaction, before: Escalation, after: Escalation) -> bool:
    return bool(
        tx.run(
            ANSWER,
            escalation_id=before.id,
            from_status=str(before.status),
            status=str(after.status),
            answer=after.answer,
            answered_by=after.answered_by,
            answered_at=after.answered_at,
        )
    )


def creation_data(tx: Transaction, stream: str, todo_id: str) -> str | None:
    """The data of the event that made a todo."""
    row = tx.one(CREATED, stream=stream, subject=todo_id)
    return str(row[0]) if row else None


_STATUS: Final = {status.value: status for status in TodoStatus}
_PRIORITY: Final = {priority.value: priority for priority in TodoPriority}


def from_row(row: tuple[Any, ...]) -> MissionTodo:
    """A row as it was read, after its checksum was found right."""
    try:
        todo = MissionTodo._make(row[:_WIDTH])
        if todo.checksum() == row[_WIDTH]:
            return todo._replace(status=_STATUS[todo.status], priority=_PRIORITY[todo.priority])
    except (TypeError, KeyError):
        # Something that is no text, or no state, where one was written.
        pass
    raise StoreDamaged.not_as_written(f"Todo {row[0]!r} of a mission")


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    # Plain strings: the SQLite driver is slow with subclasses.
    return {**values, "status": values["status"].value, "priority": values["priority"].value}
