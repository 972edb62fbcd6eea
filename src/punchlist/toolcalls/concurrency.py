"""Decides which call runs next: slots, priorities, and locks on resources.

A resource key is a readers-writer lock, first come, first served. A call claims all its keys at once, so
of two calls the earlier one is ahead on every key they share: there is no deadlock.
"""

from __future__ import annotations

import graphlib
import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from punchlist.toolcalls.tool import Resources

MAX_CONCURRENT_CALLS: Final = 16


class _Key:
    """One key: its holders and its queue."""

    __slots__ = ("readers", "waiting", "writer")

    def __init__(self) -> None:
        self.readers = 0
        self.writer = False
        self.waiting: deque[tuple[str, bool]] = deque()

    def acquire(self, call_id: str, writing: bool) -> bool:
        if self.waiting or self.writer or (writing and self.readers):
            self.waiting.append((call_id, writing))
            return False
        self._grant(writing)
        return True

    def release(self, writing: bool) -> None:
        if writing:
            self.writer = False
        else:
            self.readers -= 1

    def dequeue(self, call_id: str, writing: bool) -> None:
        self.waiting.remove((call_id, writing))

    def admit(self) -> list[str]:
        """Grant the key to the calls at the front of the queue; returns their ids."""
        admitted = []
        while self.waiting and not self.writer:
            call_id, writing = self.waiting[0]
            if writing and self.readers:
                break
            self.waiting.popleft()
            self._grant(writing)
            admitted.append(call_id)
        return admitted

    def _grant(self, writing: bool) -> None:
        if writing:
            self.writer = True
        else:
            self.readers += 1

    @property
    def idle(self) -> bool:
        return not (self.readers or self.writer or self.waiting)


class ResourceLocks:
    """The locks that calls hold and wait for."""

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}
        self._claimed: dict[str, dict[str, bool]] = {}
        self._held: dict[str, set[str]] = {}

    def claim(self, call_id: str, resources: Resources) -> bool:
        """Queue for all of `resources`. True when the call has them at once."""
        if not resources.reads and not resources.writes:
            return True
        # A write lock includes reading.
        keys = {**dict.fromkeys(resources.reads, False), **dict.fromkeys(resources.writes, True)}
        self._claimed[call_id] = keys
        held = {key for key, writing in keys.items() if self._keys.setdefault(key, _Key()).acquire(call_id, writing)}
        self._held[call_id] = held
        return len(held) == len(keys)

    def release(self, call_id: str) -> list[str]:
        """Release all keys of a call. Returns the calls that have all their keys now."""
        keys = self._claimed.pop(call_id, None)
        if keys is None:
            return []
        held = self._held.pop(call_id)
        free: list[str] = []
        for key, writing in keys.items():
            state = self._keys[key]
            if key in held:
                state.release(writing)
            else:
                state.dequeue(call_id, writing)
            for admitted in state.admit():
                self._held[admitted].add(key)
                if len(self._held[admitted]) == len(self._claimed[admitted]):
                    free.append(admitted)
            if state.idle:
                del self._keys[key]
        return free


class CallSlots:
    """Limits how many calls run at once. Higher priority first, then first come, first served."""

    def __init__(self, limit: int = MAX_CONCURRENT_CALLS) -> None:
        self._limit = limit
        self._taken = 0
        self._queue: list[tuple[int, int, str]] = []
        self._arrivals = 0

    def queue(self, call_id: str, priority: int) -> None:
        self._arrivals += 1
        heapq.heappush(self._queue, (-priority, self._arrivals, call_id))

    def next(self) -> str | None:
        """Take a slot for the next call; None when no slot is free or no call waits."""
        if self._taken >= self._limit or not self._queue:
            return None
        self._taken += 1
        return heapq.heappop(self._queue)[2]

    def free(self) -> None:
        self._taken -= 1


def find_cycle(depends_on: Mapping[str, Iterable[str]]) -> list[str] | None:
    """Ids of calls that depend on each other in a cycle, or None."""
    try:
        graphlib.TopologicalSorter(depends_on).prepare()
    except graphlib.CycleError as error:
        # It names the first call again at the end, and each call before those that depend on it.
        cycle: list[str] = error.args[1][:0:-1]
        return cycle
    return None
