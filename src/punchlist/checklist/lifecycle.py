"""Lifecycle of a checklist item.

The agent sends states, not actions, and may move an item backwards. Every pair of states is therefore
connected by exactly one action, which `action_between` returns.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.lifecycle import ACCEPTERS, ALL_ROLES, NEW, Lifecycle


class ChecklistStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    # It will not be done, for the reason that is stored with it.
    CANCELLED = "cancelled"
    # The agent left it out of a replacement although it was unfinished: it is open until sent again or cancelled.
    DROPPED = "dropped"


class ChecklistAction(StrEnum):
    ADD = "add"
    START = "start"
    COMPLETE = "complete"
    REOPEN = "reopen"
    CANCEL = "cancel"
    DROP = "drop"
    # A check was run, or evidence was found (V1, V2).
    CHECK = "check"
    ACCEPT = "accept"


OPEN: Final = frozenset({ChecklistStatus.PENDING, ChecklistStatus.IN_PROGRESS, ChecklistStatus.DROPPED})
SENDABLE: Final = tuple(status for status in ChecklistStatus if status is not ChecklistStatus.DROPPED)
"""The states that an agent can send."""

_LEADS_TO: Final = {
    ChecklistAction.START: ChecklistStatus.IN_PROGRESS,
    ChecklistAction.COMPLETE: ChecklistStatus.COMPLETED,
    ChecklistAction.REOPEN: ChecklistStatus.PENDING,
    ChecklistAction.CANCEL: ChecklistStatus.CANCELLED,
    ChecklistAction.DROP: ChecklistStatus.DROPPED,
}
_TABLE: Final[dict[tuple[ChecklistStatus | str, ChecklistAction], ChecklistStatus]] = {
    (NEW, ChecklistAction.ADD): ChecklistStatus.PENDING,
    **{
        (source, action): target
        for source in ChecklistStatus
        for action, target in _LEADS_TO.items()
        if source is not target
    },
    **{
        (status, ChecklistAction.CHECK): status for status in ChecklistStatus if status is not ChecklistStatus.CANCELLED
    },
    (ChecklistStatus.COMPLETED, ChecklistAction.ACCEPT): ChecklistStatus.COMPLETED,
}
CHECKLIST: Final = Lifecycle(
    "checklist item",
    _TABLE,
    allowed={**dict.fromkeys(ChecklistAction, ALL_ROLES), ChecklistAction.ACCEPT: ACCEPTERS},
)

# Our names of the states, and those of other tools (W11).
STATUS_NAMES: Final = {
    **{status.value: status for status in SENDABLE},
    "todo": ChecklistStatus.PENDING,
    "doing": ChecklistStatus.IN_PROGRESS,
    "in-progress": ChecklistStatus.IN_PROGRESS,
    "done": ChecklistStatus.COMPLETED,
    "complete": ChecklistStatus.COMPLETED,
    "canceled": ChecklistStatus.CANCELLED,
}


def parse_status(name: str) -> ChecklistStatus | None:
    return STATUS_NAMES.get(name.strip().lower())


def action_between(before: ChecklistStatus, after: ChecklistStatus) -> ChecklistAction:
    return next(action for (source, action), target in CHECKLIST.table.items() if (source, target) == (before, after))
