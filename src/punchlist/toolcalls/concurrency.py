"""Which call runs next: slots, priorities, and who may touch what at the same time.

Keys work like locks for readers and writers, first come first served. A call asks for all its keys
at once and in one go, so whoever came earlier is ahead on every key they share, and no two calls
can wait for each other.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from punchlist.toolcalls.tool import Resources

MAX_CONCURRENT_CALLS: Final = 16


class _Key:
    """The state of one key: who holds it, who waits for it."""

    __slots__ = ("readers", "waiting", "writer")

    def __init__(self) -> None:
        self.readers = 0
        self.writer = False
        self.waiting: deque[tuple[str, bool]] = deque()

    def take(self, call_id: str, writing: bool) -> bool:
        if self.waiting or self.writer or (writing and self.readers):
            self.waiting.append((call_id, writing))
            return False
        self._grant(writing)
        return True

    def give_back(self, writing: bool) -> None:
        if writing:
            self.writer = False
        else:
            self.readers -= 1

    def leave_line(self, call_id: str, writing: bool) -> None:
        self.waiting.remove((call_id, writing))

    def admit(self) -> list[str]:
        """Those at the front of the line who may have it now."""
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
    """Who reads and writes which keys."""

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}
        self._wanted: dict[str, dict[str, bool]] = {}
        self._held: dict[str, set[str]] = {}

    def claim(self, call_id: str, resources: Resources) -> bool:
        """Get in line for all of `resources`; True when the call may go ahead at once."""
        if not resources.reads and not resources.writes:
            return True
        # Whoever writes a key may read it too.
        wanted = {**dict.fromkeys(resources.reads, False), **dict.fromkeys(resources.writes, True)}
        self._wanted[call_id] = wanted
        held = {key for key, writing in wanted.items() if self._keys.setdefault(key, _Key()).take(call_id, writing)}
        self._held[call_id] = held
        return len(held) == len(wanted)

    def release(self, call_id: str) -> list[str]:
        """Let go of everything; those who may go ahead now."""
        wanted = self._wanted.pop(call_id, None)
        if wanted is None:
            return []
        held = self._held.pop(call_id)
        free: list[str] = []
        for key, writing in wanted.items():
            state = self._keys[key]
            if key in held:
                state.give_back(writing)
            else:
                state.leave_line(call_id, writing)
            for admitted in state.admit():
                self._held[admitted].add(key)
                if len(self._held[admitted]) == len(self._wanted[admitted]):
                    free.append(admitted)
            if state.idle:
                del self._keys[key]
        return free


class CallSlots:
    """At most so many at once, the most urgent first, then in the order they came."""

    def __init__(self, most: int = MAX_CONCURRENT_CALLS) -> None:
        self._most = most
        self._taken = 0
        self._line: list[tuple[int, int, str]] = []
        self._came = 0

    def queue(self, call_id: str, priority: int) -> None:
        self._came += 1
        heapq.heappush(self._line, (-priority, self._came, call_id))

    def next(self) -> str | None:
        """The next call, with a slot taken for it; None when all are taken or nobody waits."""
        if self._taken >= self._most or not self._line:
            return None
        self._taken += 1
        return heapq.heappop(self._line)[2]

    def free(self) -> None:
        self._taken -= 1


def find_cycle(depends_on: Mapping[str, Iterable[str]]) -> list[str] | None:
    """Calls that wait for each other in a circle, if there are any."""
    done: set[str] = set()
    for start in depends_on:
        path: dict[str, None] = {}
        stack = [(start, iter(depends_on.get(start, ())))]
        if start in done:
            continue
        path[start] = None
        while stack:
            current, rest = stack[-1]
            following = next((one for one in rest if one in depends_on and one not in done), None)
            if following is None:
                stack.pop()
                path.pop(current)
                done.add(current)
            elif following in path:
                walked = list(path)
                return walked[walked.index(following) :]
            else:
                path[following] = None
                stack.append((following, iter(depends_on[following])))
    return None
