"""A tool call: one type per state, each with the fields of that state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, NamedTuple

from punchlist.kernel.events import Actor
from punchlist.kernel.ids import new_id
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalQuestion
from punchlist.toolcalls.lifecycle import CallAction, CallStatus
from punchlist.toolcalls.policy import PolicyDecision
from punchlist.toolcalls.tool import NO_RESOURCES, AgentTool, Arguments, Resources


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A requested call. `resources` add to those of the tool; `timeout` replaces its time limit."""

    tool: str
    arguments: Arguments = field(default_factory=dict)
    call_id: str = field(default_factory=new_id)
    depends_on: tuple[str, ...] = ()
    priority: int = 0
    resources: Resources = NO_RESOURCES
    timeout: float | None = None
    by_loop: bool = False
    """Made by the agent loop, not by the model, such as a check: its repetitions are no loop."""


class CallError(NamedTuple):
    """Why a call failed; the message tells the model what to do."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ValidatingToolCall:
    status: ClassVar[Literal[CallStatus.VALIDATING]] = CallStatus.VALIDATING
    request: ToolCallRequest


@dataclass(frozen=True, slots=True)
class ScheduledToolCall:
    status: ClassVar[Literal[CallStatus.SCHEDULED]] = CallStatus.SCHEDULED
    request: ToolCallRequest
    tool: AgentTool
    permission: PolicyDecision | None
    """Why the call may run; None before that is decided."""


@dataclass(frozen=True, slots=True)
class WaitingToolCall:
    status: ClassVar[Literal[CallStatus.AWAITING_APPROVAL]] = CallStatus.AWAITING_APPROVAL
    request: ToolCallRequest
    tool: AgentTool
    question: ApprovalQuestion


@dataclass(frozen=True, slots=True)
class ExecutingToolCall:
    status: ClassVar[Literal[CallStatus.EXECUTING]] = CallStatus.EXECUTING
    request: ToolCallRequest
    tool: AgentTool
    started_at: datetime


@dataclass(frozen=True, slots=True)
class SuccessfulToolCall:
    status: ClassVar[Literal[CallStatus.SUCCESS]] = CallStatus.SUCCESS
    request: ToolCallRequest
    tool: AgentTool
    result: ToolResult
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class ErroredToolCall:
    status: ClassVar[Literal[CallStatus.ERROR]] = CallStatus.ERROR
    request: ToolCallRequest
    error: CallError
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class CancelledToolCall:
    status: ClassVar[Literal[CallStatus.CANCELLED]] = CallStatus.CANCELLED
    request: ToolCallRequest
    reason: str
    ended_at: datetime
    not_started: bool = False
    """The calls before it are unfinished: a program that resumes them runs this one after them."""


ToolCall = (
    ValidatingToolCall
    | ScheduledToolCall
    | WaitingToolCall
    | ExecutingToolCall
    | SuccessfulToolCall
    | ErroredToolCall
    | CancelledToolCall
)
CompletedToolCall = SuccessfulToolCall | ErroredToolCall | CancelledToolCall


class Transition(NamedTuple):
    """One step of one call, as listeners receive it and the journal stores it."""

    at: datetime
    action: CallAction
    from_status: CallStatus | None
    call: ToolCall
    actor: Actor
    reason: str
    answer: ApprovalAnswer | None = None
    """The person's answer that caused the step."""
