"""The lifecycle of a plan todo."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.actors import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle


class Status(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Action(StrEnum):
    CREATE = "create"
    START = "start"
    COMPLETE = "complete"
    CANCEL = "cancel"


PLANNERS: Final = frozenset({Role.SUPERVISOR, Role.PERSON, Role.SYSTEM})

PLAN: Final = Lifecycle(
    "plan todo",
    {
        (NEW, Action.CREATE): Status.PENDING,
        (Status.PENDING, Action.START): Status.IN_PROGRESS,
        (Status.PENDING, Action.COMPLETE): Status.COMPLETED,
        (Status.IN_PROGRESS, Action.COMPLETE): Status.COMPLETED,
        (Status.PENDING, Action.CANCEL): Status.CANCELLED,
        (Status.IN_PROGRESS, Action.CANCEL): Status.CANCELLED,
    },
    # Workers do not know about the plan: whoever delegated marks what they did (T13).
    allowed=dict.fromkeys(Action, PLANNERS),
)

OPEN: Final = frozenset({Status.PENDING, Status.IN_PROGRESS})
