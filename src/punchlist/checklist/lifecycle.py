"""The lifecycle of a checklist item.

The agent sends states, not actions, and may take a step back; so every pair of states is connected
by exactly one action, and `action_between` names it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.lifecycle import ANYBODY, NEW, Lifecycle


class Status(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class Action(StrEnum):
    ADD = "add"
    START = "start"
    COMPLETE = "complete"
    REOPEN = "reopen"


CHECKLIST: Final = Lifecycle(
    "checklist item",
    {
        (NEW, Action.ADD): Status.PENDING,
        (Status.PENDING, Action.START): Status.IN_PROGRESS,
        (Status.PENDING, Action.COMPLETE): Status.COMPLETED,
        (Status.IN_PROGRESS, Action.COMPLETE): Status.COMPLETED,
        (Status.IN_PROGRESS, Action.REOPEN): Status.PENDING,
        (Status.COMPLETED, Action.START): Status.IN_PROGRESS,
        (Status.COMPLETED, Action.REOPEN): Status.PENDING,
    },
    allowed=dict.fromkeys(Action, ANYBODY),
)

# What the states are called, here and in other tools (W11).
STATUS_NAMES: Final = {
    **{status.value: status for status in Status},
    "todo": Status.PENDING,
    "doing": Status.IN_PROGRESS,
    "in-progress": Status.IN_PROGRESS,
    "done": Status.COMPLETED,
    "complete": Status.COMPLETED,
}


def status_named(name: str) -> Status | None:
    return STATUS_NAMES.get(name.strip().lower())


def action_between(before: Status, after: Status) -> Action:
    return next(action for (source, action), target in CHECKLIST.table.items() if (source, target) == (before, after))
