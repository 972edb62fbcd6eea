"""The events of a turn, emitted as they happen. Each event names its agent and turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchlist.agent.list_state import ListState
    from punchlist.agent.turn_model import TurnResult
    from punchlist.models.model import Usage
    from punchlist.toolcalls.model import ToolCall


@dataclass(frozen=True, slots=True)
class AgentEvent:
    agent: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class TurnStarted(AgentEvent):
    model: str
    parent: str | None
    """The turn that delegated this one."""
    resumed: bool
    continuations: int | None
    """The limit of continuations; None if continuation is off (C15)."""
    mode: str = ""
    context_window: int | None = None
    token_limit: int | None = None
    cost_limit: float | None = None


@dataclass(frozen=True, slots=True)
class TextDelta(AgentEvent):
    """A piece of a reply, while the model streams it."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyReceived(AgentEvent):
    """The model has replied; its calls run next."""

    text: str
    calls: int
    usage: Usage
    cost: float | None
    """In dollars; None if the model's price is unknown."""


@dataclass(frozen=True, slots=True)
class CallChanged(AgentEvent):
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolOutput(AgentEvent):
    """Live output of a running call."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ListChanged(AgentEvent):
    lists: ListState


@dataclass(frozen=True, slots=True)
class Continued(AgentEvent):
    """The agent stopped with open items and was sent back to its list."""

    count: int
    limit: int


@dataclass(frozen=True, slots=True)
class ContextCompacted(AgentEvent):
    """A summary has replaced older messages in the context of the model."""

    before_tokens: int
    """An estimate for the next request."""
    after_tokens: int
    messages: int
    """How many the summary replaces."""


@dataclass(frozen=True, slots=True)
class NoteAdded(AgentEvent):
    """Information for the person: a retry, a missing tool server, a todo that cannot be read."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded(AgentEvent):
    result: TurnResult


EventListener = Callable[[AgentEvent], None]
