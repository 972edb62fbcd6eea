"""The interface to models: request, reply, messages and errors.

The message types are the same for every provider and for storage. A reply may contain calls whose arguments
are not JSON: the loop handles them, so that the reply is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)

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


@dataclass(frozen=True, slots=True)
class Reply:
    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    finish: FinishReason = FinishReason.STOP
    usage: Usage = Usage()


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


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Context window and prices of a model; None if unknown."""

    context_window: int | None = None
    input_price: float | None = None
    output_price: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """In dollars. Prices are per million tokens."""
        if self.input_price is None or self.output_price is None:
            return None
        return (usage.input_tokens * self.input_price + usage.output_tokens * self.output_price) / 1_000_000


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
    """The request is wrong, for example too long: another model would probably refuse it as well."""
