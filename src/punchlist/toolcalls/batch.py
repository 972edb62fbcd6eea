"""A batch of calls, as whoever scheduled it sees it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Final

from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.toolcalls.lifecycle import ENDED, CallStatus
from punchlist.toolcalls.model import CallError, CompletedToolCall, ToolCall
from punchlist.toolcalls.validation import ValidatedCall

_STILL: Final = ENDED | {CallStatus.AWAITING_APPROVAL}


class CallBatch:
    """`await batch` waits until every call has ended and gives them in the order of the requests."""

    def __init__(self, settled: Callable[[], Awaitable[None]], cancel: Callable[[Sequence[str], str], None]) -> None:
        self._entries: list[CallEntry] = []
        self._settled = settled
        self._cancel = cancel
        self._open = 0
        self._forget: Callable[[], None] = lambda: None
        self._over = asyncio.Event()
        self._moved = asyncio.Event()

    def add(self, entry: CallEntry) -> None:
        self._entries.append(entry)
        self._open += 1

    @property
    def calls(self) -> list[ToolCall]:
        """Each call as it is now."""
        return [entry.call for entry in self._entries]

    def cancel(self, reason: str = "cancelled") -> None:
        self._cancel([entry.request.call_id for entry in self._entries], reason)

    def cancel_on(self, signal: CancelSignal) -> None:
        """End the calls when the signal is set, for as long as one of them is open."""
        forget = signal.on_set(self.cancel)
        if self._open:
            self._forget = forget
        else:
            forget()

    def call_ended(self) -> None:
        """One of its calls has; for the scheduler to say."""
        self._open -= 1
        self._moved.set()
        if not self._open:
            self._over.set()
            self._forget()

    def call_paused(self) -> None:
        """One of its calls waits for a person; for the scheduler to say."""
        self._moved.set()

    async def ended(self) -> list[CompletedToolCall]:
        if self._open:
            await self._over.wait()
        await self._settled()
        return [entry.call for entry in self._entries if isinstance(entry.call, CompletedToolCall)]

    async def settled(self) -> list[ToolCall]:
        """Wait until nothing goes on without a person: every call has ended, or awaits approval, or such a one."""
        while not all(map(self._still, self._entries)):
            self._moved.clear()
            await self._moved.wait()
        await self._settled()
        return self.calls

    def _still(self, entry: CallEntry) -> bool:
        # What waits for another cannot begin before that has ended.
        return entry.call.status in _STILL or (entry.call.status is CallStatus.SCHEDULED and awaits_approval(entry))

    def __await__(self) -> Generator[None, None, list[CompletedToolCall]]:
        return self.ended().__await__()


class CallEntry:
    """One call. Changed by the scheduler alone, and only from the event loop."""

    __slots__ = (
        "batch",
        "blocked_by",
        "call",
        "deadline",
        "followers",
        "leader",
        "request",
        "started",
        "stop_reason",
        "task",
        "validated",
    )

    def __init__(self, call: ToolCall, batch: CallBatch) -> None:
        self.call = call
        self.request = call.request
        self.batch = batch
        self.validated: ValidatedCall | None = None
        self.task: asyncio.Task[None] | None = None
        self.started = False
        """Its task has had its first step: from then on it ends itself."""
        self.deadline = 0.0
        """When it is stopped, and once it was told to stop, when it is given up; in the event loop's time."""
        self.stop_reason: str | CallError | None = None
        """Why it is being ended from outside: a cancellation's reason, or the error of a time limit."""
        self.blocked_by: Sequence[CallEntry] = ()
        """What must end first: the calls it depends on, or the identical one that runs for it."""
        self.followers: list[CallEntry] | None = None
        """Those that wait for this one, if there are any."""
        self.leader: CallEntry | None = None
        """The identical call of the same batch that runs for both."""

    def follow(self, other: CallEntry) -> None:
        self.blocked_by = [*self.blocked_by, other]
        if other.followers is None:
            other.followers = []
        other.followers.append(self)

    def unfollow(self, other: CallEntry) -> None:
        self.blocked_by = [one for one in self.blocked_by if one is not other]


def awaits_approval(entry: CallEntry) -> bool:
    """Whether a person must answer before it can go on. Chains may be long: no recursion."""
    waiting, seen = [entry], {entry}
    while waiting:
        one = waiting.pop()
        if one.call.status is CallStatus.AWAITING_APPROVAL:
            return True
        for other in one.blocked_by:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


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
