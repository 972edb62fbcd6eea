"""One timer for all running calls: a timer each would cost more than a short call does."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from punchlist.toolcalls.call_entry import CallEntry


class CallTimeouts:
    """Says whose deadline has passed; an entry may be given a new one at any time by watching it again."""

    def __init__(self, passed: Callable[[CallEntry], None]) -> None:
        self._passed = passed
        self._watched: set[CallEntry] = set()
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, entry: CallEntry, deadline: float) -> None:
        entry.deadline = deadline
        self._watched.add(entry)
        if deadline < self._next:
            self._look_again_at(deadline)

    def forget(self, entry: CallEntry) -> None:
        self._watched.discard(entry)
        if not self._watched and self._timer is not None:
            self._timer.cancel()
            self._timer, self._next = None, math.inf

    def _look_again_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = moment
        self._timer = asyncio.get_running_loop().call_at(moment, self._look)

    def _look(self) -> None:
        self._timer, self._next = None, math.inf
        now = asyncio.get_running_loop().time()
        for entry in [entry for entry in self._watched if entry.deadline <= now]:
            self._passed(entry)
        if self._watched:
            self._look_again_at(min(entry.deadline for entry in self._watched))
