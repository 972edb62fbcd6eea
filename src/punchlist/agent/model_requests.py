"""The requests of a turn to its model: sent, shortened if they are too long, and their replies stored and counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from punchlist.agent.answer import report_request
from punchlist.agent.budget import RequestEstimate
from punchlist.agent.events import AgentEvent, ContextCompacted, ReplyReceived, TextDelta
from punchlist.agent.turn_model import TurnDeps
from punchlist.kernel.cancellation import CancelSignal, run_unless_cancelled
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import visible_block
from punchlist.models.model import Message, ModelBusy, ModelError, ModelRequest, Reply, RequestedCall, RequestTooLong

MAX_FAILURE_LENGTH: Final = 10_000
"""Of a provider's error."""


class ModelRequests:
    def __init__(self, deps: TurnDeps, signal: CancelSignal, emit: Callable[[AgentEvent], None]) -> None:
        self._log = deps.log
        self._model = deps.model
        self._context = deps.context
        self._budget = deps.request.budget
        self._names = deps.request.agent.name, deps.turn_id
        self._temperature = deps.request.agent.temperature
        self._signal = signal
        self._emit = emit
        self.next = RequestEstimate(deps.model, deps.context)
        """What the next request will need."""
        self.failure: str | None = None
        """Why the last request has no reply, unless it was cancelled."""
        self.busy = False
        """The last request failed because the model was not available."""
        self.interrupted = False
        """A request was cancelled."""

    async def ask(self, state: str) -> Reply | None:
        """The model's reply to the context with `state` at its end; None if the request failed or was cancelled."""
        await self._compact(state)
        reply = await self._checked(self._send_or_shorten(state))
        if reply is None:
            return None
        calls = tuple([RequestedCall(new_id(), call.tool, call.arguments) for call in reply.calls])
        reply = replace(reply, calls=calls)
        self.next.replied(reply)
        await self._store(reply)
        self._context.add(reply)
        return reply

    async def report(self, state: str, messages: list[Message] | None = None) -> Reply | None:
        """The reply to a last request without tools; with `messages`, to those alone."""
        request = report_request(self._context.request(state))
        if messages is not None:
            request = replace(request, messages=messages)
        reply = await self._checked(self._send(request, state))
        if reply is None:
            return None
        reply = Reply(reply.text, (), reply.finish, reply.usage)
        await self._store(reply)
        return reply

    async def _checked(self, asking: Awaitable[Reply | None]) -> Reply | None:
        """The reply; a failure and a cancellation are stored."""
        self.failure, self.busy = None, False
        try:
            reply = await asking
        except ModelError as error:
            # Written by the provider: it may contain characters that cannot be stored.
            self.failure = visible_block(str(error)[:MAX_FAILURE_LENGTH])
            self.busy = isinstance(error, ModelBusy)
            await self._log.save_failure(self.failure)
            return None
        if reply is None:
            self.interrupted = True
            await self._log.save_failure(self._signal.reason or "")
        return reply

    async def _send_or_shorten(self, state: str) -> Reply | None:
        """Send the request; once more with a shorter context if it is longer than the model takes."""
        try:
            return await self._send(self._context.request(state), state)
        except RequestTooLong:
            if not await self._compact(state, refused=True):
                raise
        return await self._send(self._context.request(state), state)

    async def _send(self, request: ModelRequest, state: str) -> Reply | None:
        request = replace(request, temperature=self._temperature)
        self._log.request_sent(self._model.name, request, state)
        return await run_unless_cancelled(self._signal, self._model.ask(request, self._on_text))

    async def _store(self, reply: Reply) -> None:
        cost = self._model.info.cost(reply.usage)
        self._budget.charge(reply.usage, cost or 0.0)
        await self._log.save_reply(reply, cost)
        self._emit(ReplyReceived(*self._names, reply.text, len(reply.calls), reply.usage, cost))

    async def _compact(self, state: str, *, refused: bool = False) -> bool:
        """Replace older messages by a summary if the next request would fill too much of the context window (C7), or
        if the model has refused it as too long."""
        if (done := self._context.compact(state, refused=refused)) is None:
            return False
        self.next.compacted(done.after_tokens)
        await self._log.save_compaction(done.text)
        self._emit(ContextCompacted(*self._names, done.before_tokens, done.after_tokens, done.messages))
        return True

    def _on_text(self, text: str) -> None:
        self._emit(TextDelta(*self._names, text))
