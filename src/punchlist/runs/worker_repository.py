"""The SQL of workers. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.storage.statements import SelectAll, SelectOne, Statement, select


class WorkerRecord(NamedTuple):
    """A row of `workers`."""

    id: str
    slots: int
    started_at: str
    seen_at: str
    ended_at: str | None = None


_SELECT: Final = select("workers", WorkerRecord._fields)
REGISTER: Final = Statement(
    "INSERT INTO workers (id, slots, started_at, seen_at) VALUES (:id, :slots, :at, :at) "
    "ON CONFLICT (id) DO UPDATE SET slots = excluded.slots, seen_at = excluded.seen_at, ended_at = NULL"
)
END: Final = Statement("UPDATE workers SET ended_at = :at WHERE id = :id AND ended_at IS NULL")
FORGET: Final = Statement("DELETE FROM workers WHERE seen_at < :before")
alive: Final = SelectAll(
    WorkerRecord._make, f"{_SELECT} WHERE ended_at IS NULL AND seen_at > :since ORDER BY started_at, id"
)
find: Final = SelectOne(WorkerRecord._make, f"{_SELECT} WHERE id = :id")
