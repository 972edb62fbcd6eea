"""What the screens show, read at one moment. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from punchlist.conversations.model import QueuedMessage, StoredTurn
    from punchlist.surfaces.tui.entries import Entry
    from punchlist.surfaces.tui.stored_entries import CallResult
    from punchlist.views.todos import TodoList

SessionState = Literal["starting", "working", "waiting", "interrupted", "ended", "new"]
"""`starting`: the process of the turn has not begun it. The others are those of `views/conversations.py`."""
Severity = Literal["information", "warning", "error"]
Group = Literal["needs_you", "working", "done"]
GROUPS: Final[dict[Group, str]] = {"needs_you": "Needs you", "working": "Working", "done": "Done"}


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A tool call that waits for permission."""

    call_id: str
    session: str
    tool: str
    arguments: Mapping[str, Any]
    question: str
    why: str
    workspace: str
    asked_at: str
    always: Mapping[str, str] = field(default_factory=dict)
    """What each "always" answer covers, by its name: tool, prefix or server."""
    is_edited: bool = False
    """Whether the arguments are not the agent's: the person has edited them here."""


@dataclass(frozen=True, slots=True)
class HomeRow:
    """One line on Home."""

    id: str
    group: Group
    state: str
    """A key of `theme.SIGNS`."""
    title: str
    details: tuple[str, ...]
    at: str
    """When it began or ended; empty if no time is known."""
    session: str | None = None
    kind: str = "session"
    """`session`, or the kind of a request of the inbox."""
    request_id: str | None = None
    mission: str | None = None
    text: str = ""
    """The whole question."""
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HomeState:
    rows: Sequence[HomeRow] = ()
    approvals: Mapping[str, PendingApproval] = field(default_factory=dict)
    """By the id of the call."""
    waiting: int = 0
    """Requests that need a person, also those without a row."""
    missions: Sequence[str] = ()
    """The names of the active ones."""

    def group(self, name: Group) -> list[HomeRow]:
        return [row for row in self.rows if row.group == name]


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """What the status line shows about the open turn, else the last one."""

    model: str = ""
    """Of the open turn, else of the next one."""
    mode: str = ""
    """Of the open turn; empty if none is open."""
    continuations: int = 0
    limit: int | None = None
    """Of continuations; None if continuation is off."""
    tokens: int = 0
    cost: float | None = None
    budget: float | None = None
    """Of cost, in dollars; None if there is no limit."""
    token_budget: int | None = None
    context: int = 0
    context_window: int | None = None


class GoOn(StrEnum):
    """What Enter on an empty prompt does."""

    RESUME = "resume"
    """The turn whose process died."""
    DELIVER = "deliver"
    """The first queued message, after a turn that was cancelled or failed."""
    NOTHING = ""


@dataclass(frozen=True, slots=True)
class ConversationState:
    session: str
    todos: TodoList
    turn: StoredTurn | None = None
    state: SessionState = "new"
    approvals: Sequence[PendingApproval] = ()
    queued: Sequence[QueuedMessage] = ()
    figures: TurnFigures = TurnFigures()
    host: str = ""
    """The third-party agent that runs in the session, known through its hooks."""

    @property
    def is_open(self) -> bool:
        return self.turn is not None and self.turn.open

    @property
    def is_running(self) -> bool:
        """Whether a living process works on the turn."""
        return self.state == "working"

    @property
    def go_on(self) -> GoOn:
        if self.state == "interrupted":
            return GoOn.RESUME
        return GoOn.DELIVER if self.queued and self.state in ("ended", "new") else GoOn.NOTHING


@dataclass(frozen=True, slots=True)
class EntryPage:
    """A part of the history, oldest first."""

    entries: Sequence[Entry]
    first: int
    """The position of its first message."""
    last: int
    has_earlier: bool
    has_later: bool
    results: Mapping[str, CallResult] = field(default_factory=dict)
    """Of calls of this page and of earlier ones, by call."""
