"""Lifecycles of plan todos and of the conditions that block them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import ACCEPTERS, NEW, Lifecycle


class PlanStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class PlanAction(StrEnum):
    CREATE = "create"
    START = "start"
    COMPLETE = "complete"
    CANCEL = "cancel"
    WAIT = "wait"
    # The work failed and is retried once (C8).
    RETRY = "retry"
    # Its worker has reported; it is pending with the report until it is completed (T12).
    REPORT = "report"
    EDIT = "edit"
    MOVE = "move"
    # Its check was run and did not pass: the result is kept with the open todo (V2).
    CHECK = "check"
    # Its check failed after it was completed (V2), or a person takes back that it was started or ended.
    REOPEN = "reopen"
    ACCEPT = "accept"


PLANNERS: Final = frozenset({Role.SUPERVISOR, Role.LEAD, Role.OWNER, Role.PERSON, Role.SYSTEM})

PLAN: Final = Lifecycle(
    "plan todo",
    {
        (NEW, PlanAction.CREATE): PlanStatus.PENDING,
        (PlanStatus.PENDING, PlanAction.START): PlanStatus.IN_PROGRESS,
        (PlanStatus.PENDING, PlanAction.COMPLETE): PlanStatus.COMPLETED,
        (PlanStatus.IN_PROGRESS, PlanAction.COMPLETE): PlanStatus.COMPLETED,
        (PlanStatus.PENDING, PlanAction.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.IN_PROGRESS, PlanAction.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.PENDING, PlanAction.WAIT): PlanStatus.PENDING,
        (PlanStatus.IN_PROGRESS, PlanAction.WAIT): PlanStatus.PENDING,
        (PlanStatus.PENDING, PlanAction.RETRY): PlanStatus.PENDING,
        (PlanStatus.IN_PROGRESS, PlanAction.RETRY): PlanStatus.PENDING,
        (PlanStatus.PENDING, PlanAction.REPORT): PlanStatus.PENDING,
        (PlanStatus.IN_PROGRESS, PlanAction.REPORT): PlanStatus.PENDING,
        (PlanStatus.PENDING, PlanAction.EDIT): PlanStatus.PENDING,
        (PlanStatus.IN_PROGRESS, PlanAction.EDIT): PlanStatus.IN_PROGRESS,
        (PlanStatus.PENDING, PlanAction.MOVE): PlanStatus.PENDING,
        (PlanStatus.IN_PROGRESS, PlanAction.MOVE): PlanStatus.IN_PROGRESS,
        (PlanStatus.PENDING, PlanAction.CHECK): PlanStatus.PENDING,
        (PlanStatus.IN_PROGRESS, PlanAction.CHECK): PlanStatus.IN_PROGRESS,
        (PlanStatus.COMPLETED, PlanAction.CHECK): PlanStatus.COMPLETED,
        (PlanStatus.COMPLETED, PlanAction.REOPEN): PlanStatus.PENDING,
        (PlanStatus.CANCELLED, PlanAction.REOPEN): PlanStatus.PENDING,
        (PlanStatus.IN_PROGRESS, PlanAction.REOPEN): PlanStatus.PENDING,
        (PlanStatus.COMPLETED, PlanAction.ACCEPT): PlanStatus.COMPLETED,
    },
    # Workers have no access to the plan; the agent that delegated updates it (T13).
    allowed={
        **dict.fromkeys(PlanAction, PLANNERS),
        PlanAction.ACCEPT: ACCEPTERS,
        PlanAction.REOPEN: frozenset({Role.PERSON, Role.SYSTEM}),
    },
)

OPEN: Final = frozenset({PlanStatus.PENDING, PlanStatus.IN_PROGRESS})


class ConditionKind(StrEnum):
    """What a todo can wait for."""

    PERSON = "person"
    TIME = "time"
    EVENT = "event"
    TODO = "todo"
    # A declared resource blocks a todo only while another todo uses it.
    RESOURCE = "resource"


class ConditionStatus(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


class ConditionAction(StrEnum):
    SET = "set"
    RESOLVE = "resolve"


CONDITION: Final = Lifecycle(
    "condition",
    {
        (NEW, ConditionAction.SET): ConditionStatus.OPEN,
        (ConditionStatus.OPEN, ConditionAction.RESOLVE): ConditionStatus.RESOLVED,
    },
    # A model must not answer its own question.
    allowed={ConditionAction.SET: PLANNERS, ConditionAction.RESOLVE: frozenset({Role.PERSON, Role.SYSTEM})},
)

# Kinds that are resolved by a report. Times and todos are evaluated on every read instead.
RESOLVABLE: Final = frozenset({ConditionKind.PERSON, ConditionKind.EVENT})
