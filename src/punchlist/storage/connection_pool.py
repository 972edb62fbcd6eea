"""The pool of database connections of a store."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final

MAX_CONNECTIONS: Final = 32
"""Connections in use at once; further callers wait."""


class ConnectionPool:
    """Idle connections: last in, first out, bounded, never shared across a fork.

    A general-purpose pool costs as much per check-out as a small SQLite transaction.
    """

    def __init__(self, connect: Callable[[], Any], is_reusable: Callable[[Any], bool]) -> None:
        self._connect = connect
        self._is_reusable = is_reusable
        self._reset()

    def _reset(self) -> None:
        self._idle: deque[Any] = deque()
        self._tokens: SimpleQueue[None] = SimpleQueue()
        for _ in range(MAX_CONNECTIONS):
            self._tokens.put(None)
        self._pid = os.getpid()
        # The last connection to a SQLite file that closes cleans up its log.
        weakref.finalize(self, _close_all, self._idle, self._pid)

    def acquire(self) -> Any:
        """An idle connection, or a new one."""
        if self._pid != os.getpid():
            self._reset()
        self._tokens.get()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._connect()
        except BaseException:
            self._tokens.put(None)
            raise

    def release(self, connection: Any) -> None:
        if not self._is_reusable(connection):
            self.discard(connection)
            return
        self._idle.append(connection)
        self._tokens.put(None)

    def discard(self, connection: Any) -> None:
        """Close a connection that may be in an undefined state after an error."""
        try:
            with suppress(Exception):
                connection.close()
        finally:
            self._tokens.put(None)

    def close(self) -> None:
        _close_all(self._idle, self._pid)


def _close_all(idle: deque[Any], pid: int) -> None:
    # A forked child must not even close its parent's connections.
    while idle and os.getpid() == pid:
        with suppress(Exception):
            idle.pop().close()
