"""The SQL of escalations, inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, func, insert, literal_column, or_, select, update

from punchlist.errors import StoreDamaged
from punchlist.missions.lifecycle import EscalationStatus, Status
from punchlist.missions.model import Escalation
from punchlist.storage.schema import escalations, events, mission_todos
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

_ROW = select(*[escalations.c[name] for name in Escalation._fields])
_OF_MISSION = escalations.c.mission_id == bindparam("mission_id")
_UNANSWERED = escalations.c.status != literal_column(f"'{EscalationStatus.ANSWERED}'")
_ORDER = (escalations.c.asked_at, escalations.c.id)
_NEWEST = (escalations.c.asked_at.desc(), escalations.c.id.desc())
_CHANGING: Final = ("status", "reminded_at", "reminders", "answer", "answered_by", "answered_at")
_STATUSES: Final = frozenset(EscalationStatus)

INSERT: Final = Statement(insert(escalations).values({c.name: bindparam(c.name) for c in escalations.c}))
UPDATE: Final = Statement(
    update(escalations)
    .where(
        escalations.c.id == bindparam("escalation_id"),
        escalations.c.status == bindparam("from_status"),
        escalations.c.reminders == bindparam("from_reminders"),
    )
    .values({name: bindparam(name) for name in _CHANGING})
)
BY_ID: Final = Statement(_ROW.where(escalations.c.id == bindparam("id")))
ENDING_IN: Final = Statement(_ROW.where(escalations.c.id.like(bindparam("pattern"))).order_by(*_NEWEST).limit(2))
UNANSWERED: Final = Statement(_ROW.where(_UNANSWERED).order_by(*_ORDER))
UNANSWERED_OF_MISSION: Final = Statement(_ROW.where(_OF_MISSION, _UNANSWERED).order_by(*_ORDER))
NEWEST: Final = Statement(_ROW.order_by(*_NEWEST).limit(bindparam("most")))
NEWEST_OF_MISSION: Final = Statement(_ROW.where(_OF_MISSION).order_by(*_NEWEST).limit(bindparam("most")))
ALL_OF_MISSION: Final = Statement(_ROW.where(_OF_MISSION).order_by(*_ORDER))

# --- what the trail knows of todos --------------------------------------------------------------------
_IN_STREAM = events.c.stream == bindparam("stream")
IN_STATE_SINCE: Final = Statement(
    select(func.max(events.c.at)).where(
        _IN_STREAM,
        events.c.subject == bindparam("subject"),
        events.c.to_status == bindparam("status"),
        or_(events.c.from_status.is_(None), events.c.from_status != events.c.to_status),
    )
)
# The stream is read once, and not at all when nothing in the backlog is that old.
UNTOUCHED: Final = Statement(
    select(events.c.subject, func.max(events.c.at))
    .where(
        _IN_STREAM,
        events.c.subject.in_(
            select(mission_todos.c.id).where(
                mission_todos.c.mission_id == bindparam("mission_id"),
                mission_todos.c.status == literal_column(f"'{Status.BACKLOG}'"),
                mission_todos.c.ended_at.is_(None),
                mission_todos.c.created_at <= bindparam("before"),
            )
        ),
    )
    .group_by(events.c.subject)
)


def add(tx: Transaction, escalation: Escalation) -> None:
    tx.run(INSERT, **escalation._asdict())


def change(tx: Transaction, before: Escalation, after: Escalation) -> bool:
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


def ending_in(tx: Transaction, end: str) -> list[Escalation]:
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


def all_of(tx: Transaction, mission_id: str) -> list[Escalation]:
    return [_from_row(row) for row in tx.all(ALL_OF_MISSION, mission_id=mission_id)]


def in_state_since(tx: Transaction, stream: str, todo_id: str, status: Status) -> str | None:
    """When a todo came into the state it is in."""
    row = tx.one(IN_STATE_SINCE, stream=stream, subject=todo_id, status=status.value)
    return row[0] if row else None


def untouched(tx: Transaction, stream: str, mission_id: str, before: str) -> frozenset[str]:
    """Ids of what is in the backlog and has not changed since `before`."""
    rows: Sequence[tuple[Any, ...]] = tx.all(UNTOUCHED, stream=stream, mission_id=mission_id, before=before)
    return frozenset(id for id, at in rows if at <= before)


def _from_row(row: tuple[Any, ...]) -> Escalation:
    found = Escalation._make(row)
    if found.status not in _STATUSES:
        raise StoreDamaged.not_as_written(f"Escalation {found.id!r}")
    return found
