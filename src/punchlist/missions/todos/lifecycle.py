"""The lifecycles of a mission's todo, and of a question that waits for a person."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.actors import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle


class TodoPriority(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class ChatChannel(StrEnum):
    """What a chat of a mission is for; in the conversation's metadata (M1)."""

    MISSION = "mission"
    PILLAR = "pillar"
    PILLAR_TODO = "pillar-todo"


class TodoStatus(StrEnum):
    BACKLOG = "backlog"
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class TodoAction(StrEnum):
    CREATE = "create"
    # A new todo that is only a candidate, by wish or since all slots are taken.
    SHELVE = "shelve"
    PROMOTE = "promote"
    DEMOTE = "demote"
    START = "start"
    COMPLETE = "complete"
    CANCEL = "cancel"
    # These leave it where it is.
    EXTEND = "extend"
    REPRIORITIZE = "reprioritize"


LEADS: Final = frozenset({Role.LEAD, Role.PERSON, Role.SYSTEM})
"""Who decides. A person is who the Lead works for, the system does what a mission's policies say."""
MEMBERS: Final = LEADS | {Role.OWNER}

OPEN: Final = frozenset({TodoStatus.BACKLOG, TodoStatus.PENDING, TodoStatus.IN_PROGRESS})
ACTIVE: Final = frozenset({TodoStatus.PENDING, TodoStatus.IN_PROGRESS})
"""Those that take one of the scarce slots."""

MISSION: Final = Lifecycle(
    "mission todo",
    {
        (NEW, TodoAction.CREATE): TodoStatus.PENDING,
        (NEW, TodoAction.SHELVE): TodoStatus.BACKLOG,
        (TodoStatus.BACKLOG, TodoAction.PROMOTE): TodoStatus.PENDING,
        (TodoStatus.PENDING, TodoAction.DEMOTE): TodoStatus.BACKLOG,
        (TodoStatus.PENDING, TodoAction.START): TodoStatus.IN_PROGRESS,
        (TodoStatus.IN_PROGRESS, TodoAction.COMPLETE): TodoStatus.COMPLETED,
        **{(status, TodoAction.CANCEL): TodoStatus.CANCELLED for status in TodoStatus if status in OPEN},
        **{
            (status, action): status
            for action in (TodoAction.EXTEND, TodoAction.REPRIORITIZE)
            for status in TodoStatus
            if status in OPEN
        },
    },
    allowed={
        TodoAction.CREATE: MEMBERS,
        TodoAction.SHELVE: MEMBERS,
        TodoAction.PROMOTE: LEADS,
        TodoAction.DEMOTE: LEADS,
        TodoAction.START: LEADS,
        # Whoever did the work does not call it done; nor does a policy.
        TodoAction.COMPLETE: frozenset({Role.LEAD, Role.PERSON}),
        TodoAction.CANCEL: MEMBERS,
        TodoAction.EXTEND: LEADS,
        TodoAction.REPRIORITIZE: LEADS,
    },
)


class EscalationStatus(StrEnum):
    OPEN = "open"
    # Somebody has seen it; there are no more reminders.
    ACKNOWLEDGED = "acknowledged"
    ANSWERED = "answered"


class EscalationAction(StrEnum):
    ASK = "ask"
    REMIND = "remind"
    ACKNOWLEDGE = "acknowledge"
    ANSWER = "answer"


ESCALATION: Final = Lifecycle(
    "escalation",
    {
        (NEW, EscalationAction.ASK): EscalationStatus.OPEN,
        (EscalationStatus.OPEN, EscalationAction.REMIND): EscalationStatus.OPEN,
        (EscalationStatus.OPEN, EscalationAction.ACKNOWLEDGE): EscalationStatus.ACKNOWLEDGED,
        (EscalationStatus.OPEN, EscalationAction.ANSWER): EscalationStatus.ANSWERED,
        (EscalationStatus.ACKNOWLEDGED, EscalationAction.ANSWER): EscalationStatus.ANSWERED,
    },
    allowed={
        EscalationAction.ASK: frozenset({Role.SYSTEM, Role.LEAD}),
        EscalationAction.REMIND: frozenset({Role.SYSTEM}),
        EscalationAction.ACKNOWLEDGE: frozenset({Role.PERSON}),
        # What the Lead does to the todo after a person has spoken answers it, too.
        EscalationAction.ANSWER: LEADS,
    },
)
