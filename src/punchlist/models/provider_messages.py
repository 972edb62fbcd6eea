"""Our messages as pydantic-ai has them, and its replies as ours.

What the providers are strict about is seen to here: calls and results that match, ids and names that they
accept, no empty text, no half characters. What they are careless about too: whether a reply was whole.
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
from punchlist.models.provider_errors import BROKE_OFF

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
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
_LONGEST_NAME: Final = 64
_HALF: Final = re.compile("[\ud800-\udfff]")
_ONE_EACH: Final = "each call needs exactly one result."


# --- what goes out ----------------------------------------------------------------------------------------


def to_provider_messages(request: ModelRequest) -> list[ModelMessage]:
    """The messages as the providers take them. Raises `RequestRefused` where calls and results do not match."""
    making = _MessageBuilder(request)
    for message in request.messages:
        match message:
            case UserText():
                making.say(message)
            case CallReturn():
                making.answer(message)
            case Reply():
                making.reply(message)
    return making.done()


class _MessageBuilder:
    """Everything between two replies is one message: results first, which is where providers want them."""

    def __init__(self, request: ModelRequest) -> None:
        self._system = _carried(request.system)
        self._offered = {tool.name for tool in request.tools}
        self._made: list[ModelMessage] = []
        self._results: list[ModelRequestPart] = []
        self._said: list[ModelRequestPart] = []
        self._unanswered: dict[str, str] = {}
        self._used: set[str] = set()

    def say(self, said: UserText) -> None:
        from pydantic_ai.messages import UserPromptPart

        # Providers refuse empty text, here and below.
        if said.text.strip():
            self._said.append(UserPromptPart(_carried(said.text)))

    def answer(self, result: CallReturn) -> None:
        from pydantic_ai.messages import ToolReturnPart

        id = self._unanswered.pop(result.call_id, None)
        if id is None:
            raise RequestRefused(f"The result for {excerpt(result.call_id)!r} answers no open call; {_ONE_EACH}")
        text = _carried(result.text) or "(no output)"
        outcome: Literal["failed", "success"] = "failed" if result.failed else "success"
        self._results.append(ToolReturnPart(self._name(result.tool), text, id, outcome=outcome))

    def reply(self, reply: Reply) -> None:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        parts: list[ModelResponsePart] = [TextPart(_carried(reply.text))] if reply.text.strip() else []
        if not parts and not reply.calls:
            return
        self._send()
        for call in reply.calls:
            if call.id in self._unanswered:
                raise RequestRefused(f"Two calls of one reply have the id {excerpt(call.id)!r}; {_ONE_EACH}")
            self._unanswered[call.id] = id = _wire_id(call.id, self._used)
            parts.append(ToolCallPart(self._name(call.tool), _sendable(call.arguments), id))
        self._made.append(ModelResponse(parts=parts))

    def done(self) -> list[ModelMessage]:
        self._send()
        if not self._made:
            raise RequestRefused("There is nothing to send: the request has no messages.")
        return self._made

    def _name(self, tool: str) -> str:
        return tool if tool in self._offered else _wire_name(tool)

    def _send(self) -> None:
        from pydantic_ai.messages import ModelRequest

        for id in self._unanswered:
            raise RequestRefused(f"The call {excerpt(id)!r} has no result; {_ONE_EACH}")
        parts = [*self._results, *self._said]
        if parts:
            self._made.append(ModelRequest(parts=parts, instructions=self._system or None))
        self._results.clear()
        self._said.clear()


def _wire_id(id: str, used: set[str]) -> str:
    """Another model may have made the id: it is changed where a provider would refuse it, always in the same way."""
    made = id if _CALL_ID.fullmatch(id) else f"call_{hashlib.sha256(id.encode()).hexdigest()[:24]}"
    number = 1
    while made in used:
        number += 1
        made = f"call_{hashlib.sha256(f'{id} {number}'.encode()).hexdigest()[:24]}"
    used.add(made)
    return made


def _wire_name(tool: str) -> str:
    """A model may call what is no name at all. It was told that there is no such tool; that must be sendable."""
    return _NOT_IN_A_NAME.sub("_", tool)[:_LONGEST_NAME] or "_"


def _carried(text: str) -> str:
    """Half of a character, which models do write, is carried by no wire."""
    return _HALF.sub("\ufffd", text)


def _sendable(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Providers want an object; the model sees what it wrote, and the result says what was wrong with it."""
    if isinstance(arguments, str):
        return {"not_json": _carried(arguments)} if arguments.strip() else {}
    sendable: dict[str, Any] = json.loads(_carried(json.dumps(dict(arguments), ensure_ascii=False)))
    return sendable


def tool_parameters(request: ModelRequest) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            # Strict schemas are a dialect of their own; ours are checked by the scheduler.
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.input_schema),
                strict=False,
            )
            for tool in request.tools
        ]
    )


# --- what comes back --------------------------------------------------------------------------------------


def event_text(event: ModelResponseStreamEvent) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
    return ""


def to_reply(response: ModelResponse, *, done: bool) -> Reply:
    """Raises `ModelBusy` where the end is missing; `done`: the server said in so many words that this was it."""
    from pydantic_ai.messages import TextPart

    reason, usage = response.finish_reason, response.usage
    # The library makes up a "stop" where none came. A server that never says why it ended still counts its
    # tokens at the end, or says that it is done; none of the three means that the connection was closed early.
    told = (response.provider_details or {}).get("finish_reason")
    ended = done or bool(told) or (reason is not None and not usage.unmeasured_requests)
    if response.state != "complete" or not ended:
        raise ModelBusy(BROKE_OFF)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = tuple(
        RequestedCall(part.tool_call_id, part.tool_name, _arguments(part.args)) for part in response.tool_calls
    )
    finish = _FINISHES.get(reason or "stop", FinishReason.STOP)
    if finish in (FinishReason.STOP, FinishReason.TOOL_CALLS):
        # Not every provider tells these two apart.
        finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return Reply(text, calls, finish, Usage(usage.input_tokens, usage.output_tokens))


def _arguments(written: str | Mapping[str, Any] | None) -> Mapping[str, Any] | str:
    if not isinstance(written, str):
        return dict(written or {})
    if not written.strip():
        return {}
    try:
        value = json.loads(written, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return written
    return value if isinstance(value, dict) else written


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
