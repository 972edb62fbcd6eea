"""The SQL of escalations, inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.model import Escalation
from punchlist.missions.todos.lifecycle import EscalationStatus, TodoStatus
from punchlist.storage.statements import Statement, columns, insert, update
from punchlist.storage.store import Transaction

_ROW: Final = f"SELECT {columns(Escalation._fields)} FROM escalations"
_UNANSWERED: Final = f"status <> '{EscalationStatus.ANSWERED}'"
_ORDER: Final = "ORDER BY asked_at, id"
_NEWEST: Final = "ORDER BY asked_at DESC, id DESC"
_CHANGING: Final = ("status", "reminded_at", "reminders", "answer", "answered_by", "answered_at")
_STATUSES: Final = frozenset(EscalationStatus)

INSERT: Final = insert("escalations", Escalation._fields)
UPDATE: Final = update(
    "escalations",
    _CHANGING,
    where="id = :escalation_id AND status = :from_status AND reminders = :from_reminders",
)
BY_ID: Final = Statement(f"{_ROW} WHERE id = :id")
ENDING_IN: Final = Statement(f"{_ROW} WHERE id LIKE :pattern {_NEWEST} LIMIT 2")
UNANSWERED: Final = Statement(f"{_ROW} WHERE {_UNANSWERED} {_ORDER}")
UNANSWERED_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id AND {_UNANSWERED} {_ORDER}")
NEWEST: Final = Statement(f"{_ROW} {_NEWEST} LIMIT :most")
NEWEST_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id {_NEWEST} LIMIT :most")
ALL_OF_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id {_ORDER}")

# --- what the trail knows of todos --------------------------------------------------------------------
IN_STATE_SINCE: Final = Statement(
    "SELECT max(at) FROM events WHERE stream = :stream AND subject = :subject AND to_status = :status "
    "AND (from_status IS NULL OR from_status <> to_status)"
)
# The stream is read once, and not at all when nothing in the backlog is that old.
UNTOUCHED: Final = Statement(
    "SELECT subject, max(at) FROM events WHERE stream = :stream AND subject IN ("
    f"SELECT id FROM mission_todos WHERE mission_id = :mission_id AND status = '{TodoStatus.BACKLOG}' "
    "AND ended_at IS NULL AND created_at <= :before) GROUP BY subject"
)


def insert_escalation(tx: Transaction, escalation: Escalation) -> None:
    tx.run(INSERT, **escalation._asdict())


def update_row(tx: Transaction, before: Escalation, after: Escalation) -> bool:
    """Write what has become of it, unless somebody else was first."""
    return bool(
        tx.run(
            UPDATE,
            escalation_id=before.id,
            from_status=before.status,
            from_reminders=before.reminders,
            **{name: getattr(after, name) for name in _CHANGING},
        )
    )


def find(tx: Transaction, escalation_id: str) -> Escalation | None:
    row = tx.one(BY_ID, id=escalation_id)
    return _from_row(row) if row else None


def find_by_suffix(tx: Transaction, end: str) -> list[Escalation]:
    """Those whose ids end so, up to two. The caller has seen to it that `end` has nothing in it that acts."""
    return [_from_row(row) for row in tx.all(ENDING_IN, pattern=f"%{end}")]


def unanswered(tx: Transaction, mission_id: str | None = None) -> list[Escalation]:
    """Oldest first. As many as there are todos at the most, twice."""
    rows = tx.all(UNANSWERED) if mission_id is None else tx.all(UNANSWERED_OF_MISSION, mission_id=mission_id)
    return [_from_row(row) for row in rows]


def newest(tx: Transaction, most: int, mission_id: str | None = None) -> list[Escalation]:
    """All that was ever asked, newest first."""
    if mission_id is None:
        return [_from_row(row) for row in tx.all(NEWEST, most=most)]
    return [_from_row(row) for row in tx.all(NEWEST_OF_MISSION, mission_id=mission_id, most=most)]


def all_in_mission(tx: Transaction, mission_id: str) -> list[Escalation]:
    return [_from_row(row) for row in tx.all(ALL_OF_MISSION, mission_id=mission_id)]


def in_state_since(tx: Transaction, stream: str, todo_id: str, status: TodoStatus) -> str | None:
    """When a todo came into the state it is in."""
    row = tx.one(IN_STATE_SINCE, stream=stream, subject=todo_id, status=status.value)
    return row[0] if row else None


def unchanged_backlog_ids(tx: Transaction, stream: str, mission_id: str, before: str) -> frozenset[str]:
    """Ids of what is in the backlog and has not changed since `before`."""
    rows: Sequence[tuple[Any, ...]] = tx.all(UNTOUCHED, stream=stream, mission_id=mission_id, before=before)
    return frozenset(id for id, at in rows if at <= before)


def _from_row(row: tuple[Any, ...]) -> Escalation:
    found = Escalation._make(row)
    if found.status not in _STATUSES:
        raise StoreDamaged.not_as_written(f"Escalation {found.id!r}")
    return found
