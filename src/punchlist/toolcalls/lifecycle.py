"""The lifecycle of a tool call, and of the question that some of them wait for."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.actors import Role
from punchlist.kernel.lifecycle import ANYBODY, NEW, Lifecycle


class Status(StrEnum):
    VALIDATING = "validating"
    SCHEDULED = "scheduled"
    AWAITING_APPROVAL = "awaiting_approval"
    EXECUTING = "executing"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


class Action(StrEnum):
    RECEIVE = "receive"
    ACCEPT = "accept"
    REJECT = "reject"
    ASK = "ask"
    APPROVE = "approve"
    DENY = "deny"
    EXECUTE = "execute"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"


_PERSON: Final = frozenset({Role.PERSON})
_SCHEDULER: Final = frozenset({Role.SYSTEM})

TOOL_CALL: Final = Lifecycle(
    "tool call",
    {
        (NEW, Action.RECEIVE): Status.VALIDATING,
        (Status.VALIDATING, Action.ACCEPT): Status.SCHEDULED,
        (Status.VALIDATING, Action.REJECT): Status.ERROR,
        (Status.SCHEDULED, Action.EXECUTE): Status.EXECUTING,
        (Status.SCHEDULED, Action.ASK): Status.AWAITING_APPROVAL,
        (Status.AWAITING_APPROVAL, Action.APPROVE): Status.SCHEDULED,
        (Status.AWAITING_APPROVAL, Action.DENY): Status.CANCELLED,
        (Status.EXECUTING, Action.SUCCEED): Status.SUCCESS,
        (Status.EXECUTING, Action.FAIL): Status.ERROR,
        (Status.VALIDATING, Action.CANCEL): Status.CANCELLED,
        (Status.SCHEDULED, Action.CANCEL): Status.CANCELLED,
        (Status.AWAITING_APPROVAL, Action.CANCEL): Status.CANCELLED,
        (Status.EXECUTING, Action.CANCEL): Status.CANCELLED,
    },
    allowed={
        **dict.fromkeys(Action, _SCHEDULER),
        Action.RECEIVE: ANYBODY,
        Action.CANCEL: ANYBODY,
        # An agent does not answer for the person; neither does the clock (S5).
        Action.APPROVE: _PERSON,
        Action.DENY: _PERSON,
    },
)

ENDED: Final = frozenset({Status.SUCCESS, Status.ERROR, Status.CANCELLED})


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    ESCALATED = "escalated"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class ApprovalAction(StrEnum):
    ASK = "ask"
    APPROVE = "approve"
    DENY = "deny"
    ESCALATE = "escalate"
    EXPIRE = "expire"
    WITHDRAW = "withdraw"


APPROVAL: Final = Lifecycle(
    "approval",
    {
        (NEW, ApprovalAction.ASK): ApprovalStatus.PENDING,
        (ApprovalStatus.PENDING, ApprovalAction.APPROVE): ApprovalStatus.APPROVED,
        (ApprovalStatus.PENDING, ApprovalAction.DENY): ApprovalStatus.DENIED,
        (ApprovalStatus.PENDING, ApprovalAction.ESCALATE): ApprovalStatus.ESCALATED,
        (ApprovalStatus.PENDING, ApprovalAction.EXPIRE): ApprovalStatus.EXPIRED,
        (ApprovalStatus.PENDING, ApprovalAction.WITHDRAW): ApprovalStatus.WITHDRAWN,
        (ApprovalStatus.ESCALATED, ApprovalAction.APPROVE): ApprovalStatus.APPROVED,
        (ApprovalStatus.ESCALATED, ApprovalAction.DENY): ApprovalStatus.DENIED,
        (ApprovalStatus.ESCALATED, ApprovalAction.WITHDRAW): ApprovalStatus.WITHDRAWN,
    },
    allowed={
        **dict.fromkeys(ApprovalAction, _SCHEDULER),
        ApprovalAction.APPROVE: _PERSON,
        ApprovalAction.DENY: _PERSON,
        # Whoever cancels the call takes its question back.
        ApprovalAction.WITHDRAW: ANYBODY,
    },
)

OPEN_APPROVALS: Final = frozenset({ApprovalStatus.PENDING, ApprovalStatus.ESCALATED})
