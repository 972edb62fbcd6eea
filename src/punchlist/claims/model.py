"""Values of claims."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from punchlist.conversations.model import Scope

T = TypeVar("T")


class ListKind(StrEnum):
    """The lists whose todos can be claimed."""

    PLAN = "plan"
    MISSION = "mission"


class Claim(NamedTuple):
    """A row of `claims`: the newest claim of a todo. A released claim has no holder."""

    todo_id: str
    list: ListKind
    # The id of the turn or the mission.
    owner_id: str
    holder: str | None
    fence: int
    claimed_at: str
    lease_until: str


@dataclass(frozen=True, slots=True)
class Claimant:
    """The agent or person that claims.

    Every part comes from the surface, never from the model, so that no agent can act as another.
    """

    scope: Scope
    origin: str
    """The process or connection; distinguishes actors of the same name."""

    @property
    def holder(self) -> str:
        return f"{self.scope.actor} in {self.scope.conversation_id} ({self.origin})"


@dataclass(frozen=True, slots=True)
class ClaimGranted(Generic[T]):
    todo: T
    claim: Claim


@dataclass(frozen=True, slots=True)
class NothingToClaim:
    """No todo can be claimed now."""

    claimed: int
    unavailable: int
    """Open todos without a claim that are in progress or waiting."""
    until: str | None = None
    """When the first lease ends."""

    def __str__(self) -> str:
        parts = [f"{self.claimed} claimed, the first until {(self.until or '')[:19]}Z"] if self.claimed else []
        if self.unavailable:
            parts.append(f"{self.unavailable} in progress or waiting")
        return f"No todo is free now: {', '.join(parts)}. Try again later." if parts else "No todo is left to claim."
