"""The interface to models: request, reply, messages and errors.

The message types are the same for every provider and for storage. A reply may contain calls whose arguments
are not JSON: the loop handles them, so that the reply is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Protocol

from punchlist.errors import PunchlistError


class FinishReason(StrEnum):
    """Why a model stopped."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    """All input tokens, including those read from the cache and written to it."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the provider read from its cache."""
    cache_write_tokens: int = 0
    """Input tokens that the provider wrote to its cache and charges for."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call in a reply. `arguments` is a string if the model did not write a JSON object."""

    id: str
    tool: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class UserText:
    """A user message, from a person or from the loop."""

    text: str
    from_person: bool = field(default=True, compare=False)
    """False for what the loop says, such as continuations: it is not kept when the message is summarized."""


class PartKind(StrEnum):
    REASONING = "reasoning"
    TEXT = "text"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """One part of a reply in the provider's form. Texts and calls are those of the reply, in their order."""

    kind: PartKind
    length: int = 0
    """Characters of a text."""
    text: str = ""
    """Of reasoning."""
    id: str | None = None
    signature: str | None = None
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProviderParts:
    """The parts of a reply with reasoning. They are sent to the model that wrote them, and to no other."""

    model: str
    provider: str
    parts: tuple[ReplyPart, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    finish: FinishReason = FinishReason.STOP
    usage: Usage = Usage()
    provider_parts: ProviderParts | None = None
    """None if the reply has no reasoning."""


@dataclass(frozen=True, slots=True)
class CallReturn:
    """The result of a call."""

    call_id: str
    tool: str
    text: str
    failed: bool = False


Message = UserText | Reply | CallReturn


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool definition in a model request."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolOffer] = ()
    max_tokens: int | None = None
    stable: int | None = None
    """The number of messages that the next request repeats unchanged; None for all."""
    temperature: float | None = None
    """None for the default of the model."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Context window and prices of a model; None if unknown. Prices are in dollars per million tokens."""

    context_window: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    """Of input tokens read from the cache; None if they cost as much as others."""
    cache_write_price: float | None = None
    window_assumed: bool = False
    """The context window is a cautious guess."""

    def cost(self, usage: Usage) -> float | None:
        """In dollars."""
        if self.input_price is None or self.output_price is None:
            return None
        cached_price = self.input_price if self.cached_price is None else self.cached_price
        write_price = self.input_price if self.cache_write_price is None else self.cache_write_price
        other = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        spent = other * self.input_price + usage.output_tokens * self.output_price
        return (spent + usage.cached_tokens * cached_price + usage.cache_write_tokens * write_price) / 1_000_000


TextListener = Callable[[str], None]
"""Receives the text of a reply while it streams. Text before `REPLY_BROKEN` is not part of any reply."""
REPLY_BROKEN: Final = "\n[The reply was interrupted here and is discarded.]\n"


class Model(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def info(self) -> ModelInfo: ...

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        """Raises `ModelError` if there is no reply."""


class WrappedModel:
    """Forwards to another model; subclasses change how it is asked."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        return await self._model.ask(request, on_text)


class ModelError(PunchlistError):
    """The model gave no reply."""

    code: ClassVar[str] = "model"


class ModelBusy(ModelError):
    """Rate limit, overload or a dropped stream: worth a retry, after `retry_after` seconds if given."""

    code = "model_busy"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """A wrong key, a wrong name or a rejected request: a retry would not help."""

    code = "model_refused"


class RequestRefused(ModelRefused):
    """The request is wrong: another model would probably refuse it as well."""


class RequestTooLong(RequestRefused):
    """The request is longer than the context window of the model: a shorter one may succeed."""
