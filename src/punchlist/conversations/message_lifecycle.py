"""The lifecycle of a message that waits for its agent."""

from __future__ import annotations

from enum import StrEnum

from punchlist.kernel.actors import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle


class QueueStatus(StrEnum):
    QUEUED = "queued"
    DELIVERED = "delivered"
    WITHDRAWN = "withdrawn"


class QueueAction(StrEnum):
    QUEUE = "queue"
    EDIT = "edit"
    DELIVER = "deliver"
    WITHDRAW = "withdraw"


_PEOPLE = frozenset({Role.PERSON})

QUEUE = Lifecycle(
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
        # Whoever begins a turn for the person: the loop. A worker answers to its supervisor alone.
        QueueAction.DELIVER: frozenset({Role.SUPERVISOR, Role.LEAD, Role.OWNER, Role.SYSTEM}),
    },
)
