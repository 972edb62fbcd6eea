"""What the loop needs of a model: a request in, a reply out, and what there is to know about it.

Messages are values of our own, the same for every provider and for what is stored. A reply may hold
calls whose arguments are no JSON: that is the loop's to handle, not a reason to lose the reply.
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
    """A tool call that a model wants. `arguments` is text where the model did not write a JSON object."""

    id: str
    tool: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class UserText:
    """What a person, or the loop in a person's place, says to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    finish: FinishReason = FinishReason.STOP
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class CallReturn:
    """What came of a call."""

    call_id: str
    tool: str
    text: str
    failed: bool = False


Message = UserText | Reply | CallReturn


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool as the model is told of it."""

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
    """What is known about a model; None where nothing is."""

    context_window: int | None = None
    input_price: float | None = None
    output_price: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """In dollars, by the price of a million tokens."""
        if self.input_price is None or self.output_price is None:
            return None
        return (usage.input_tokens * self.input_price + usage.output_tokens * self.output_price) / 1_000_000


TextListener = Callable[[str], None]
"""Gets the text of a reply as it is made. What was heard before `BROKEN` is not part of any reply."""
REPLY_BROKEN: Final = "\n[The reply broke off here and does not count.]\n"


class Model(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def info(self) -> ModelInfo: ...

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        """Raises `ModelError` when there is no reply."""


class ModelError(PunchlistError):
    """The model gave no reply."""

    code: ClassVar[str] = "model"


class ModelBusy(ModelError):
    """Rate limit, overload, a dropped stream: worth another try, after `wait` seconds if it said so."""

    code = "model_busy"

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = wait


class ModelRefused(ModelError):
    """A wrong key, a wrong name, a request it does not take: another try would not help."""

    code = "model_refused"


class RequestRefused(ModelRefused):
    """It is the request that is wrong, such as too long: another model would hardly take it either."""
