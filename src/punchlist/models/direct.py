"""A model of a provider, asked over pydantic-ai's direct interface.

One question is one HTTP stream with a client of its own: nothing is left open between questions, nothing
belongs to an event loop, and cancelling the question closes the stream. The price is a handshake for each.
The libraries' own retries are off: `retry.Persistent` acts, and it must see every failure. A reply is whole
or there is none.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from punchlist.kernel.text import excerpt
from punchlist.models.choosing import REHEARSAL, chosen
from punchlist.models.errors import BROKE_OFF, failure
from punchlist.models.model import (
    Call,
    Finish,
    Hear,
    Model,
    ModelBusy,
    ModelRefused,
    Reply,
    Request,
    Returned,
    Said,
    Traits,
    Usage,
)

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncClient
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        ModelResponseStreamEvent,
    )
    from pydantic_ai.models import Model as Wire
    from pydantic_ai.models import ModelRequestParameters

_FINISHES: Final = {
    "stop": Finish.STOP,
    "tool_call": Finish.TOOL_CALLS,
    "length": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "error": Finish.ERROR,
}
_CALL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CONNECTING: Final = 10.0
_ONE_EACH: Final = "each call needs exactly one result."


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """In seconds: without a byte, and for a whole reply. No `idle`: the provider's usual one."""

    idle: float | None = None
    whole: float = 3600.0


def model_named(name: str, environment: Mapping[str, str]) -> Model:
    """Raises `ConfigError` where there is no such provider, or no such rehearsal."""
    if name.startswith(f"{REHEARSAL}:"):
        from punchlist.models.rehearsal import Rehearsal, load

        return Rehearsal(load(Path(name.removeprefix(f"{REHEARSAL}:"))), name=name)
    return DirectModel(name, environment)


class DirectModel:
    def __init__(self, name: str, environment: Mapping[str, str], limits: TimeLimits | None = None) -> None:
        limits = limits or TimeLimits()
        self.name = name
        self._model = chosen(name, environment)
        self._idle = limits.idle or self._model.provider.idle
        self._whole = limits.whole
        self._tls: SSLContext | None = None

    @cached_property
    def traits(self) -> Traits:
        from punchlist.models.traits import traits_of

        return traits_of(self._model)

    async def ask(self, request: Request, hear: Hear | None = None) -> Reply:
        # In a thread: the first time it imports for seconds, and others want the event loop.
        client, wire = await asyncio.to_thread(self._opened)
        try:
            async with asyncio.timeout(self._whole) as limit, client:
                return await self._reply(wire, request, hear)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ModelBusy(f"{self._model.provider.name} took longer than {self._whole:g} s.") from None
        except Exception as error:
            self._explain(error)

    def _explain(self, error: Exception) -> NoReturn:
        import httpx2
        from pydantic_ai.exceptions import AgentRunError, UserError

        # What else is raised comes from `hear`, or is a mistake of ours: both want their traceback.
        if isinstance(error, AgentRunError | UserError | httpx2.HTTPError | httpx2.StreamError | UnicodeEncodeError):
            # Not as a cause: it holds the request, with its key.
            raise failure(error, self._model, self._idle) from None
        raise error

    def _opened(self) -> tuple[AsyncClient, Wire]:
        import httpx2
        import pydantic_ai.direct  # noqa: F401  for later, while this is not the event loop's thread

        if self._tls is None:
            self._tls = httpx2.create_ssl_context()
        client = httpx2.AsyncClient(verify=self._tls)
        return client, self._model.wire(client)

    async def _reply(self, wire: Wire, request: Request, hear: Hear | None) -> Reply:
        import httpx2
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.settings import ModelSettings

        settings = ModelSettings(max_retries=0, timeout=httpx2.Timeout(self._idle, connect=_CONNECTING))
        if request.most_tokens is not None:
            settings["max_tokens"] = request.most_tokens
        async with model_request_stream(
            wire,
            conversation(request),
            model_settings=settings,
            model_request_parameters=_offers(request),
            instrument=False,
        ) as stream:
            async for event in stream:
                text = _text(event)
                if hear is not None and text:
                    hear(text)
        return _whole_reply(stream.get())


# --- what goes out ----------------------------------------------------------------------------------------


def conversation(request: Request) -> list[ModelMessage]:
    """The messages as the providers take them. Raises `ModelRefused` where calls and results do not match."""
    making = _Conversation(request.system)
    for message in request.messages:
        match message:
            case Said():
                making.say(message)
            case Returned():
                making.answer(message)
            case Reply():
                making.reply(message)
    return making.done()


class _Conversation:
    """Everything between two replies is one message: results first, which is where providers want them."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._made: list[ModelMessage] = []
        self._results: list[ModelRequestPart] = []
        self._said: list[ModelRequestPart] = []
        self._unanswered: dict[str, str] = {}
        self._used: set[str] = set()

    def say(self, said: Said) -> None:
        from pydantic_ai.messages import UserPromptPart

        # Providers refuse empty text, here and below.
        if said.text.strip():
            self._said.append(UserPromptPart(said.text))

    def answer(self, result: Returned) -> None:
        from pydantic_ai.messages import ToolReturnPart

        id = self._unanswered.pop(result.call_id, None)
        if id is None:
            raise ModelRefused(f"The result for {excerpt(result.call_id)!r} answers no open call; {_ONE_EACH}")
        text = result.text or "(no output)"
        outcome: Literal["failed", "success"] = "failed" if result.failed else "success"
        self._results.append(ToolReturnPart(result.tool, text, id, outcome=outcome))

    def reply(self, reply: Reply) -> None:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        parts: list[ModelResponsePart] = [TextPart(reply.text)] if reply.text.strip() else []
        if not parts and not reply.calls:
            return
        self._send()
        for call in reply.calls:
            if call.id in self._unanswered:
                raise ModelRefused(f"Two calls of one reply have the id {excerpt(call.id)!r}; {_ONE_EACH}")
            self._unanswered[call.id] = id = _wire_id(call.id, self._used)
            parts.append(ToolCallPart(call.tool, _sendable(call.arguments), id))
        self._made.append(ModelResponse(parts=parts))

    def done(self) -> list[ModelMessage]:
        self._send()
        if not self._made:
            raise ModelRefused("There is nothing to send: the request has no messages.")
        return self._made

    def _send(self) -> None:
        from pydantic_ai.messages import ModelRequest

        for id in self._unanswered:
            raise ModelRefused(f"The call {excerpt(id)!r} has no result; {_ONE_EACH}")
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


def _sendable(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Providers want an object; the model sees what it wrote, and the result says what was wrong with it."""
    if isinstance(arguments, str):
        return {"not_json": arguments} if arguments.strip() else {}
    return dict(arguments)


def _offers(request: Request) -> ModelRequestParameters:
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


def _text(event: ModelResponseStreamEvent) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
    return ""


def _whole_reply(response: ModelResponse) -> Reply:
    from pydantic_ai.messages import TextPart

    reason, usage = response.finish_reason, response.usage
    # The library makes up a "stop" where none came. A server that never says why it ended still counts its
    # tokens at the end; neither of the two means that the connection was closed early.
    told = (response.provider_details or {}).get("finish_reason")
    ended = bool(told) or (reason is not None and not usage.unmeasured_requests)
    if response.state != "complete" or not ended:
        raise ModelBusy(BROKE_OFF)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = tuple(Call(part.tool_call_id, part.tool_name, _arguments(part.args)) for part in response.tool_calls)
    finish = _FINISHES.get(reason or "stop", Finish.STOP)
    if finish in (Finish.STOP, Finish.TOOL_CALLS):
        # Not every provider tells these two apart.
        finish = Finish.TOOL_CALLS if calls else Finish.STOP
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
