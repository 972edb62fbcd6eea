"""The lifecycle of a mission todo: statuses, actions, and which role may take which action (M4)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle


class TodoPriority(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class TodoStatus(StrEnum):
    BACKLOG = "backlog"
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class TodoAction(StrEnum):
    CREATE = "create"
    # Create in the backlog: on request, or because the active list is full.
    SHELVE = "shelve"
    PROMOTE = "promote"
    DEMOTE = "demote"
    START = "start"
    COMPLETE = "complete"
    CANCEL = "cancel"
    # These do not change the status.
    EXTEND = "extend"
    REPRIORITIZE = "reprioritize"
    # Continue work that no run does any more.
    RESUME = "resume"
    EDIT = "edit"
    # Of an ended todo: back into the default views.
    UNARCHIVE = "unarchive"


class PartAction(StrEnum):
    """Actions on what belongs to a todo besides its row. They are possible in every status."""

    LINK = "link"
    UNLINK = "unlink"
    COMMENT = "comment"
    ATTACH = "attach"
    DETACH = "detach"


LEADS: Final = frozenset({Role.LEAD, Role.PERSON, Role.SYSTEM})
"""Roles that decide: the Lead, the person it works for, and the system, which applies the mission's policies."""
MEMBERS: Final = LEADS | {Role.OWNER}

OPEN: Final = frozenset({TodoStatus.BACKLOG, TodoStatus.PENDING, TodoStatus.IN_PROGRESS})
ACTIVE: Final = frozenset({TodoStatus.PENDING, TodoStatus.IN_PROGRESS})
"""Statuses that count toward `activeTodoLimit`."""

MISSION: Final = Lifecycle(
    "mission todo",
    {
        (NEW, TodoAction.CREATE): TodoStatus.PENDING,
        (NEW, TodoAction.SHELVE): TodoStatus.BACKLOG,
        (TodoStatus.BACKLOG, TodoAction.PROMOTE): TodoStatus.PENDING,
        (TodoStatus.PENDING, TodoAction.DEMOTE): TodoStatus.BACKLOG,
        (TodoStatus.PENDING, TodoAction.START): TodoStatus.IN_PROGRESS,
        (TodoStatus.IN_PROGRESS, TodoAction.COMPLETE): TodoStatus.COMPLETED,
        (TodoStatus.IN_PROGRESS, TodoAction.RESUME): TodoStatus.IN_PROGRESS,
        **{(status, TodoAction.CANCEL): TodoStatus.CANCELLED for status in TodoStatus if status in OPEN},
        **{
            (status, action): status
            for action in (TodoAction.EXTEND, TodoAction.REPRIORITIZE, TodoAction.EDIT)
            for status in TodoStatus
            if status in OPEN
        },
        **{(status, TodoAction.UNARCHIVE): status for status in TodoStatus if status not in OPEN},
    },
    allowed={
        TodoAction.CREATE: MEMBERS,
        TodoAction.SHELVE: MEMBERS,
        TodoAction.PROMOTE: LEADS,
        TodoAction.DEMOTE: LEADS,
        TodoAction.START: LEADS,
        # The owner does the work, so it cannot complete it; neither can a policy.
        TodoAction.COMPLETE: frozenset({Role.LEAD, Role.PERSON}),
        TodoAction.CANCEL: MEMBERS,
        TodoAction.EXTEND: LEADS,
        TodoAction.REPRIORITIZE: LEADS,
        TodoAction.RESUME: LEADS,
        TodoAction.EDIT: LEADS,
        TodoAction.UNARCHIVE: LEADS,
    },
)
