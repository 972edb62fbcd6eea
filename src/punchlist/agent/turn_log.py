"""A turn on record: every message as it is said, and why the turn ended.

What came of a call is on record with the call itself. As a message it is written together with what
is said next, so that an iteration costs one transaction less; after a crash it is found with the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, Protocol

from punchlist.agent.continuation import Reason
from punchlist.agent.message_kinds import ENDING
from punchlist.agent.transcript import to_stored
from punchlist.conversations.model import Message as Stored
from punchlist.conversations.model import ModelCallRecord, NewMessage
from punchlist.conversations.turn_writer import TurnWriter, check_content
from punchlist.kernel.clock import Clock, timestamp
from punchlist.kernel.json_encoder import compact_encoder
from punchlist.kernel.text import visible
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.storage.store import Transaction

_ENCODE: Final = compact_encoder(ensure_ascii=False, sort_keys=False)
A_MOMENT: Final = 0.02
"""Seconds in which nobody does anything to a turn."""


def trail_line(reason: str) -> str:
    """On one line: what ends a turn may have been said by a provider, or by anybody."""
    return visible(" ".join(reason.split()))


class TurnLog(Protocol):
    def keep(self, results: Sequence[CallReturn]) -> None:
        """Results of calls, to be written with what comes next."""

    def asks(self, model: str, request: ModelRequest, state: str) -> None:
        """A request goes out."""

    async def reply(self, reply: Reply) -> None: ...

    async def failed(self, why: str) -> None:
        """There was no reply."""

    async def say(self, message: Message, kind: str) -> None: ...

    async def suspend(self, why: str) -> None: ...

    async def end(self, reason: Reason, why: str, told: str) -> None:
        """`told` is what the next turn hears of how this one ended; empty when there is nothing to tell."""

    async def read(self) -> Sequence[Stored]: ...


class CallJournal(Protocol):
    """Where calls are noted (`toolcalls.recording`)."""

    def write_with_next(self, write: Callable[[Transaction], None]) -> None: ...

    async def flushed(self) -> None: ...


class StoredTurnLog:
    def __init__(self, minutes: TurnWriter, journal: CallJournal, aside: AsyncBridge, clock: Clock) -> None:
        self._minutes = minutes
        self._journal = journal
        self._aside = aside
        self._clock = clock
        self._kept: list[NewMessage] = []
        self._asked = ("", "", "")
        self._state = ""
        self._since = 0.0

    def keep(self, results: Sequence[CallReturn]) -> None:
        self._kept += [to_stored(result) for result in results]

    def asks(self, model: str, request: ModelRequest, state: str) -> None:
        # The state is part of no message. It is told once, and again when it has changed.
        shown = {"messages": len(request.messages), "state": state if state != self._state else None}
        self._state = state
        self._since = monotonic()
        self._asked = (model, _ENCODE(shown), timestamp(self._clock()))

    async def reply(self, reply: Reply) -> None:
        cost = {"finish": reply.finish, "tokens": [reply.usage.input_tokens, reply.usage.output_tokens]}
        trace, line = self._traced(_ENCODE(cost)), to_stored(reply)
        if not reply.calls:
            await self._write([line], trace)
            return
        # Its calls are noted at once, and none of them runs before that is on record: one transaction for both.
        lines = [*self._kept, line]
        check_content(lines)
        if monotonic() - self._since > A_MOMENT:
            # While the model thought, somebody may have ended the turn.
            await self._aside(self._minutes.check_open)
        self._kept = []
        self._journal.write_with_next(lambda tx: self._minutes.write_in(tx, lines, trace))

    async def failed(self, why: str) -> None:
        await self._write([], self._traced("", why))

    def _traced(self, output: str, error: str | None = None) -> ModelCallRecord:
        model, asked, since = self._asked
        return ModelCallRecord(model, asked, output, error, since, timestamp(self._clock()))

    async def say(self, message: Message, kind: str) -> None:
        await self._write([to_stored(message, kind)])

    async def _write(self, lines: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        await self._journal.flushed()
        await self._aside(self._minutes.write, [*self._kept, *lines], trace)
        self._kept = []

    async def suspend(self, why: str) -> None:
        await self._journal.flushed()
        await self._aside(self._minutes.suspend, self._kept, trail_line(why))
        self._kept = []

    async def end(self, reason: Reason, why: str, told: str) -> None:
        await self._journal.flushed()
        said = [*self._kept, *([NewMessage("system", ENDING, told)] if told else [])]
        await self._aside(self._minutes.end, said, trail_line(f"{reason}: {why}"))
        self._kept = []

    async def read(self) -> Sequence[Stored]:
        return await self._aside(self._minutes.read)
