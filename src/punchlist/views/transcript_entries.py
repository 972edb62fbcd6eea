"""The entries of a transcript. Each has a `type` in its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from punchlist.kernel.camel_json import camel_json

QuietKind = Literal[
    "continuation",
    "compaction",
    "reminder",
    "paused",
    "resumed",
    "goal",
    "final_report",
    "plan_change",
    "task",
    "turn_ended",
]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    type: ClassVar[str] = ""
    id: str
    """Stable: of the message, call or turn."""
    at: str
    turn_id: str | None
    agent: str | None
    """The agent of the turn; None outside turns."""
    worker: bool
    """Of a turn that another agent delegated."""
    position: int
    """Of the message that it belongs to, in the conversation."""

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, **camel_json(self)}


@dataclass(frozen=True, slots=True)
class PersonMessage(TranscriptEntry):
    type: ClassVar[str] = "person"
    text: str


@dataclass(frozen=True, slots=True)
class AgentText(TranscriptEntry):
    """Text of an agent, in Markdown."""

    type: ClassVar[str] = "agent"
    text: str


@dataclass(frozen=True, slots=True)
class PostedNotice(TranscriptEntry):
    """Posted to a chat for people and agents, such as a delegated todo, a report or a recommendation."""

    type: ClassVar[str] = "notice"
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class QuietLine(TranscriptEntry):
    """A line about the work itself."""

    type: ClassVar[str] = "quiet"
    kind: QuietKind
    text: str
    """One line."""
    detail: str = ""
    """More text: the summary of a compaction, what a turn left open."""


@dataclass(frozen=True, slots=True)
class QueuedText(TranscriptEntry):
    """A message that waits until the agent is idle (S10)."""

    type: ClassVar[str] = "queued"
    text: str


@dataclass(frozen=True, slots=True)
class CallApproval:
    status: str
    """pending, escalated, approved, denied, expired or withdrawn."""
    answered_by: str | None
    reason: str
    modified: bool = False
    """Whether the person has edited the arguments; the call shows those that ran."""

    @property
    def waits(self) -> bool:
        return self.status in ("pending", "escalated")


@dataclass(frozen=True, slots=True)
class CallCard(TranscriptEntry):
    """A tool call. `id` is its call id."""

    type: ClassVar[str] = "call"
    tool: str
    arguments: Mapping[str, Any] | None
    """None if they are too long to be shown in full; secrets are redacted."""
    arguments_text: str
    """As JSON, cut off if it is long."""
    status: str
    """One of the states of a call (S1)."""
    result: str
    """The beginning of the result; of the error or of why it was cancelled, if it has no result."""
    truncated: bool
    """The result is longer."""
    output_file: str | None
    """The file with the full output."""
    started_at: str | None
    ended_at: str | None
    seconds: float | None
    """How long it ran; None while it runs, and if it never ran."""
    approval: CallApproval | None
    diff: str | None
    """The change to a file as a unified diff."""

    def as_json(self) -> dict[str, Any]:
        approval = {"approval": camel_json(self.approval) if self.approval else None}
        return {"type": self.type, **camel_json(self), **approval}


@dataclass(frozen=True, slots=True)
class UpdatedItem:
    title: str
    status: str
    """pending, in_progress, completed or cancelled."""


@dataclass(frozen=True, slots=True)
class ListUpdate(TranscriptEntry):
    """A list was changed (W9): the checklist by an agent or a person, the plan by a call with this id."""

    type: ClassVar[str] = "list"
    list: Literal["plan", "checklist"]
    items: Sequence[UpdatedItem]
    """The whole checklist, or the items of the plan that changed."""

    @property
    def text(self) -> str:
        return "Todo list updated:"

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, **camel_json(self), "items": [camel_json(item) for item in self.items]}
