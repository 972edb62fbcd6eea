"""Connections that wait to be used again.

A pool made for every need costs as much per check-out as a small SQLite transaction, so the store keeps its idle
connections itself: last in, first out, with an upper bound, and none across a fork.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final

MAX_CONNECTIONS: Final = 32
"""Connections in use at once; whoever comes later waits for one."""


class ConnectionPool:
    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._reset()

    def _reset(self) -> None:
        self._idle: deque[Any] = deque()
        self._tokens: SimpleQueue[None] = SimpleQueue()
        for _ in range(MAX_CONNECTIONS):
            self._tokens.put(None)
        self._pid = os.getpid()
        # When nobody uses them any more: whoever closes a SQLite file last tidies up its log.
        weakref.finalize(self, _close_all, self._idle, self._pid)

    def acquire(self) -> Any:
        """A connection that waits, else a new one."""
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
        self._idle.append(connection)
        self._tokens.put(None)

    def discard(self, connection: Any) -> None:
        """For a connection that may be in any state after an error."""
        try:
            with suppress(Exception):
                connection.close()
        finally:
            self._tokens.put(None)

    def close(self) -> None:
        _close_all(self._idle, self._pid)


def _close_all(idle: deque[Any], pid: int) -> None:
    # A forked child must not touch its parent's connections, not even to close them.
    while idle and os.getpid() == pid:
        with suppress(Exception):
            idle.pop().close()
