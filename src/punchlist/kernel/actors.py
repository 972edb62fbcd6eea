"""Actors: a role, which permissions depend on, and a name for the event log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    PERSON = "person"
    SUPERVISOR = "supervisor"
    # In a mission: the lead decides and reviews, an owner works for one pillar.
    LEAD = "lead"
    OWNER = "owner"
    WORKER = "worker"
    # Reads and changes nothing.
    VIEWER = "viewer"
    SYSTEM = "system"

    @property
    def described(self) -> str:
        """The role with an article, at the start of a sentence."""
        return f"{'An' if self.value[0] in 'aeiou' else 'A'} {self.value}"


@dataclass(frozen=True, slots=True)
class Actor:
    """Set by the surface that authenticated the caller; never taken from a model's output."""

    role: Role
    name: str

    def __str__(self) -> str:
        return f"{self.role}:{self.name}"


SYSTEM = Actor(Role.SYSTEM, "punchlist")
