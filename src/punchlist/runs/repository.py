"""The SQL of runs, inside somebody's transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.runs.lifecycle import OPEN, RunStatus
from punchlist.runs.model import Run, RunKind, from_row
from punchlist.storage.statements import ROW_LOCK, Statement, columns, insert, literals, update
from punchlist.storage.store import Transaction

_ROW: Final = f"SELECT {columns(Run._fields)} FROM runs"
_OLDEST_FIRST: Final = "ORDER BY created_at, id"
_NEWEST_FIRST: Final = "ORDER BY created_at DESC, id DESC"
_CHANGED: Final = (
    *("status", "leg", "attempts", "executor", "turn_id", "wish", "message", "why", "result"),
    *("changed_at", "started_at", "ended_at", "input_tokens", "output_tokens", "cost", "calls", "seconds"),
)
_BUSY: Final = literals(status for status in OPEN if status is not RunStatus.QUEUED)
# It says nothing in the chat that others could be interrupted by.
_SHARED: Final = f"'{RunKind.COLLECT}'"

INSERT: Final = insert("runs", Run._fields)
BY_ID: Final = Statement(f"{_ROW} WHERE id = :id")
LOCK: Final = Statement(f"{_ROW} WHERE id = :id", lock=ROW_LOCK)
UPDATE: Final = update("runs", _CHANGED, where="id = :run_id AND status = :was")
# Those whose chat is free: of each chat the oldest, since one after the other works in it.
READY: Final = Statement(
    f"{_ROW} WHERE ended_at IS NULL AND status = '{RunStatus.QUEUED}' AND wish IS NULL "
    f"AND (kind = {_SHARED} OR NOT EXISTS ("
    "SELECT 1 FROM runs AS other WHERE other.conversation_id = runs.conversation_id "
    f"AND other.status IN ({_BUSY}) AND other.kind <> {_SHARED})) "
    f"{_OLDEST_FIRST} LIMIT :limit"
)
CHAT_BUSY: Final = Statement(
    f"SELECT id FROM runs WHERE conversation_id = :conversation_id AND status IN ({_BUSY}) AND kind <> {_SHARED} "
    "LIMIT 1"
)
BY_STATUS: Final = Statement(f"{_ROW} WHERE ended_at IS NULL AND status = :status {_OLDEST_FIRST}")
WITH_REQUESTS: Final = Statement(
    f"{_ROW} WHERE ended_at IS NULL AND executor = :executor AND (wish IS NOT NULL OR message IS NOT NULL)"
)
OPEN_RUNS: Final = Statement(
    f"{_ROW} WHERE ended_at IS NULL AND (:any = 1 OR mission_id = :mission_id) {_NEWEST_FIRST} LIMIT :limit"
)
NEWEST: Final = Statement(f"{_ROW} {_NEWEST_FIRST} LIMIT :limit")
BY_MISSION: Final = Statement(f"{_ROW} WHERE mission_id = :mission_id {_NEWEST_FIRST} LIMIT :limit")
BY_TODO: Final = Statement(f"{_ROW} WHERE todo_id = :todo_id {_NEWEST_FIRST}")
OPEN_BY_KIND: Final = Statement(f"{_ROW} WHERE ended_at IS NULL AND mission_id = :mission_id AND kind = :kind")
LATEST_BY_KIND: Final = Statement(
    f"{_ROW} WHERE mission_id = :mission_id AND kind = :kind AND id <> :but {_NEWEST_FIRST} LIMIT 1"
)
OPEN_CHAT_RUN: Final = Statement(
    f"SELECT id FROM runs WHERE conversation_id = :conversation_id AND ended_at IS NULL AND kind = '{RunKind.CHAT}' "
    "LIMIT 1"
)
BY_ID_SUFFIX: Final = Statement(f"{_ROW} WHERE id LIKE :like LIMIT 2")


def find(tx: Transaction, id: str) -> Run | None:
    row = tx.one(BY_ID, id=id)
    return from_row(row) if row else None


def lock(tx: Transaction, id: str) -> Run | None:
    row = tx.one(LOCK, id=id)
    return from_row(row) if row else None


def select(tx: Transaction, statement: Statement, **params: Any) -> list[Run]:
    return [from_row(row) for row in tx.all(statement, **params)]


def chat_is_busy(tx: Transaction, run: Run) -> bool:
    """Whether another run works in its chat."""
    if run.kind is RunKind.COLLECT:
        return False
    return tx.one(CHAT_BUSY, conversation_id=run.conversation_id) is not None


def insert_run(tx: Transaction, made: Run) -> None:
    tx.run(INSERT, **made._asdict())


def update_run(tx: Transaction, before: Run, after: Run) -> bool:
    values = {name: getattr(after, name) for name in _CHANGED}
    return bool(tx.run(UPDATE, run_id=before.id, was=before.status.value, **values))
