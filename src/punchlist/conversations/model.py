"""Values of conversations, turns, messages and the message queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from punchlist.conversations.lifecycle import TurnStatus
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Actor, Change


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class NoticeKind(StrEnum):
    """Kinds of messages that are posted to a chat for people and agents, inside or outside a turn."""

    TODO_DELEGATION = "todo_delegation"
    TODO_RESULT = "todo_result"
    TODO_ERROR = "todo_error"
    TODO_FEEDBACK = "todo_feedback"
    RECOMMENDATION = "recommendation"
    PLANNING = "planning"
    DEADLINE_WARNING = "deadline_warning"
    ESCALATION = "mission_escalation"
    REMINDER = "mission_reminder"
    CYCLE_REPORT = "cycle_report"
    WORKER_RESULT = "worker_result"
    NOTE = "note"


class Conversation(NamedTuple):
    id: str
    title: str
    metadata: str
    created_at: str


class StoredTurn(NamedTuple):
    """A row of `turns`. A named tuple because every plan write reads one."""

    id: str
    conversation_id: str
    parent_turn_id: str | None
    agent_id: str
    end_reason: str | None
    started_at: str
    ended_at: str | None
    owner: str | None = None
    """The process that works on the turn; None when no process does."""
    run_id: str | None = None
    """The run that the turn, or the one that delegated it, belongs to; None in a session."""

    @property
    def open(self) -> bool:
        return self.ended_at is None

    @property
    def status(self) -> TurnStatus:
        return TurnStatus.OPEN if self.open else TurnStatus.ENDED


class TurnInterrupt(NamedTuple):
    """A row of `turn_interrupts`: a request to the process that works on a turn."""

    turn_id: str
    requested_by: str
    reason: str
    requested_at: str


class NewMessage(NamedTuple):
    """A message without id and position."""

    role: str
    kind: str
    content: str


class Message(NamedTuple):
    id: str
    conversation_id: str
    turn_id: str | None
    position: int
    role: str
    kind: str
    content: str
    created_at: str
    posted_by: str | None = None
    """The actor, outside turns."""
    todo_id: str | None = None
    """The mission todo that a message outside turns is about."""


class Trace(NamedTuple):
    """A row of `traces`: one call to a model or a tool."""

    id: str
    conversation_id: str
    turn_id: str
    kind: str
    name: str
    input: str
    output: str
    error: str | None
    started_at: str
    ended_at: str


class ModelCallRecord(NamedTuple):
    """The stored part of one model request, apart from its reply."""

    name: str
    input: str
    output: str
    error: str | None
    started_at: str
    ended_at: str


class QueuedMessage(NamedTuple):
    """A row of `queued_messages`."""

    id: str
    conversation_id: str
    position: int
    content: str
    status: str
    said_by: str
    created_at: str
    changed_at: str | None
    turn_id: str | None

    def as_json(self) -> dict[str, Any]:
        return camel_json(self, "id", "status", "content", "said_by", "created_at", "changed_at", "turn_id")


class DeliveredMessage(NamedTuple):
    """A delivered message and the turn that it started, whose first message it is."""

    turn: StoredTurn
    queued: QueuedMessage


class ConversationOverview(NamedTuple):
    """One line in the list of conversations."""

    conversation: Conversation
    turns: int
    messages: int
    last: StoredTurn | None


class ChatEntry(NamedTuple):
    """A message and its turn, if it has one."""

    message: Message
    turn: StoredTurn | None
    delegated: bool = False
    """Whether another agent asked for the turn."""


class StoredSummary(NamedTuple):
    """A row of `chat_summaries`: the running summary of a chat for one agent."""

    conversation_id: str
    agent_id: str
    position: int
    """The last message that it covers."""
    content: str
    updated_at: str


class LastMessage(NamedTuple):
    """When the last message was written, and how many messages there are."""

    messages: int
    at: str


class CallEvidence(NamedTuple):
    """A tool call as evidence of the work on a todo."""

    call_id: str
    turn_id: str
    agent: str
    tool: str
    status: str
    summary: str
    """The first line of the result, or of the explanation if the call has no result."""
    output_file: str | None
    at: str
    """When the call started; when it was requested, if it never started."""
    ended_at: str | None

    def as_json(self) -> dict[str, Any]:
        names = ("call_id", "turn_id", "agent", "tool", "status", "output_file", "at", "ended_at")
        return {**camel_json(self, *names), "told": self.summary}


class ModelRequestUsage(NamedTuple):
    """The tokens of one model request."""

    at: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The conversation and actor of a caller. The surface sets it; nothing in it comes from a model (T7)."""

    conversation_id: str
    actor: Actor

    @property
    def agent_id(self) -> str:
        return self.actor.name

    def change(
        self,
        stream: str,
        action: str,
        subject: str,
        reason: str,
        data: dict[str, Any],
        *,
        from_status: str | None = None,
        to_status: str | None = None,
    ) -> Change:
        """The event of a change that the caller makes."""
        actor = str(self.actor)
        return Change(stream, self.conversation_id, actor, action, subject, from_status, to_status, reason, data)


@dataclass(frozen=True, slots=True)
class TurnScope(Scope):
    turn_id: str
