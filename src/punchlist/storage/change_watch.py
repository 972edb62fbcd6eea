"""Noticing that somebody wrote, in this process or another."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from punchlist.errors import StoreUnavailable
from punchlist.storage.store import Store

INTERVAL: Final = 0.05
"""Seconds between two looks; one costs a few microseconds on SQLite, one round trip on PostgreSQL."""
MAX_FAILED_POLLS: Final = 30
"""Looks in a row for which a database may be gone."""


class ChangeWatch:
    """Holds a connection of its own, since SQLite counts changes as one connection sees them."""

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
        self._drop()

    def changed(self) -> bool:
        """Whether anything was written since the last look. A database that is away has not changed."""
        try:
            if self._connection is None:
                self._connection = self._store.database.connect()
            elif not self._store.database.is_same_file(self._connection):
                # Whoever looks now sees what has its name.
                self._drop()
                self._seen = None
                return True
            mark = self._store.database.change_counter(self._connection.cursor())
        except self._store.database.driver_error:
            # Look again when it is back: a new connection counts from anew, and that is a change.
            self._drop()
            self._seen = None
            return False
        before, self._seen = self._seen, mark
        return before != mark

    def wait(self, seconds: float) -> bool:
        """Wait for a change, at most this long."""
        until = time.monotonic() + seconds
        while not self.changed():
            if time.monotonic() >= until:
                return False
            time.sleep(INTERVAL)
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None


class PollBackoff:
    """For those who look again and again: a server that is gone for a moment is no reason to end, one that stays away
    is."""

    def __init__(self) -> None:
        self._missed = 0

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._missed = self._missed + 1 if error is not None else 0
        return isinstance(error, StoreUnavailable) and self._missed <= MAX_FAILED_POLLS
