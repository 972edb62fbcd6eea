"""The order in which the calls of one batch take effect (S6). Pure.

A call that only reads waits for earlier calls that write; any other call waits for all earlier calls. Declared
resource keys limit that to the calls with a key in common, of which at least one writes it. A call that writes and
declares no key that it writes could change anything, so it waits for all and all later calls wait for it: a barrier.
Only the calls since the last barrier have to be compared.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from punchlist.toolcalls.model import ToolCallRequest
from punchlist.toolcalls.tool import Effect, Resources

T = TypeVar("T")


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
