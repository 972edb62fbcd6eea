"""The SQL of runs, inside somebody's transaction."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import bindparam, exists, insert, literal_column, or_, select, update

from punchlist.runs.lifecycle import OPEN, RunStatus
from punchlist.runs.model import Kind, Run, from_row
from punchlist.storage.schema import runs
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

_COLUMNS: Final = [runs.c[name] for name in Run._fields]
_CHANGED: Final = (
    *("status", "leg", "attempts", "executor", "turn_id", "wish", "message", "why", "result"),
    *("changed_at", "started_at", "ended_at", "input_tokens", "output_tokens", "cost", "calls", "seconds"),
)
_BUSY: Final[list[Any]] = [literal_column(f"'{status}'") for status in OPEN if status is not RunStatus.QUEUED]
_OTHER = runs.alias()
# It says nothing in the chat that others could be interrupted by.
_ALONGSIDE: Final[Any] = literal_column(f"'{Kind.COLLECT}'")

INSERT: Final = Statement(insert(runs).values({name: bindparam(name) for name in Run._fields}))
BY_ID: Final = Statement(select(*_COLUMNS).where(runs.c.id == bindparam("id")))
LOCK: Final = Statement(select(*_COLUMNS).where(runs.c.id == bindparam("id")).with_for_update(key_share=True))
UPDATE: Final = Statement(
    update(runs)
    .where(runs.c.id == bindparam("run_id"), runs.c.status == bindparam("was"))
    .values({name: bindparam(name) for name in _CHANGED})
)
# Those whose chat is free: of each chat the oldest, since one after the other works in it.
READY: Final = Statement(
    select(*_COLUMNS)
    .where(
        runs.c.ended_at.is_(None),
        runs.c.status == literal_column("'queued'"),
        runs.c.wish.is_(None),
        or_(
            runs.c.kind == _ALONGSIDE,
            ~exists().where(
                _OTHER.c.conversation_id == runs.c.conversation_id,
                _OTHER.c.status.in_(_BUSY),
                _OTHER.c.kind != _ALONGSIDE,
            ),
        ),
    )
    .order_by(runs.c.created_at, runs.c.id)
    .limit(bindparam("most"))
)
CHAT_BUSY: Final = Statement(
    select(runs.c.id)
    .where(runs.c.conversation_id == bindparam("conversation_id"), runs.c.status.in_(_BUSY), runs.c.kind != _ALONGSIDE)
    .limit(1)
)
OF_STATUS: Final = Statement(
    select(*_COLUMNS)
    .where(runs.c.ended_at.is_(None), runs.c.status == bindparam("status"))
    .order_by(runs.c.created_at, runs.c.id)
)
WANTED: Final = Statement(
    select(*_COLUMNS).where(
        runs.c.ended_at.is_(None),
        runs.c.executor == bindparam("executor"),
        or_(runs.c.wish.is_not(None), runs.c.message.is_not(None)),
    )
)
OPEN_RUNS: Final = Statement(
    select(*_COLUMNS)
    .where(runs.c.ended_at.is_(None), or_(bindparam("any") == 1, runs.c.mission_id == bindparam("mission_id")))
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(bindparam("most"))
)
NEWEST: Final = Statement(
    select(*_COLUMNS).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(bindparam("most"))
)
OF_MISSION: Final = Statement(
    select(*_COLUMNS)
    .where(runs.c.mission_id == bindparam("mission_id"))
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(bindparam("most"))
)
OF_TODO: Final = Statement(
    select(*_COLUMNS).where(runs.c.todo_id == bindparam("todo_id")).order_by(runs.c.created_at.desc(), runs.c.id.desc())
)
OPEN_OF: Final = Statement(
    select(*_COLUMNS).where(
        runs.c.ended_at.is_(None), runs.c.mission_id == bindparam("mission_id"), runs.c.kind == bindparam("kind")
    )
)
LAST_OF: Final = Statement(
    select(*_COLUMNS)
    .where(
        runs.c.mission_id == bindparam("mission_id"), runs.c.kind == bindparam("kind"), runs.c.id != bindparam("but")
    )
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(1)
)
CHAT_OPEN: Final = Statement(
    select(runs.c.id)
    .where(
        runs.c.conversation_id == bindparam("conversation_id"),
        runs.c.ended_at.is_(None),
        runs.c.kind == literal_column(f"'{Kind.CHAT}'"),
    )
    .limit(1)
)
ENDING_SO: Final = Statement(select(*_COLUMNS).where(runs.c.id.like(bindparam("like"))).limit(2))


def run(tx: Transaction, id: str) -> Run | None:
    row = tx.one(BY_ID, id=id)
    return from_row(row) if row else None


def lock(tx: Transaction, id: str) -> Run | None:
    row = tx.one(LOCK, id=id)
    return from_row(row) if row else None


def found(tx: Transaction, statement: Statement, **params: Any) -> list[Run]:
    return [from_row(row) for row in tx.all(statement, **params)]


def has_to_wait(tx: Transaction, run: Run) -> bool:
    """Whether another run works in its chat."""
    if run.kind is Kind.COLLECT:
        return False
    return tx.one(CHAT_BUSY, conversation_id=run.conversation_id) is not None


def add(tx: Transaction, made: Run) -> None:
    tx.run(INSERT, **made._asdict())


def change(tx: Transaction, before: Run, after: Run) -> bool:
    values = {name: getattr(after, name) for name in _CHANGED}
    return bool(tx.run(UPDATE, run_id=before.id, was=before.status.value, **values))
