"""Who does something: a role that rules look at, and a name that the trail keeps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    PERSON = "person"
    SUPERVISOR = "supervisor"
    # Of a mission: who decides and reviews, and who works for one of its pillars.
    LEAD = "lead"
    OWNER = "owner"
    WORKER = "worker"
    SYSTEM = "system"

    @property
    def described(self) -> str:
        """As a sentence about one begins."""
        return f"{'An' if self.value[0] in 'aeiou' else 'A'} {self.value}"


@dataclass(frozen=True, slots=True)
class Actor:
    """Bound by the surface that let the caller in, never taken from what a model says."""

    role: Role
    name: str

    def __str__(self) -> str:
        return f"{self.role}:{self.name}"


SYSTEM = Actor(Role.SYSTEM, "punchlist")
