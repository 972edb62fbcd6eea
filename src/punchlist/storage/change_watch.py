"""Polls for writes by this process or others."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from punchlist.errors import StoreUnavailable
from punchlist.storage.store import Store

INTERVAL: Final = 0.05
"""Seconds between two polls. A poll costs a few microseconds on SQLite, one round trip on PostgreSQL."""
MAX_FAILED_POLLS: Final = 30
"""Consecutive polls that may fail before the error is raised."""


class ChangeWatch:
    """Uses a separate connection: SQLite counts the changes by other connections."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection: Any = None
        self._seen: int | None = None

    def __enter__(self) -> ChangeWatch:
        self.changed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def changed(self) -> bool:
        """Whether anything was written since the last call. False while the database is unreachable."""
        try:
            if self._connection is None:
                self._connection = self._store.database.connect()
            elif not self._store.database.is_same_file(self._connection):
                # The file at the path is another one now.
                self.close()
                self._seen = None
                return True
            mark = self._store.database.change_counter(self._connection.cursor())
        except self._store.database.driver_error:
            # Reconnect at the next call; a new connection then reports a change.
            self.close()
            self._seen = None
            return False
        before, self._seen = self._seen, mark
        return before != mark

    def wait(self, seconds: float, interval: float = INTERVAL) -> bool:
        """Wait for a change, at most this long."""
        until = time.monotonic() + seconds
        while not self.changed():
            if time.monotonic() >= until:
                return False
            time.sleep(interval)
        return True

    def close(self) -> None:
        """The next call connects again."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None


class PollBackoff:
    """Tolerates a database that is unavailable for a short time, in a polling loop."""

    def __init__(self) -> None:
        self._missed = 0

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._missed = self._missed + 1 if error is not None else 0
        return isinstance(error, StoreUnavailable) and self._missed <= MAX_FAILED_POLLS
