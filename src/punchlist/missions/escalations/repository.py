"""The SQL of escalations. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.escalations.lifecycle import EscalationStatus
from punchlist.missions.model import Escalation
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.statements import SelectAll, SelectOne, Statement, first_column, insert, select, update
from punchlist.storage.store import Transaction

_ROW: Final = select("escalations", Escalation._fields)
_UNANSWERED: Final = f"status <> '{EscalationStatus.ANSWERED}'"
_OLDEST: Final = "ORDER BY asked_at, id"
_NEWEST: Final = "ORDER BY asked_at DESC, id DESC"
_MUTABLE_COLUMNS: Final = ("status", "reminded_at", "reminders", "answer", "answered_by", "answered_at")
_STATUSES: Final = frozenset(EscalationStatus)


def _from_row(row: tuple[Any, ...]) -> Escalation:
    escalation = Escalation._make(row)
    if escalation.status not in _STATUSES:
        raise StoreDamaged.not_as_written(f"Escalation {escalation.id!r}")
    return escalation


insert_escalation: Final = insert("escalations", Escalation._fields)
UPDATE: Final = update(
    "escalations",
    _MUTABLE_COLUMNS,
    where="id = :escalation_id AND status = :from_status AND reminders = :from_reminders",
)
find: Final = SelectOne(_from_row, f"{_ROW} WHERE id = :id")
_by_suffix: Final = SelectAll(_from_row, f"{_ROW} WHERE id LIKE :pattern {_NEWEST} LIMIT 2")
_unanswered: Final = SelectAll(_from_row, f"{_ROW} WHERE {_UNANSWERED} {_OLDEST}")
_unanswered_of_mission: Final = SelectAll(
    _from_row, f"{_ROW} WHERE mission_id = :mission_id AND {_UNANSWERED} {_OLDEST}"
)
unanswered_of_todo: Final = SelectAll(_from_row, f"{_ROW} WHERE todo_id = :todo_id AND {_UNANSWERED}")
escalated_todo_ids: Final = SelectAll[str](
    first_column, f"SELECT todo_id FROM escalations WHERE mission_id = :mission_id AND {_UNANSWERED}"
)
"""Ids of the todos with an unanswered escalation."""
_newest: Final = SelectAll(_from_row, f"{_ROW} {_NEWEST} LIMIT :most")
_newest_of_mission: Final = SelectAll(_from_row, f"{_ROW} WHERE mission_id = :mission_id {_NEWEST} LIMIT :most")
all_in_mission: Final = SelectAll(_from_row, f"{_ROW} WHERE mission_id = :mission_id {_OLDEST}")

in_status_since: Final = SelectOne[str | None](
    first_column,
    "SELECT max(at) FROM events WHERE stream = :stream AND subject = :subject AND to_status = :status "
    "AND (from_status IS NULL OR from_status <> to_status)",
)
"""When a todo entered its current status."""
# Reads the stream once, and not at all when no backlog todo is old enough.
UNCHANGED_BACKLOG: Final = Statement(
    "SELECT subject, max(at) FROM events WHERE stream = :stream AND subject IN ("
    f"SELECT id FROM mission_todos WHERE mission_id = :mission_id AND status = '{TodoStatus.BACKLOG}' "
    "AND ended_at IS NULL AND created_at <= :before) GROUP BY subject"
)


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


def find_by_suffix(tx: Transaction, suffix: str) -> list[Escalation]:
    """At most two escalations whose ids end with `suffix`, which must not contain LIKE wildcards."""
    return _by_suffix(tx, f"%{suffix}")


def unanswered(tx: Transaction, mission_id: str | None = None) -> list[Escalation]:
    """Oldest first. Their number is bounded: at most two per open todo."""
    return _unanswered(tx) if mission_id is None else _unanswered_of_mission(tx, mission_id)


def newest(tx: Transaction, limit: int, mission_id: str | None = None) -> list[Escalation]:
    """Answered ones included, newest first."""
    return _newest(tx, limit) if mission_id is None else _newest_of_mission(tx, mission_id, limit)


def unchanged_backlog_ids(tx: Transaction, stream: str, mission_id: str, before: str) -> frozenset[str]:
    """Ids of the backlog todos that have not changed since `before`."""
    rows = tx.all(UNCHANGED_BACKLOG, stream=stream, mission_id=mission_id, before=before)
    return frozenset(id for id, at in rows if at <= before)
