"""The lifecycles of a tool call and of an approval."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import ALL_ROLES, NEW, Lifecycle


class CallStatus(StrEnum):
    VALIDATING = "validating"
    SCHEDULED = "scheduled"
    AWAITING_APPROVAL = "awaiting_approval"
    EXECUTING = "executing"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


class CallAction(StrEnum):
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
        (NEW, CallAction.RECEIVE): CallStatus.VALIDATING,
        (CallStatus.VALIDATING, CallAction.ACCEPT): CallStatus.SCHEDULED,
        (CallStatus.VALIDATING, CallAction.REJECT): CallStatus.ERROR,
        (CallStatus.SCHEDULED, CallAction.EXECUTE): CallStatus.EXECUTING,
        (CallStatus.SCHEDULED, CallAction.ASK): CallStatus.AWAITING_APPROVAL,
        (CallStatus.AWAITING_APPROVAL, CallAction.APPROVE): CallStatus.SCHEDULED,
        (CallStatus.AWAITING_APPROVAL, CallAction.DENY): CallStatus.CANCELLED,
        (CallStatus.EXECUTING, CallAction.SUCCEED): CallStatus.SUCCESS,
        (CallStatus.EXECUTING, CallAction.FAIL): CallStatus.ERROR,
        (CallStatus.VALIDATING, CallAction.CANCEL): CallStatus.CANCELLED,
        (CallStatus.SCHEDULED, CallAction.CANCEL): CallStatus.CANCELLED,
        (CallStatus.AWAITING_APPROVAL, CallAction.CANCEL): CallStatus.CANCELLED,
        (CallStatus.EXECUTING, CallAction.CANCEL): CallStatus.CANCELLED,
    },
    allowed={
        **dict.fromkeys(CallAction, _SCHEDULER),
        CallAction.RECEIVE: ALL_ROLES,
        CallAction.CANCEL: ALL_ROLES,
        # Only a person approves or denies; an agent or a timer does not (S5).
        CallAction.APPROVE: _PERSON,
        CallAction.DENY: _PERSON,
    },
)

ENDED: Final = frozenset({CallStatus.SUCCESS, CallStatus.ERROR, CallStatus.CANCELLED})


class UnfinishedCode(StrEnum):
    """Error codes of ended calls that a resumed turn continues or runs."""

    INTERRUPTED = "interrupted"
    """Its process ended while it ran."""
    SUSPENDED = "suspended"
    """It cannot finish now, such as a delegation whose worker waits for a person."""
    NOT_STARTED = "not_started"
    """It did not run, because its process ended or calls before it are unfinished."""


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
    REOPEN = "reopen"


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
        # The answer was not signed by this user, or the call would do something else now.
        (ApprovalStatus.APPROVED, ApprovalAction.REOPEN): ApprovalStatus.PENDING,
        (ApprovalStatus.DENIED, ApprovalAction.REOPEN): ApprovalStatus.PENDING,
    },
    allowed={
        **dict.fromkeys(ApprovalAction, _SCHEDULER),
        ApprovalAction.APPROVE: _PERSON,
        ApprovalAction.DENY: _PERSON,
        # Every role that may cancel a call may withdraw its question.
        ApprovalAction.WITHDRAW: ALL_ROLES,
    },
)

OPEN_APPROVALS: Final = frozenset({ApprovalStatus.PENDING, ApprovalStatus.ESCALATED})
