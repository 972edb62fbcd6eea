"""What a conversation consists of on the screen: texts of people and agents, calls, and quiet lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from punchlist.views.call_text import call_subject

ENDED_CALLS: Final = frozenset({"success", "error", "cancelled"})


@dataclass(frozen=True, slots=True)
class SaidEntry:
    """A message of a person."""

    id: str
    text: str
    at: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class ReplyEntry:
    """A text of an agent."""

    id: str
    text: str
    agent: str = ""
    depth: int = 0
    """0 for the agent of the turn, 1 for its workers."""
    is_streaming: bool = False
    position: int = 0


@dataclass(frozen=True, slots=True)
class CallEntry:
    """A tool call with its state."""

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    status: str = "validating"
    output: str = ""
    """The live output while it runs, then its result or the explanation of its failure."""
    seconds: float | None = None
    """None until it has ended."""
    started_at: str | None = None
    agent: str = ""
    depth: int = 0
    position: int = 0
    edited_by: str = ""
    """Who has edited the arguments, which are those that ran; empty if they are the agent's."""

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED_CALLS

    @property
    def subject(self) -> str:
        return call_subject(self.arguments)


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A quiet line: a continuation, a compaction, how a turn ended, a notice."""

    id: str
    kind: str
    text: str
    depth: int = 0
    position: int = 0
    """Of the message in the conversation; 0 if it is not stored."""


@dataclass(frozen=True, slots=True)
class ListEntry:
    """Changes of a list, between which nothing else happened."""

    id: str
    before: str
    """The message about the list before; empty if there was none."""
    after: str
    depth: int = 0
    position: int = 0

    def followed_by(self, later: ListEntry) -> ListEntry:
        """Both as one change. The id stays, so that the entry stays where it is."""
        return ListEntry(self.id, self.before, later.after, self.depth, later.position)


Entry = SaidEntry | ReplyEntry | CallEntry | NoteEntry | ListEntry
