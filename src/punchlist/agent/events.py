"""What happens in a turn, as it happens: for whoever watches. Each says which agent it is about, and which turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from punchlist.agent.list_state import ListState
from punchlist.agent.result import TurnResult
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
    """How often at most the agent is sent back to its list; None when it is not (C15)."""


@dataclass(frozen=True, slots=True)
class TextDelta(AgentEvent):
    """A piece of a reply, while the model speaks."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyReceived(AgentEvent):
    """The model has replied; its calls come next."""

    text: str
    calls: int


@dataclass(frozen=True, slots=True)
class CallChanged(AgentEvent):
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolOutput(AgentEvent):
    """What a running call prints."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ListChanged(AgentEvent):
    lists: ListState


@dataclass(frozen=True, slots=True)
class Continued(AgentEvent):
    """The agent stopped early and was sent back to its list."""

    count: int
    limit: int


@dataclass(frozen=True, slots=True)
class NoteAdded(AgentEvent):
    """Something that a person should know: a retry, a reminder, a todo that cannot be read."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded(AgentEvent):
    result: TurnResult


EventListener = Callable[[AgentEvent], None]
