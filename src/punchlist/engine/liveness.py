"""Detect dead workers: each worker holds a lock as long as it lives.

On SQLite this is a lock on a file named after the worker, beside the database; the operating system releases it when
the process dies. On PostgreSQL it is an advisory lock on a dedicated connection; the server releases it when the
connection breaks.

A worker that is frozen keeps its lock. It is taken over when its lease ends: when it has not renewed its row in
`workers` for `LEASE_SECONDS`. This is measured by the clock of the observer, since the clocks of hosts differ. When the
worker wakes up, its writes are refused, because its runs name another owner.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from filelock import FileLock, Timeout

from punchlist.engine.database import engine_file
from punchlist.errors import StoreUnavailable
from punchlist.storage.postgres import PostgreSQL
from punchlist.storage.store import Store

LEASE_SECONDS: Final = 60.0
_TIMEOUT: Final = 30.0
_KEEPALIVE: Final = {"keepalives": 1, "keepalives_idle": 2, "keepalives_interval": 1, "keepalives_count": 3}
_CONNECTION: Final = {**_KEEPALIVE, "tcp_user_timeout": 10_000, "connect_timeout": 10}


class LivenessLocks(Protocol):
    def acquire(self, name: str) -> None:
        """Hold the lock `name` until `close` or the end of the process."""

    def is_free(self, name: str) -> bool: ...

    def is_held(self) -> bool:
        """Whether this worker still holds its lock."""

    def close(self) -> None: ...


def liveness_locks(store: Store) -> LivenessLocks:
    if isinstance(store.database, PostgreSQL):
        return AdvisoryLocks(store.database.url)
    return FileLocks(engine_file(store).with_suffix(".workers"))


class Leases:
    """Which workers have not renewed their row for `LEASE_SECONDS`, as far as this process has watched them."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: dict[str, tuple[str | None, float]] = {}

    def expired(self, renewed: Mapping[str, str | None]) -> set[str]:
        """`renewed` has the time of the last renewal of each worker to watch; None without a row."""
        now = self._monotonic()
        self._seen = {
            name: known if (known := self._seen.get(name)) is not None and known[0] == at else (at, now)
            for name, at in renewed.items()
        }
        return {name for name, (_, since) in self._seen.items() if now - since >= LEASE_SECONDS}


class FileLocks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: FileLock | None = None

    def acquire(self, name: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held = self._lock(name)
        self._held.acquire(timeout=_TIMEOUT)

    def is_free(self, name: str) -> bool:
        if not self._file(name).exists():
            return True
        lock = self._lock(name)
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):
            return False
        lock.release()
        with suppress(OSError):
            # Its owner is dead, and names of workers are unique.
            self._file(name).unlink()
        return True

    def is_held(self) -> bool:
        return self._held is not None and self._held.is_locked

    def close(self) -> None:
        if self._held is not None:
            self._held.release()
            with suppress(OSError):
                Path(self._held.lock_file).unlink()
            self._held = None

    def _lock(self, name: str) -> FileLock:
        # Any thread of the process may release it.
        return FileLock(self._file(name), thread_local=False)

    def _file(self, name: str) -> Path:
        return self._folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.lock"


class AdvisoryLocks:
    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None

    def acquire(self, name: str) -> None:
        import psycopg

        self.close()
        try:
            self._connection = psycopg.connect(self._url, autocommit=True, **_CONNECTION)  # type: ignore[arg-type]
            self._connection.execute("SELECT pg_advisory_lock(%s)", [_key(name)])
        except psycopg.Error as error:
            raise StoreUnavailable(f"Cannot register this worker on the PostgreSQL server ({error}).") from error

    def is_free(self, name: str) -> bool:
        (taken,) = self._connection.execute("SELECT pg_try_advisory_lock(%s)", [_key(name)]).fetchone()
        if taken:
            self._connection.execute("SELECT pg_advisory_unlock(%s)", [_key(name)])
        return bool(taken)

    def is_held(self) -> bool:
        import psycopg

        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"punchlist:{name}".encode()).digest()[:8], "big", signed=True)
