"""Connections that wait to be used again.

SQLAlchemy's pool costs as much per check-out as a small SQLite transaction, so the store keeps its
idle connections itself: last in, first out, with an upper bound, and none across a fork.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final

from sqlalchemy.engine import Engine

MOST: Final = 32
"""Connections in use at once; whoever comes later waits for one."""


class Connections:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reset()

    def _reset(self) -> None:
        self._idle: deque[Any] = deque()
        self._tokens: SimpleQueue[None] = SimpleQueue()
        for _ in range(MOST):
            self._tokens.put(None)
        self._pid = os.getpid()

    def take(self) -> Any:
        """A connection that waits, else a new one."""
        if self._pid != os.getpid():
            # A forked child must not touch its parent's connections, not even to close them.
            self._reset()
        self._tokens.get()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._engine.raw_connection()
        except BaseException:
            self._tokens.put(None)
            raise

    def give_back(self, connection: Any) -> None:
        self._idle.append(connection)
        self._tokens.put(None)

    def discard(self, connection: Any) -> None:
        """For a connection that may be in any state after an error."""
        try:
            connection.invalidate()
        finally:
            self._tokens.put(None)

    def close(self) -> None:
        while self._idle:
            with suppress(Exception):
                self._idle.pop().close()
