"""The open calls of a scheduler: one entry per call, the batches they belong to, and their time limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.kernel.cancellation import CancelSignal
from punchlist.toolcalls.concurrency import CallOrder, PlacedCall, writes_between
from punchlist.toolcalls.lifecycle import ENDED, CallStatus
from punchlist.toolcalls.model import CallError, CompletedToolCall, ToolCall, ToolCallRequest
from punchlist.toolcalls.validation import ValidatedCall

_SETTLED: Final = ENDED | {CallStatus.AWAITING_APPROVAL}


@dataclass(slots=True, eq=False)
class BatchedCall:
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
    blocked_by: set[BatchedCall] = field(default_factory=set)
    """Calls that must end first: its dependencies, its leader, and the calls before it in the order of the batch."""
    followers: list[BatchedCall] = field(default_factory=list)
    """The calls that are blocked by this one."""
    leader: BatchedCall | None = None
    """The identical call of the same batch that runs for both."""
    waited: bool = False
    """It came after another call of its batch."""
    approved: str | None = None
    """What the person was shown who approved it; None before an answer."""
    asked_again: bool = False
    """It was asked about again, because what it would do had changed since the approval."""
    ready: bool = False
    """It waits for no other call: it is queued for its resources and a slot, or runs."""

    def __post_init__(self) -> None:
        self.request = self.call.request

    def follow(self, other: BatchedCall) -> None:
        self.waited = True
        if other not in self.blocked_by:
            self.blocked_by.add(other)
            other.followers.append(self)

    def unfollow(self, other: BatchedCall) -> None:
        self.blocked_by.discard(other)

    def needs(self, other: BatchedCall) -> bool:
        """Whether this call cannot run without the other one; otherwise it only comes after it."""
        return other is self.leader or other.request.call_id in self.request.depends_on


def awaits_approval(entry: BatchedCall) -> bool:
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


def follows_running(entry: BatchedCall) -> bool:
    """Whether a call that runs, or is about to, comes before this one."""
    open_entries, seen = [*entry.blocked_by], {*entry.blocked_by}
    while open_entries:
        current = open_entries.pop()
        if current.ready:
            return True
        new = current.blocked_by - seen
        seen |= new
        open_entries += new
    return False


class BatchOrder:
    """Makes each call of a batch wait for the earlier ones that it could conflict with."""

    def __init__(self) -> None:
        self._calls: list[BatchedCall] = []
        self._order: CallOrder[BatchedCall] = CallOrder()
        self._placed: dict[BatchedCall, PlacedCall[BatchedCall]] = {}

    def can_share(self, entry: BatchedCall, leader: BatchedCall) -> bool:
        """Whether a call that is identical to an earlier one can have its result: nothing has changed in between."""
        assert entry.validated is not None
        before = self._order.before(entry.validated.tool.effect, entry.validated.resources)
        return leader in self._placed and not writes_between(self._placed[leader], before)

    def comes_first(self, validated: ValidatedCall) -> bool:
        """Whether no open call of the batch so far must come before this one."""
        before = self._order.before(validated.tool.effect, validated.resources)
        return all(placed.call.call.status in ENDED for placed in before)

    def add(self, entry: BatchedCall) -> None:
        """Add the next call. A call that shares the result of another one waits for that one only."""
        self._calls.append(entry)
        if entry.leader is None:
            self._place(entry)

    def _place(self, entry: BatchedCall) -> None:
        assert entry.validated is not None
        effect, resources = entry.validated.tool.effect, entry.validated.resources
        if not entry.ready:
            for earlier in self._order.before(effect, resources):
                if earlier.call.call.status not in ENDED:
                    entry.follow(earlier.call)
        self._placed[entry] = self._order.add(entry, effect, resources)

    def compute_again(self) -> list[BatchedCall]:
        """Compute the order of the open calls again, after one of them has changed. Returns those that were blocked
        and are no longer."""
        self._order, self._placed = CallOrder(), {}
        self._calls = [entry for entry in self._calls if entry.call.status not in ENDED]
        blocked = [entry for entry in self._calls if entry.blocked_by]
        for entry in self._calls:
            for earlier in [other for other in entry.blocked_by if not entry.needs(other)]:
                entry.unfollow(earlier)
                earlier.followers.remove(entry)
        for entry in self._calls:
            if entry.leader is None:
                self._place(entry)
        return [entry for entry in blocked if not entry.blocked_by]


class CallBatch:
    """The calls of one `schedule`. `await batch` waits until all have ended and returns them in request order."""

    def __init__(
        self,
        flushed: Callable[[], Awaitable[None]],
        cancel: Callable[[Sequence[str], str], None],
        *,
        ordered: bool = True,
    ) -> None:
        self.order: BatchOrder | None = BatchOrder() if ordered else None
        """The order in which the calls take effect; None if they need none."""
        self._entries: list[BatchedCall] = []
        self._flushed = flushed
        self._cancel = cancel
        self._open = 0
        self._unsubscribe: Callable[[], None] = lambda: None
        self._all_ended = asyncio.Event()
        self._changed = asyncio.Event()

    def add(self, entry: BatchedCall) -> None:
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
            for running in executing_calls():
                if running in self._entries:
                    raise waits_for_itself(running)
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


_EXECUTING: Final[ContextVar[tuple[BatchedCall, ...]]] = ContextVar("executing_calls", default=())


def mark_executing(entry: BatchedCall) -> None:
    """Note in the current task that it runs this call."""
    _EXECUTING.set((*executing_calls(), entry))


def executing_calls() -> tuple[BatchedCall, ...]:
    """The calls whose tools are running the current code, of any scheduler, the innermost last."""
    return tuple([entry for entry in _EXECUTING.get() if entry.call.status is CallStatus.EXECUTING])


def waits_for_itself(running: BatchedCall) -> InvalidInput:
    return InvalidInput(
        f"The tool {running.request.tool} (call {running.request.call_id}) uses the scheduler that runs it, and would "
        "wait for itself. Call the other tool's function directly, or use a scheduler of its own."
    )


def _is_settled(entry: BatchedCall) -> bool:
    return entry.call.status in _SETTLED or (entry.call.status is CallStatus.SCHEDULED and awaits_approval(entry))


class CallTimeouts:
    """One timer for all running calls: a timer for each would cost more than a short call does."""

    def __init__(self, on_timeout: Callable[[BatchedCall], None]) -> None:
        self._on_timeout = on_timeout
        self._watched: set[BatchedCall] = set()
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, entry: BatchedCall, deadline: float) -> None:
        """Set or change the deadline of a call."""
        entry.deadline = deadline
        self._watched.add(entry)
        if deadline < self._next:
            self._set_timer(deadline)

    def forget(self, entry: BatchedCall) -> None:
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
