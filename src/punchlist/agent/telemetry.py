"""OpenTelemetry spans and metrics of turns, by the conventions for generative AI; none unless configured.

    invoke_agent supervisor
      chat MODEL                 one request to the model
      execute_tool run_command   one tool call, from the moment it runs: waiting for a person is not counted
        invoke_agent researcher  a delegated turn

Names, tokens, durations, costs and reasons are exported. Prompts, replies, arguments and results never are: they may
hold secrets, and are in the database.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.events import AgentEvent, CallChanged, Continued, EventListener, TurnEnded, TurnStarted
from punchlist.models.model import WrappedModel
from punchlist.toolcalls.lifecycle import CallStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

    from punchlist.models.model import Model, ModelRequest, Reply, TextListener

_DELEGATE: Final = "delegate"
_FAILED: Final = (CallStatus.ERROR, CallStatus.CANCELLED)
_ENDED: Final = (CallStatus.SUCCESS, *_FAILED)
_LOG: Final = logging.getLogger("punchlist")


def open_telemetry() -> Telemetry | None:
    """Exports as the environment configures it (`config.exports_telemetry`); None without the extra."""
    try:
        from punchlist.agent.telemetry_export import exporting
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        # Set for all programs of this user: not a reason to refuse the work.
        _LOG.warning("OTEL_EXPORTER_OTLP_ENDPOINT is set, but the extra otel is not installed: nothing is exported.")
        return None
    return Telemetry(*exporting())


class Telemetry:
    """Turns events of agents into spans, and counts."""

    def __init__(self, tracer: Tracer, meter: Meter, flush: Callable[[], None]) -> None:
        self.flush = flush
        """Sends what is left; takes at most seconds."""
        self._tracer = tracer
        self._turns: dict[str, Span] = {}
        self._calls: dict[str, Span] = {}
        self._delegates: dict[str, str] = {}
        """By turn: its newest running call of `delegate`."""
        self._durations = meter.create_histogram("gen_ai.client.operation.duration", "s", "Duration of model requests")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of model requests")
        self._ended = meter.create_counter("punchlist.turns", "{turn}", "Ended turns, by reason")
        self._continued = meter.create_counter("punchlist.continuations", "{continuation}", "Turns sent back to a list")

    def listener(self, then: EventListener | None) -> EventListener:
        """A listener that calls `then` first."""

        def listen(event: AgentEvent) -> None:
            if then is not None:
                then(event)
            self._note(event)

        return listen

    def model(self, model: Model, turn_id: str) -> Model:
        return _TracedModel(self, model, turn_id)

    def close(self, turn_id: str) -> None:
        """End the span of a turn that ended without an event: it failed, or its process goes on elsewhere."""
        if span := self._turns.pop(turn_id, None):
            _fail(span, "the turn was left")
            span.end()

    def _note(self, event: AgentEvent) -> None:
        match event:
            case TurnStarted():
                self._turns[event.turn_id] = self._start_turn(event)
            case TurnEnded() if span := self._turns.pop(event.turn_id, None):
                result = event.result
                span.set_attribute("punchlist.turn.end_reason", result.reason.value)
                span.set_attribute("punchlist.turn.continuations", result.continuations)
                _set_tokens(span, result.usage.input_tokens, result.usage.output_tokens, result.cost)
                if result.reason.value == "error":
                    _fail(span, "error")
                span.end()
                self._ended.add(1, {"gen_ai.agent.name": event.agent, "reason": result.reason.value})
            case Continued():
                self._continued.add(1, {"gen_ai.agent.name": event.agent})
            case CallChanged():
                self._note_call(event)

    def _start_turn(self, event: TurnStarted) -> Span:
        parent = self._calls.get(self._delegates.get(event.parent or "", "")) or self._turns.get(event.parent or "")
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": event.agent,
            "gen_ai.request.model": _model_name(event.model),
            "punchlist.turn.id": event.turn_id,
            "punchlist.turn.resumed": event.resumed,
        }
        return self._start(f"invoke_agent {event.agent}", parent, attributes)

    def _note_call(self, event: CallChanged) -> None:
        call, id = event.call, event.call.request.call_id
        if call.status is CallStatus.EXECUTING:
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.request.tool,
                "gen_ai.tool.call.id": id,
            }
            name = f"execute_tool {call.request.tool}"
            self._calls[id] = self._start(name, self._turns.get(event.turn_id), attributes)
            if call.request.tool == _DELEGATE:
                self._delegates[event.turn_id] = id
        elif call.status in _ENDED and (span := self._calls.pop(id, None)):
            if call.status in _FAILED:
                _fail(span, getattr(getattr(call, "error", None), "code", call.status.value))
            span.end()

    @contextmanager
    def request(self, model: Model, turn_id: str) -> Iterator[Span]:
        name, begin = _model_name(model.name), time.monotonic()
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": model.name.partition(":")[0],
            "gen_ai.request.model": name,
        }
        span = self._start(f"chat {name}", self._turns.get(turn_id), attributes)
        try:
            yield span
        except BaseException as error:
            attributes["error.type"] = type(error).__name__
            _fail(span, type(error).__name__)
            raise
        finally:
            span.end()
            self._durations.record(time.monotonic() - begin, attributes)

    def note_reply(self, span: Span, model: Model, reply: Reply) -> None:
        usage = reply.usage
        _set_tokens(span, usage.input_tokens, usage.output_tokens, model.info.cost(usage))
        span.set_attribute("gen_ai.response.finish_reasons", [reply.finish.value])
        shared = {"gen_ai.operation.name": "chat", "gen_ai.request.model": _model_name(model.name)}
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(tokens, {**shared, "gen_ai.token.type": kind})

    def _start(self, name: str, parent: Span | None, attributes: dict[str, Any]) -> Span:
        from opentelemetry.trace import set_span_in_context

        # Without a parent of ours, the span belongs to what the calling program does now.
        context = None if parent is None else set_span_in_context(parent)
        return self._tracer.start_span(name, context, attributes=attributes)


class _TracedModel(WrappedModel):
    def __init__(self, telemetry: Telemetry, model: Model, turn_id: str) -> None:
        super().__init__(model)
        self._telemetry = telemetry
        self._turn_id = turn_id

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        with self._telemetry.request(self._model, self._turn_id) as span:
            reply = await self._model.ask(request, on_text)
            self._telemetry.note_reply(span, self._model, reply)
            return reply


def _model_name(name: str) -> str:
    """Without the provider; of a rehearsal without its file."""
    provider, _, model = name.partition(":")
    return "rehearsal" if provider == "rehearsal" else model or name


def _set_tokens(span: Span, given: int, written: int, cost: float | None) -> None:
    span.set_attribute("gen_ai.usage.input_tokens", given)
    span.set_attribute("gen_ai.usage.output_tokens", written)
    if cost is not None:
        span.set_attribute("punchlist.cost", cost)


def _fail(span: Span, kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))
