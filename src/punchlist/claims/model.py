"""Values of claims."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from punchlist.conversations.model import Scope

T = TypeVar("T")


class ListKind(StrEnum):
    """What can be claimed: a todo of a turn's plan, or of a mission."""

    PLAN = "plan"
    MISSION = "mission"


class Claim(NamedTuple):
    """A row of `claims`: the newest claim of a todo. Without a holder it was released."""

    todo_id: str
    list: ListKind
    # The turn or the mission.
    owner_id: str
    holder: str | None
    fence: int
    claimed_at: str
    lease_until: str


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims: somebody in a conversation, at a place that tells it from others of the same name.

    All of it comes from the surface: a model that could say who it is could be somebody else.
    """

    scope: Scope
    origin: str
    """A process or a connection."""

    @property
    def holder(self) -> str:
        return f"{self.scope.actor} in {self.scope.conversation_id} ({self.origin})"


@dataclass(frozen=True, slots=True)
class ClaimGranted(Generic[T]):
    """A todo that is its claimant's now."""

    todo: T
    claim: Claim


@dataclass(frozen=True, slots=True)
class NothingToClaim:
    """Every todo has ended, waits, is in progress or somebody's."""

    claimed: int
    unavailable: int
    """Those that are open and nobody's, but cannot be claimed now."""
    until: str | None = None
    """When the first of the leases runs out."""

    def __str__(self) -> str:
        told = [f"{self.claimed} claimed, the first until {self.until}"] if self.claimed else []
        if self.unavailable:
            told.append(f"{self.unavailable} in progress or waiting")
        return f"Nothing is free now: {', '.join(told)}. Ask again later." if told else "Nothing is left to claim."
