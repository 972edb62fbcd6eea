"""`punchlist run --json-stream`: each event as one line of JSON on stdout, as it happens.

A reader that closes the pipe ends the turn as Ctrl-C does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, Final, TextIO

from punchlist.agent import events
from punchlist.agent.continuation import Reason
from punchlist.agent.turn_model import TurnResult
from punchlist.kernel.camel_json import camel_case
from punchlist.kernel.clock import Clock, system_clock, timestamp
from punchlist.surfaces.cli.context import to_json_text
from punchlist.surfaces.cli.line_writer import LineWriter
from punchlist.surfaces.cli.run_output import RunOutput, usage_json
from punchlist.toolcalls.model import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ValidatingToolCall,
    WaitingToolCall,
)

MAX_PENDING: Final = 10_000
"""Lines that a slow reader may be behind before live output of calls is left out."""
LAST_WAIT: Final = 1.0
"""Seconds to wait for a reader before an error or after an interruption."""
CLOSED: Final = "the reader of stdout has closed it"
JsonObject = dict[str, Any]
Encoder = Callable[[Any], JsonObject]


class JsonStream(RunOutput):
    def __init__(self, out: TextIO, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._writer = LineWriter(out, self._fail)

    @classmethod
    def on_stdout(cls) -> JsonStream:
        return cls(sys.stdout)

    def show_event(self, event: events.AgentEvent) -> None:
        if isinstance(event, events.ToolOutput) and self._writer.pending > MAX_PENDING:
            return
        name, encode = ENCODERS.get(type(event)) or (_snake_case(type(event).__name__), _all_fields)
        self.write(name, agent=event.agent, turnId=event.turn_id, **encode(event))

    def note(self, text: str) -> None:
        self.write("note", text=text)

    def write(self, name: str, **values: Any) -> None:
        """Write one line. After the reader is gone, nothing is written any more."""
        self._writer.put(to_json_text({"event": name, "at": timestamp(self._clock()), **values}))

    def close(self) -> None:
        self._writer.drain(LAST_WAIT)

    def show_result(self, result: JsonObject, ended: TurnResult) -> None:
        """Write the last line, and wait until the reader has read it. A person who interrupts the run does not wait."""
        self.write("result", **result)
        self._writer.drain(LAST_WAIT if ended.reason is Reason.CANCELLED else None)

    def _fail(self, error: OSError) -> None:
        gone = isinstance(error, BrokenPipeError)
        self.on_closed(CLOSED if gone else f"stdout cannot be written ({error.strerror or error})")


# --- one encoder per event --------------------------------------------------------------------------------


def _turn_started(event: events.TurnStarted) -> JsonObject:
    return {
        "model": event.model,
        "parentTurnId": event.parent,
        "resumed": event.resumed,
        "maxContinuations": event.continuations,
    }


def _reply(event: events.ReplyReceived) -> JsonObject:
    return {"text": event.text, "calls": event.calls, "usage": usage_json(event.usage), "cost": event.cost}


def _tool_call(event: events.CallChanged) -> JsonObject:
    call = event.call
    return {"callId": call.request.call_id, "tool": call.request.tool, "status": call.status.value, **_details(call)}


def _details(call: ToolCall) -> JsonObject:
    """What the state of a call adds. Arguments are written once, and again with a question about them."""
    match call:
        case ValidatingToolCall(request=request):
            return {"arguments": _plain(request.arguments)}
        case WaitingToolCall(request=request, question=question):
            return {"arguments": _plain(request.arguments), "question": question.text, "why": question.why}
        case SuccessfulToolCall(result=result, started_at=started, ended_at=ended):
            return {"result": result.text, "durationMs": round((ended - started).total_seconds() * 1000)}
        case ErroredToolCall(error=error):
            return {"error": {"code": str(error.code), "message": error.message}}
        case CancelledToolCall(reason=reason):
            return {"reason": reason}
    return {}


def _plain(arguments: Any) -> Any:
    # A model may send text instead of an object.
    return dict(arguments) if isinstance(arguments, Mapping) else arguments


def _list(event: events.ListChanged) -> JsonObject:
    items = [{"id": item.id, "title": item.title, "status": str(item.status)} for item in event.lists.items]
    return {"items": items, "open": len(event.lists.open)}


def _compacted(event: events.ContextCompacted) -> JsonObject:
    return {"beforeTokens": event.before_tokens, "afterTokens": event.after_tokens, "messages": event.messages}


def _turn_ended(event: events.TurnEnded) -> JsonObject:
    ended = event.result
    return {
        "reason": ended.reason.value,
        "why": ended.why,
        "text": ended.text,
        "iterations": ended.iterations,
        "continuations": ended.continuations,
        "usage": usage_json(ended.usage),
        "cost": ended.cost,
    }


ENCODERS: Final[dict[type[events.AgentEvent], tuple[str, Encoder]]] = {
    events.TurnStarted: ("turn_started", _turn_started),
    events.TextDelta: ("text", lambda event: {"text": event.text}),
    events.ReplyReceived: ("reply", _reply),
    events.CallChanged: ("tool_call", _tool_call),
    events.ToolOutput: ("tool_output", lambda event: {"callId": event.call_id, "text": event.text}),
    events.ListChanged: ("list", _list),
    events.Continued: ("continuation", lambda event: {"count": event.count, "limit": event.limit}),
    events.ContextCompacted: ("compaction", _compacted),
    events.NoteAdded: ("note", lambda event: {"text": event.text}),
    events.TurnEnded: ("turn_ended", _turn_ended),
}
"""The name of each event in the stream, and the function that returns its fields."""


def _all_fields(event: events.AgentEvent) -> JsonObject:
    """An event without an encoder must not end the turn."""
    values = asdict(event)
    return {camel_case(name): values[name] for name in [field.name for field in fields(event)][2:]}


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
