"""The SQL of escalations. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.escalations.lifecycle import EscalationStatus
from punchlist.missions.model import Escalation
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.statements import Statement, columns, insert, update
from punchlist.storage.store import Transaction

_ROW: Final = f"SELECT {columns(Escalation._fields)} FROM escalations"
_UNANSWERED: Final = f"status <> '{EscalationStatus.ANSWERED}'"
_OLDEST: Final = "ORDER BY asked_at, id"
_NEWEST: Final = "ORDER BY asked_at DESC, id DESC"
_MUTABLE_COLUMNS: Final = ("status", "reminded_at", "reminders", "answer", "answered_by", "answered_at")
_STATUSES: Final = frozenset(EscalationStatus)

INSERT: Final = insert("escalations", Escalation._fields)
UPDATE: Final = update(
    "escalations",
    _MUTABLE_COLUMNS,
    where="id = :escalation_id AND status = :from_status AND reminders = :from_reminders",
)
BY_ID: Final = Statement(f"{_ROW} WHERE id = :id")
BY_SUFFIX: Final = Statement(f"{_ROW} WHERE id LIKE :pattern {_NEWEST} LIMIT 2")
UNANSWERED: Final = Statement(f"{_ROW} WHERE {_UNANSWERED} {_OLDEST}")
UNANSWERED_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id AND {_UNANSWERED} {_OLDEST}")
UNANSWERED_OF_TODO: Final = Statement(f"{_ROW} WHERE todo_id = :todo_id AND {_UNANSWERED}")
ESCALATED_TODOS: Final = Statement(f"SELECT todo_id FROM escalations WHERE mission_id = :mission_id AND {_UNANSWERED}")
NEWEST: Final = Statement(f"{_ROW} {_NEWEST} LIMIT :most")
NEWEST_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id {_NEWEST} LIMIT :most")
ALL_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id {_OLDEST}")

IN_STATUS_SINCE: Final = Statement(
    "SELECT max(at) FROM events WHERE stream = :stream AND subject = :subject AND to_status = :status "
    "AND (from_status IS NULL OR from_status <> to_status)"
)
# Reads the stream once, and not at all when no backlog todo is old enough.
UNCHANGED_BACKLOG: Final = Statement(
    "SELECT subject, max(at) FROM events WHERE stream = :stream AND subject IN ("
    f"SELECT id FROM mission_todos WHERE mission_id = :mission_id AND status = '{TodoStatus.BACKLOG}' "
    "AND ended_at IS NULL AND created_at <= :before) GROUP BY subject"
)


def insert_escalation(tx: Transaction, escalation: Escalation) -> None:
    tx.run(INSERT, **escalation._asdict())


def update_row(tx: Transaction, before: Escalation, changes: dict[str, Any]) -> Escalation | None:
    """Write the changes; None when another writer was first."""
    after = before._replace(**{**changes, "status": str(changes["status"])})
    rows = tx.run(
        UPDATE,
        escalation_id=before.id,
        from_status=before.status,
        from_reminders=before.reminders,
        **{name: getattr(after, name) for name in _MUTABLE_COLUMNS},
    )
    return after if rows else None


def find(tx: Transaction, escalation_id: str) -> Escalation | None:
    row = tx.one(BY_ID, id=escalation_id)
    return _from_row(row) if row else None


def find_by_suffix(tx: Transaction, suffix: str) -> list[Escalation]:
    """At most two escalations whose ids end with `suffix`, which must not contain LIKE wildcards."""
    return [_from_row(row) for row in tx.all(BY_SUFFIX, pattern=f"%{suffix}")]


def unanswered(tx: Transaction, mission_id: str | None = None) -> list[Escalation]:
    """Oldest first. Their number is bounded: at most two per open todo."""
    rows = tx.all(UNANSWERED) if mission_id is None else tx.all(UNANSWERED_OF_MISSION, mission_id=mission_id)
    return [_from_row(row) for row in rows]


def unanswered_of_todo(tx: Transaction, todo_id: str) -> list[Escalation]:
    return [_from_row(row) for row in tx.all(UNANSWERED_OF_TODO, todo_id=todo_id)]


def escalated_todo_ids(tx: Transaction, mission_id: str) -> frozenset[str]:
    """Ids of the todos with an unanswered escalation."""
    return frozenset(row[0] for row in tx.all(ESCALATED_TODOS, mission_id=mission_id))


def newest(tx: Transaction, limit: int, mission_id: str | None = None) -> list[Escalation]:
    """Answered ones included, newest first."""
    if mission_id is None:
        return [_from_row(row) for row in tx.all(NEWEST, most=limit)]
    return [_from_row(row) for row in tx.all(NEWEST_OF_MISSION, mission_id=mission_id, most=limit)]


def all_in_mission(tx: Transaction, mission_id: str) -> list[Escalation]:
    return [_from_row(row) for row in tx.all(ALL_OF_MISSION, mission_id=mission_id)]


def in_status_since(tx: Transaction, stream: str, todo_id: str, status: TodoStatus) -> str | None:
    """When a todo entered its current status."""
    row = tx.one(IN_STATUS_SINCE, stream=stream, subject=todo_id, status=status.value)
    return row[0] if row else None


def unchanged_backlog_ids(tx: Transaction, stream: str, mission_id: str, before: str) -> frozenset[str]:
    """Ids of the backlog todos that have not changed since `before`."""
    rows = tx.all(UNCHANGED_BACKLOG, stream=stream, mission_id=mission_id, before=before)
    return frozenset(id for id, at in rows if at <= before)


def _from_row(row: tuple[Any, ...]) -> Escalation:
    escalation = Escalation._make(row)
    if escalation.status not in _STATUSES:
        raise StoreDamaged.not_as_written(f"Escalation {escalation.id!r}")
    return escalation
