"""Answers to reads that are given again while the database has not changed.

Pages and programs that follow events ask for the same things at the same moment. SQLite says for the price of a small
statement whether anything was committed, so an answer is never older than the newest commit. It is kept for a second
at most, because ages and the state of workers change without a commit. PostgreSQL has no such counter: there, every
answer is read anew.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar, cast

from punchlist.storage.async_bridge import is_remote
from punchlist.storage.change_watch import ChangeWatch
from punchlist.storage.store import Store

SECONDS: Final = 1.0
MAX_ANSWERS: Final = 100
T = TypeVar("T")


class AnswerCache:
    """For one event loop."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._watch = None if is_remote(store) else ChangeWatch(store)
        self._clock = clock
        self._answers: dict[Hashable, tuple[Any, float]] = {}
        self._generation = 0
        """How often the answers were dropped."""

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The answer to a request. `key` is everything that it depends on besides the database, its reader included."""
        if self._watch is None:
            return await read()
        self._drop_old(self._watch)
        answer, until = self._answers.get(key, (None, 0.0))
        now = self._clock()
        if now < until:
            return cast("T", answer)
        generation = self._generation
        found = await read()
        # Something may have been written since the answer was read.
        self._drop_old(self._watch)
        if generation == self._generation:
            self._answers[key] = found, now + SECONDS
        return found

    def __len__(self) -> int:
        return len(self._answers)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def _drop_old(self, watch: ChangeWatch) -> None:
        if watch.changed() or len(self._answers) >= MAX_ANSWERS:
            self._answers.clear()
            self._generation += 1
