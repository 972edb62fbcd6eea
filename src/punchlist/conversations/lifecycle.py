"""The lifecycles of a turn and of a queued message."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import ALL_ROLES, NEW, Lifecycle


class TurnStatus(StrEnum):
    OPEN = "open"
    ENDED = "ended"


class TurnAction(StrEnum):
    BEGIN = "begin_turn"
    TAKE = "take_turn"
    SUSPEND = "suspend_turn"
    INTERRUPT = "interrupt_turn"
    END = "end_turn"


TURN: Final = Lifecycle(
    "turn",
    {
        (NEW, TurnAction.BEGIN): TurnStatus.OPEN,
        # A suspended turn is open without an owner; a process takes it to resume the work.
        (TurnStatus.OPEN, TurnAction.TAKE): TurnStatus.OPEN,
        (TurnStatus.OPEN, TurnAction.SUSPEND): TurnStatus.OPEN,
        # A request to its owner, which then ends it.
        (TurnStatus.OPEN, TurnAction.INTERRUPT): TurnStatus.OPEN,
        (TurnStatus.OPEN, TurnAction.END): TurnStatus.ENDED,
    },
    allowed=dict.fromkeys(TurnAction, ALL_ROLES),
)


class QueueStatus(StrEnum):
    QUEUED = "queued"
    DELIVERED = "delivered"
    WITHDRAWN = "withdrawn"


class QueueAction(StrEnum):
    QUEUE = "queue"
    EDIT = "edit"
    DELIVER = "deliver"
    WITHDRAW = "withdraw"


_PEOPLE: Final = frozenset({Role.PERSON})

QUEUE: Final = Lifecycle(
    "queued message",
    {
        (NEW, QueueAction.QUEUE): QueueStatus.QUEUED,
        (QueueStatus.QUEUED, QueueAction.EDIT): QueueStatus.QUEUED,
        (QueueStatus.QUEUED, QueueAction.DELIVER): QueueStatus.DELIVERED,
        (QueueStatus.QUEUED, QueueAction.WITHDRAW): QueueStatus.WITHDRAWN,
    },
    allowed={
        QueueAction.QUEUE: _PEOPLE,
        QueueAction.EDIT: _PEOPLE,
        QueueAction.WITHDRAW: _PEOPLE,
        # The agent that answers the person. A worker answers only to its supervisor.
        QueueAction.DELIVER: frozenset({Role.SUPERVISOR, Role.LEAD, Role.OWNER, Role.SYSTEM}),
    },
)
