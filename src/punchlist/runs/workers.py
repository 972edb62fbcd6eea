"""Which workers live: each renews its row while it does (I3)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from punchlist.kernel.clock import timestamp
from punchlist.kernel.processes import is_running
from punchlist.runs import worker_repository
from punchlist.runs.worker_repository import WorkerRecord
from punchlist.storage.store import Store, Transaction

RENEWAL: Final = timedelta(seconds=10)
WORKER_TIMEOUT: Final = timedelta(seconds=60)
"""A worker that was not seen for this long is not alive."""
_RETENTION: Final = timedelta(days=7)


def alive_since(now: datetime) -> str:
    """Workers that were seen later than this are alive."""
    return timestamp(now - WORKER_TIMEOUT)


def live_workers(tx: Transaction, now: datetime) -> list[WorkerRecord]:
    found = worker_repository.alive(tx, alive_since(now))
    return [worker for worker in found if is_running(worker.id) is not False]


def last_seen(tx: Transaction, id: str) -> str | None:
    """When a worker renewed its row; None without a row, which is deleted days after the last renewal."""
    worker = worker_repository.find(tx, id)
    return worker.seen_at if worker is not None else None


class WorkerRegistration:
    """The row of one worker."""

    def __init__(self, store: Store, id: str, slots: int) -> None:
        self._store = store
        self._id = id
        self._slots = slots
        self._seen: datetime | None = None

    def renew(self) -> None:
        """Write the row, unless it was written a moment ago."""
        now = self._store.clock()
        # A clock that was set back also causes a write.
        if self._seen is not None and self._seen <= now < self._seen + RENEWAL:
            return
        with self._store.write() as tx:
            tx.run(worker_repository.REGISTER, id=self._id, slots=self._slots, at=timestamp(now))
            if self._seen is None:
                tx.run(worker_repository.FORGET, before=timestamp(now - _RETENTION))
        self._seen = now

    def renewals(self, ids: Collection[str]) -> dict[str, str | None]:
        """When these workers last renewed their rows; None for one without a row."""
        with self._store.read() as tx:
            found = {id: worker_repository.find(tx, id) for id in ids}
        return {id: worker.seen_at if worker else None for id, worker in found.items()}

    def ended(self, ids: Collection[str]) -> set[str]:
        """Those of these workers that have shut down."""
        with self._store.read() as tx:
            return {id for id in ids if (worker := worker_repository.find(tx, id)) and worker.ended_at is not None}

    def silent(self) -> set[str]:
        """Other workers whose row has not ended, but that do not renew it."""
        now = self._store.clock()
        with self._store.read() as tx:
            found = worker_repository.alive(tx, alive_since(now))
        late = timestamp(now - 1.5 * RENEWAL)
        return {
            worker.id
            for worker in found
            if worker.id != self._id and (worker.seen_at < late or is_running(worker.id) is False)
        }

    def end(self, ids: Collection[str] = ()) -> None:
        """End this worker's row, or those of dead workers."""
        with self._store.write() as tx:
            for id in ids or [self._id]:
                tx.run(worker_repository.END, id=id, at=tx.now())
