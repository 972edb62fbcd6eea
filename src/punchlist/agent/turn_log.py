"""Stores the messages of a turn as they are made, and why the turn ended.

The scheduler stores the result of a call with the call. The result message is written together with the
next message, which saves one transaction per iteration; after a crash it is rebuilt from the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Final

from punchlist.agent.continuation import Reason
from punchlist.agent.message_kinds import ENDING
from punchlist.agent.transcript import to_stored
from punchlist.conversations.model import Message as StoredMessage
from punchlist.conversations.model import ModelCallRecord, NewMessage
from punchlist.conversations.turn_writer import TurnWriter, check_content
from punchlist.kernel.clock import Clock, timestamp
from punchlist.kernel.json_encoder import compact_encoder
from punchlist.kernel.text import visible
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.toolcalls.batch_writer import BatchWriter

_ENCODE: Final = compact_encoder(ensure_ascii=False, sort_keys=False)
RECHECK_AFTER: Final = 0.02
"""After a model request of this many seconds, the log checks whether the turn was ended meanwhile."""


def single_line(reason: str) -> str:
    """End reasons can come from providers, so control characters are made visible."""
    return visible(" ".join(reason.split()))


class TurnLog:
    def __init__(self, writer: TurnWriter, calls: BatchWriter, bridge: AsyncBridge, clock: Clock) -> None:
        self._writer = writer
        self._calls = calls
        self._bridge = bridge
        self._clock = clock
        self._unwritten: list[NewMessage] = []
        self._request = ("", "", "")
        self._state = ""
        self._requested_at = 0.0

    def add_results(self, results: Sequence[CallReturn]) -> None:
        """Queue results of calls; they are written with the next message."""
        self._unwritten += [to_stored(result) for result in results]

    def request_sent(self, model: str, request: ModelRequest, state: str) -> None:
        # The state is not part of a message. The trace keeps it whenever it has changed.
        summary = {"messages": len(request.messages), "state": state if state != self._state else None}
        self._state = state
        self._requested_at = monotonic()
        self._request = (model, _ENCODE(summary), timestamp(self._clock()))

    async def save_reply(self, reply: Reply) -> None:
        cost = {"finish": reply.finish, "tokens": [reply.usage.input_tokens, reply.usage.output_tokens]}
        trace, message = self._trace(_ENCODE(cost)), to_stored(reply)
        if not reply.calls:
            await self._write([message], trace)
            return
        # The batch writer stores the calls before any of them runs: one transaction writes both.
        messages = [*self._unwritten, message]
        check_content(messages)
        if monotonic() - self._requested_at > RECHECK_AFTER:
            await self._bridge(self._writer.check_open)
        self._unwritten = []
        self._calls.write_with_next(lambda tx: self._writer.write_in(tx, messages, trace))

    async def save_failure(self, why: str) -> None:
        """Store that the model request brought no reply."""
        await self._write([], self._trace("", why))

    def _trace(self, output: str, error: str | None = None) -> ModelCallRecord:
        model, request, since = self._request
        return ModelCallRecord(model, request, output, error, since, timestamp(self._clock()))

    async def save_message(self, message: Message, kind: str) -> None:
        await self._write([to_stored(message, kind)])

    async def _write(self, messages: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        await self._calls.flushed()
        await self._bridge(self._writer.write, [*self._unwritten, *messages], trace)
        self._unwritten = []

    async def suspend(self, why: str) -> None:
        await self._calls.flushed()
        await self._bridge(self._writer.suspend, self._unwritten, single_line(why))
        self._unwritten = []

    async def end(self, reason: Reason, why: str, ending: str) -> None:
        """`ending` is stored for later turns; it is empty if nothing is left."""
        await self._calls.flushed()
        messages = [*self._unwritten, *([NewMessage("system", ENDING, ending)] if ending else [])]
        await self._bridge(self._writer.end, messages, single_line(f"{reason}: {why}"))
        self._unwritten = []

    async def read(self) -> Sequence[StoredMessage]:
        return await self._bridge(self._writer.read)
