"""Which calls may run now: their order within a batch, locks on resources, slots and priorities.

Order (S6): the calls of a batch take effect as if they ran one after the other. A call that only reads waits for
earlier calls that write; any other call waits for all earlier calls. Declared resource keys limit that to the calls
with a key in common, of which at least one writes it. A call that writes and declares no key that it writes could
change anything, so it waits for all and all later calls wait for it: a barrier. Only the calls since the last barrier
have to be compared.

Locks: a resource key is a readers-writer lock, first come, first served. A call claims all its keys at once, so of two
calls the earlier one is ahead on every key they share: there is no deadlock.
"""

from __future__ import annotations

import graphlib
import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from punchlist.toolcalls.model import ToolCallRequest
from punchlist.toolcalls.tool import Effect, Resources

T = TypeVar("T")

MAX_CONCURRENT_CALLS: Final = 16


# --- the order of a batch ---------------------------------------------------------------------------------


class PlacedCall(NamedTuple, Generic[T]):
    call: T
    number: int
    writes: bool


class CallOrder(Generic[T]):
    """The calls of one batch, added in their order."""

    def __init__(self) -> None:
        self._count = 0
        self._barrier: PlacedCall[T] | None = None
        self._since_barrier: list[PlacedCall[T]] = []
        self._reads_without_key: list[PlacedCall[T]] = []
        self._writes_with_key: list[PlacedCall[T]] = []
        self._readers: dict[str, list[PlacedCall[T]]] = {}
        self._writer: dict[str, PlacedCall[T]] = {}

    def before(self, effect: Effect, resources: Resources) -> list[PlacedCall[T]]:
        """The calls so far that a call with these properties must wait for."""
        found = [self._barrier] if self._barrier is not None else []
        if _writes(effect, resources):
            if not resources.writes:
                return found + self._since_barrier
            found += self._reads_without_key
        elif not resources.reads:
            return found + self._writes_with_key
        for key in resources.reads | resources.writes:
            if key in self._writer:
                found.append(self._writer[key])
            if key in resources.writes:
                found += self._readers.get(key, ())
        return list({placed.number: placed for placed in found}.values())

    def add(self, call: T, effect: Effect, resources: Resources) -> PlacedCall[T]:
        self._count += 1
        placed = PlacedCall(call, self._count, _writes(effect, resources))
        if placed.writes and not resources.writes:
            self._barrier = placed
            for calls in (self._since_barrier, self._reads_without_key, self._writes_with_key):
                calls.clear()
            self._readers.clear()
            self._writer.clear()
            return placed
        self._since_barrier.append(placed)
        if placed.writes:
            self._writes_with_key.append(placed)
        elif not resources.reads:
            self._reads_without_key.append(placed)
        for key in resources.writes:
            self._writer[key] = placed
            self._readers.pop(key, None)
        for key in resources.reads - resources.writes:
            self._readers.setdefault(key, []).append(placed)
        return placed


def _writes(effect: Effect, resources: Resources) -> bool:
    return effect is not Effect.READ or bool(resources.writes)


def writes_between(first: PlacedCall[T], before: Sequence[PlacedCall[T]]) -> bool:
    """Whether a call after `first` writes what the call behind `before` uses."""
    return any(placed.writes and placed.number > first.number for placed in before)


def dependencies_first(requests: Sequence[ToolCallRequest]) -> Sequence[ToolCallRequest]:
    """The requests in their order, except that a call comes after those of the batch that it depends on.

    Calls that depend on each other in a cycle come last.
    """
    if not any(request.depends_on for request in requests):
        return requests
    index = {request.call_id: number for number, request in enumerate(requests)}
    missing = [{index[id] for id in request.depends_on if id in index} for request in requests]
    dependents: dict[int, list[int]] = {}
    for number, dependencies in enumerate(missing):
        for dependency in dependencies:
            dependents.setdefault(dependency, []).append(number)
    ready = [number for number, dependencies in enumerate(missing) if not dependencies]
    placed: dict[int, None] = {}
    while ready:
        number = heapq.heappop(ready)
        placed[number] = None
        for dependent in dependents.get(number, ()):
            missing[dependent].discard(number)
            if not missing[dependent]:
                heapq.heappush(ready, dependent)
    rest = [number for number in range(len(requests)) if number not in placed]
    return [requests[number] for number in (*placed, *rest)]


def find_cycle(depends_on: Mapping[str, Iterable[str]]) -> list[str] | None:
    """Ids of calls that depend on each other in a cycle, or None."""
    try:
        graphlib.TopologicalSorter(depends_on).prepare()
    except graphlib.CycleError as error:
        # It names the first call again at the end, and each call before those that depend on it.
        cycle: list[str] = error.args[1][:0:-1]
        return cycle
    return None


# --- locks and slots --------------------------------------------------------------------------------------


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
