"""The events of a turn, emitted as they happen, and the result of a turn. Each event names its agent and turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from punchlist.agent.continuation import OpenItem, Reason, ending_text
from punchlist.agent.list_state import ListItem, ListState
from punchlist.models.model import Usage
from punchlist.toolcalls.model import ToolCall


@dataclass(frozen=True, slots=True)
class TurnResult:
    turn_id: str
    reason: Reason
    why: str
    last_text: str
    """The text of the agent's last reply that has one."""
    iterations: int
    continuations: int
    usage: Usage
    open: tuple[OpenItem, ...]
    items: tuple[ListItem, ...] = ()
    """All items of the turn's lists."""

    @property
    def ending(self) -> str:
        """How the turn ended and what is left; empty if it was completed."""
        return "" if self.reason is Reason.COMPLETED else ending_text(self.reason, self.why, self.open)

    @property
    def text(self) -> str:
        """The final message for the person, including open items (T14)."""
        return "\n\n".join(part for part in (self.last_text, self.ending) if part)


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


@dataclass(frozen=True, slots=True)
class TextDelta(AgentEvent):
    """A piece of a reply, while the model streams it."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyReceived(AgentEvent):
    """The model has replied; its calls run next."""

    text: str
    calls: int


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
class NoteAdded(AgentEvent):
    """Information for the person: a retry, a missing tool server, a todo that cannot be read."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded(AgentEvent):
    result: TurnResult


EventListener = Callable[[AgentEvent], None]
