"""Lifecycle of a checklist item.

The agent sends states, not actions, and may move an item backwards. Every pair of states is therefore
connected by exactly one action, which `action_between` returns.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.lifecycle import ALL_ROLES, NEW, Lifecycle


class ChecklistStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class ChecklistAction(StrEnum):
    ADD = "add"
    START = "start"
    COMPLETE = "complete"
    REOPEN = "reopen"


CHECKLIST: Final = Lifecycle(
    "checklist item",
    {
        (NEW, ChecklistAction.ADD): ChecklistStatus.PENDING,
        (ChecklistStatus.PENDING, ChecklistAction.START): ChecklistStatus.IN_PROGRESS,
        (ChecklistStatus.PENDING, ChecklistAction.COMPLETE): ChecklistStatus.COMPLETED,
        (ChecklistStatus.IN_PROGRESS, ChecklistAction.COMPLETE): ChecklistStatus.COMPLETED,
        (ChecklistStatus.IN_PROGRESS, ChecklistAction.REOPEN): ChecklistStatus.PENDING,
        (ChecklistStatus.COMPLETED, ChecklistAction.START): ChecklistStatus.IN_PROGRESS,
        (ChecklistStatus.COMPLETED, ChecklistAction.REOPEN): ChecklistStatus.PENDING,
    },
    allowed=dict.fromkeys(ChecklistAction, ALL_ROLES),
)

# Our names of the states, and those of other tools (W11).
STATUS_NAMES: Final = {
    **{status.value: status for status in ChecklistStatus},
    "todo": ChecklistStatus.PENDING,
    "doing": ChecklistStatus.IN_PROGRESS,
    "in-progress": ChecklistStatus.IN_PROGRESS,
    "done": ChecklistStatus.COMPLETED,
    "complete": ChecklistStatus.COMPLETED,
}


def parse_status(name: str) -> ChecklistStatus | None:
    return STATUS_NAMES.get(name.strip().lower())


def action_between(before: ChecklistStatus, after: ChecklistStatus) -> ChecklistAction:
    return next(action for (source, action), target in CHECKLIST.table.items() if (source, target) == (before, after))
