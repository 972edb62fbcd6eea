"""Converts our messages to pydantic-ai's, and its responses to our replies.

Ensures what providers insist on: matching calls and results, valid ids and names, no empty text, no lone
surrogates. Also checks that a reply is complete, which providers do not always signal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from punchlist.kernel.text import excerpt
from punchlist.models.model import (
    CallReturn,
    FinishReason,
    ModelBusy,
    ModelRequest,
    Reply,
    RequestedCall,
    RequestRefused,
    Usage,
    UserText,
)
from punchlist.models.provider_errors import STREAM_BROKEN
from punchlist.models.reply_parts import provider_parts, with_reasoning

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponseStreamEvent,
    )
    from pydantic_ai.models import ModelRequestParameters

_FINISHES: Final = {
    "stop": FinishReason.STOP,
    "tool_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "error": FinishReason.ERROR,
}
_CALL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_LENGTH: Final = 64
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ONE_RESULT_EACH: Final = "each call needs exactly one result."


# --- requests ---------------------------------------------------------------------------------------------


def to_provider_messages(request: ModelRequest, model: str, *, cache_markers: bool = False) -> list[ModelMessage]:
    """Raises `RequestRefused` if calls and results do not match. Reasoning is included if `model` wrote it."""
    builder = _MessageBuilder(request, model, cache_markers=cache_markers)
    for message in request.messages:
        match message:
            case UserText():
                builder.add_text(message)
            case CallReturn():
                builder.add_result(message)
            case Reply():
                builder.add_reply(message)
    return builder.build()


_CACHED_MESSAGES: Final = 2
"""Markers on messages: providers take four in total. The last but one finds what the previous request has written."""


class _MessageBuilder:
    """Everything between two replies becomes one message, with the results first, as providers require."""

    def __init__(self, request: ModelRequest, model: str, *, cache_markers: bool) -> None:
        self._model = model
        self._cache_markers = cache_markers
        changing = request.messages[request.stable :] if request.stable is not None else ()
        self._changing = sum(isinstance(message, UserText) and bool(message.text.strip()) for message in changing)
        """Texts at the end that the next request does not repeat."""
        self._system = _without_surrogates(request.system)
        self._offered = {tool.name for tool in request.tools}
        self._made: list[ModelMessage] = []
        self._results: list[ModelRequestPart] = []
        self._said: list[ModelRequestPart] = []
        self._unanswered: dict[str, str] = {}
        self._used: set[str] = set()

    def add_text(self, message: UserText) -> None:
        from pydantic_ai.messages import UserPromptPart

        # Providers reject empty text, here and below.
        if message.text.strip():
            self._said.append(UserPromptPart(_without_surrogates(message.text)))

    def add_result(self, result: CallReturn) -> None:
        from pydantic_ai.messages import ToolReturnPart

        id = self._unanswered.pop(result.call_id, None)
        if id is None:
            raise RequestRefused(f"The result for {excerpt(result.call_id)!r} answers no open call; {_ONE_RESULT_EACH}")
        text = _without_surrogates(result.text) or "(no output)"
        outcome: Literal["failed", "success"] = "failed" if result.failed else "success"
        self._results.append(ToolReturnPart(self._name(result.tool), text, id, outcome=outcome))

    def add_reply(self, reply: Reply) -> None:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        text = _without_surrogates(reply.text)
        if not text.strip() and not reply.calls:
            return
        self._flush()
        calls: list[ToolCallPart] = []
        for call in reply.calls:
            if call.id in self._unanswered:
                raise RequestRefused(f"Two calls of one reply have the id {excerpt(call.id)!r}; {_ONE_RESULT_EACH}")
            self._unanswered[call.id] = id = _wire_id(call.id, self._used)
            calls.append(ToolCallPart(self._name(call.tool), _sendable(call.arguments), id))
        if (written := with_reasoning(reply, text, calls, self._model)) is not None:
            provider, parts = written
            self._made.append(ModelResponse(parts=parts, provider_name=provider))
        else:
            self._made.append(ModelResponse(parts=[*([TextPart(text)] if text.strip() else []), *calls]))

    def build(self) -> list[ModelMessage]:
        self._flush()
        if not self._made:
            raise RequestRefused("The request has no messages.")
        if self._cache_markers:
            self._mark()
        return self._made

    def _mark(self) -> None:
        """Mark the end of the last requests, without what the next request does not repeat."""
        from pydantic_ai.messages import CachePoint, ModelRequest, UserPromptPart

        requests = [message for message in self._made if isinstance(message, ModelRequest)]
        for message in requests[-_CACHED_MESSAGES:]:
            at = len(message.parts) - (self._changing if message is requests[-1] else 0)
            if at or message is not self._made[0]:
                message.parts = [*message.parts[:at], UserPromptPart([CachePoint()]), *message.parts[at:]]

    def _name(self, tool: str) -> str:
        return tool if tool in self._offered else _wire_name(tool)

    def _flush(self) -> None:
        from pydantic_ai.messages import ModelRequest

        for id in self._unanswered:
            raise RequestRefused(f"The call {excerpt(id)!r} has no result; {_ONE_RESULT_EACH}")
        parts = [*self._results, *self._said]
        if parts:
            self._made.append(ModelRequest(parts=parts, instructions=self._system or None))
        self._results.clear()
        self._said.clear()


def _wire_id(id: str, used: set[str]) -> str:
    """An id that the provider accepts. Another model may have made the original, so it is mapped deterministically."""
    made = id if _CALL_ID.fullmatch(id) else f"call_{hashlib.sha256(id.encode()).hexdigest()[:24]}"
    number = 1
    while made in used:
        number += 1
        made = f"call_{hashlib.sha256(f'{id} {number}'.encode()).hexdigest()[:24]}"
    used.add(made)
    return made


def _wire_name(tool: str) -> str:
    """A valid tool name. A model may have called an invalid one; that call and its error must still be sent."""
    return _NOT_IN_A_NAME.sub("_", tool)[:_MAX_NAME_LENGTH] or "_"


def _without_surrogates(text: str) -> str:
    """Models sometimes write lone surrogates, which cannot be encoded."""
    return _SURROGATE.sub("\ufffd", text)


def _sendable(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Providers require an object. Invalid JSON is sent back as text; the result explains the problem."""
    if isinstance(arguments, str):
        return {"not_json": _without_surrogates(arguments)} if arguments.strip() else {}
    sendable: dict[str, Any] = json.loads(_without_surrogates(json.dumps(dict(arguments), ensure_ascii=False)))
    return sendable


def tool_parameters(request: ModelRequest) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            # Strict mode restricts the schema language; the scheduler checks arguments anyway.
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.input_schema),
                strict=False,
            )
            for tool in request.tools
        ]
    )


# --- replies ----------------------------------------------------------------------------------------------


def event_text(event: ModelResponseStreamEvent) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
    return ""


def to_reply(response: ModelResponse, model: str, *, done: bool) -> Reply:
    """Raises `ModelBusy` if the end is missing. `done`: the server marked the end of the stream."""
    from pydantic_ai.messages import TextPart

    reason, usage = response.finish_reason, response.usage
    # pydantic-ai assumes "stop" if the server sent no finish reason. A complete stream has a finish reason, a
    # token count or an end mark; without any of them the connection was closed early.
    finish_reason = (response.provider_details or {}).get("finish_reason")
    ended = done or bool(finish_reason) or (reason is not None and not usage.unmeasured_requests)
    if response.state != "complete" or not ended:
        raise ModelBusy(STREAM_BROKEN)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = tuple(
        RequestedCall(part.tool_call_id, part.tool_name, _arguments(part.args)) for part in response.tool_calls
    )
    finish = _FINISHES.get(reason or "stop", FinishReason.STOP)
    if finish in (FinishReason.STOP, FinishReason.TOOL_CALLS):
        # Not every provider distinguishes these two.
        finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    used = Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return Reply(text, calls, finish, used, provider_parts(response, model))


def _arguments(written: str | Mapping[str, Any] | None) -> Mapping[str, Any] | str:
    if not isinstance(written, str):
        return dict(written or {})
    if not written.strip():
        return {}
    try:
        value = json.loads(written, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return written
    return value if isinstance(value, dict) else written


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
