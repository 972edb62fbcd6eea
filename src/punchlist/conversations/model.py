"""Values of conversations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from punchlist.conversations.lifecycle import TurnStatus
from punchlist.kernel.actors import Actor


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class TraceKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"


class NoticeKind(StrEnum):
    """Kinds of messages that are posted to a chat, inside or outside of a turn, for people and for its agents."""

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


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    title: str
    metadata: str
    created_at: str


class StoredTurn(NamedTuple):
    """A row of `turns`. A named tuple, since every change of a plan reads one."""

    id: str
    conversation_id: str
    parent_turn_id: str | None
    agent_id: str
    end_reason: str | None
    started_at: str
    ended_at: str | None
    owner: str | None = None
    """The process that works on it."""

    @property
    def open(self) -> bool:
        return self.ended_at is None

    @property
    def status(self) -> TurnStatus:
        return TurnStatus.OPEN if self.open else TurnStatus.ENDED


class NewMessage(NamedTuple):
    """Something that is said, before it has its place."""

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


class Trace(NamedTuple):
    """One call to a model or a tool."""

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
    """What is kept of one request to a model, besides its reply."""

    name: str
    input: str
    output: str
    error: str | None
    started_at: str
    ended_at: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a caller stands: given by its surface, never by what a model sends (T7)."""

    conversation_id: str
    actor: Actor

    @property
    def agent_id(self) -> str:
        return self.actor.name


@dataclass(frozen=True, slots=True)
class TurnScope(Scope):
    turn_id: str
