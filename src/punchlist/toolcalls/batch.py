"""The open calls of a scheduler: one entry per call, the batches they belong to, and their time limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Final

from punchlist.kernel.cancellation import CancelSignal
from punchlist.toolcalls.lifecycle import ENDED, CallStatus
from punchlist.toolcalls.model import CallError, CompletedToolCall, ToolCall, ToolCallRequest
from punchlist.toolcalls.validation import ValidatedCall

_SETTLED: Final = ENDED | {CallStatus.AWAITING_APPROVAL}


@dataclass(slots=True, eq=False)
class CallEntry:
    """One call. Only the scheduler changes it, and only on the event loop."""

    call: ToolCall
    batch: CallBatch
    request: ToolCallRequest = field(init=False)
    validated: ValidatedCall | None = None
    task: asyncio.Task[None] | None = None
    started: bool = False
    """The task has taken its first step. From then on it ends the call itself."""
    deadline: float = 0.0
    """When the call is stopped; after it was stopped, when the scheduler gives it up. In event loop time."""
    stop_reason: str | CallError | None = None
    """Why the call is being stopped: the reason of a cancellation, or the error of a time limit."""
    blocked_by: Sequence[CallEntry] = ()
    """Calls that must end first: its dependencies, or its leader."""
    followers: list[CallEntry] = field(default_factory=list)
    """The calls that are blocked by this one."""
    leader: CallEntry | None = None
    """The identical call of the same batch that runs for both."""

    def __post_init__(self) -> None:
        self.request = self.call.request

    def follow(self, other: CallEntry) -> None:
        self.blocked_by = [*self.blocked_by, other]
        other.followers.append(self)

    def unfollow(self, other: CallEntry) -> None:
        self.blocked_by = [entry for entry in self.blocked_by if entry is not other]


def awaits_approval(entry: CallEntry) -> bool:
    """Whether the call, or a call that it directly or indirectly depends on, waits for a person."""
    # Iterative, since chains can be long.
    open_entries, seen = [entry], {entry}
    while open_entries:
        current = open_entries.pop()
        if current.call.status is CallStatus.AWAITING_APPROVAL:
            return True
        for other in current.blocked_by:
            if other not in seen:
                seen.add(other)
                open_entries.append(other)
    return False


class CallBatch:
    """The calls of one `schedule`. `await batch` waits until all have ended and returns them in request order."""

    def __init__(self, flushed: Callable[[], Awaitable[None]], cancel: Callable[[Sequence[str], str], None]) -> None:
        self._entries: list[CallEntry] = []
        self._flushed = flushed
        self._cancel = cancel
        self._open = 0
        self._unsubscribe: Callable[[], None] = lambda: None
        self._all_ended = asyncio.Event()
        self._changed = asyncio.Event()

    def add(self, entry: CallEntry) -> None:
        self._entries.append(entry)
        self._open += 1

    @property
    def calls(self) -> list[ToolCall]:
        """The calls in their current states."""
        return [entry.call for entry in self._entries]

    def cancel(self, reason: str = "cancelled") -> None:
        self._cancel([entry.request.call_id for entry in self._entries], reason)

    def cancel_on(self, signal: CancelSignal) -> None:
        """Cancel the calls when the signal is set, as long as one of them is open."""
        unsubscribe = signal.on_set(self.cancel)
        if self._open:
            self._unsubscribe = unsubscribe
        else:
            unsubscribe()

    def call_ended(self) -> None:
        """The scheduler reports that one of the calls has ended."""
        self._open -= 1
        self._changed.set()
        if not self._open:
            self._all_ended.set()
            self._unsubscribe()

    def call_paused(self) -> None:
        """The scheduler reports that one of the calls waits for a person."""
        self._changed.set()

    async def ended(self) -> list[CompletedToolCall]:
        if self._open:
            await self._all_ended.wait()
        await self._flushed()
        return [entry.call for entry in self._entries if isinstance(entry.call, CompletedToolCall)]

    async def settled(self) -> list[ToolCall]:
        """Wait until no call can proceed without a person: each has ended, or waits for approval, or depends on a call
        that does."""
        while not all(map(_is_settled, self._entries)):
            self._changed.clear()
            await self._changed.wait()
        await self._flushed()
        return self.calls

    def __await__(self) -> Generator[None, None, list[CompletedToolCall]]:
        return self.ended().__await__()


def _is_settled(entry: CallEntry) -> bool:
    return entry.call.status in _SETTLED or (entry.call.status is CallStatus.SCHEDULED and awaits_approval(entry))


class CallTimeouts:
    """One timer for all running calls: a timer for each would cost more than a short call does."""

    def __init__(self, on_timeout: Callable[[CallEntry], None]) -> None:
        self._on_timeout = on_timeout
        self._watched: set[CallEntry] = set()
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, entry: CallEntry, deadline: float) -> None:
        """Set or change the deadline of a call."""
        entry.deadline = deadline
        self._watched.add(entry)
        if deadline < self._next:
            self._set_timer(deadline)

    def forget(self, entry: CallEntry) -> None:
        self._watched.discard(entry)
        if not self._watched and self._timer is not None:
            self._timer.cancel()
            self._timer, self._next = None, math.inf

    def _set_timer(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = moment
        self._timer = asyncio.get_running_loop().call_at(moment, self._check)

    def _check(self) -> None:
        self._timer, self._next = None, math.inf
        now = asyncio.get_running_loop().time()
        for entry in [entry for entry in self._watched if entry.deadline <= now]:
            self._on_timeout(entry)
        if self._watched:
            self._set_timer(min(entry.deadline for entry in self._watched))
