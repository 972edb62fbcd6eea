"""A batch of calls, as whoever scheduled it sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Final

from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.toolcalls.call_entry import CallEntry, held_up
from punchlist.toolcalls.lifecycle import ENDED, CallStatus
from punchlist.toolcalls.states import CompletedToolCall, ToolCall

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

    def heeds(self, signal: CancelSignal) -> None:
        """End the calls when the signal is set, for as long as one of them is open."""
        forget = signal.when_set(self.cancel)
        if self._open:
            self._forget = forget
        else:
            forget()

    def has_ended(self) -> None:
        """One of its calls has; for the scheduler to say."""
        self._open -= 1
        self._moved.set()
        if not self._open:
            self._over.set()
            self._forget()

    def has_paused(self) -> None:
        """One of its calls waits for a person; for the scheduler to say."""
        self._moved.set()

    async def ended(self) -> list[CompletedToolCall]:
        if self._open:
            await self._over.wait()
        await self._settled()
        return [entry.call for entry in self._entries if isinstance(entry.call, CompletedToolCall)]

    async def at_rest(self) -> list[ToolCall]:
        """Wait until nothing goes on without a person: every call has ended, or awaits approval, or such a one."""
        while not all(map(self._still, self._entries)):
            self._moved.clear()
            await self._moved.wait()
        await self._settled()
        return self.calls

    def _still(self, entry: CallEntry) -> bool:
        # What waits for another cannot begin before that has ended.
        return entry.call.status in _STILL or (entry.call.status is CallStatus.SCHEDULED and held_up(entry))

    def __await__(self) -> Generator[None, None, list[CompletedToolCall]]:
        return self.ended().__await__()
