"""What needs a person: the inbox, and approvals of tool calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.kernel.camel_json import camel_json
from punchlist.surfaces.web.api.endpoint import PEOPLE, ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import Cursor, JsonObject, Limit, Reason
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.policy import RuleLifetime
from punchlist.views.inbox_model import InboxAction, RequestKind

OutcomeName = Literal[
    "proceed_once", "proceed_always_tool", "proceed_always_prefix", "proceed_always_server", "modify", "cancel"
]


class RequestShape(ResponseModel):
    number: int
    id: str
    kind: RequestKind
    subject: str
    question: str
    asked_at: str
    age_seconds: int
    answers: list[InboxAction]
    session: str | None = None
    mission: Annotated[str | None, Field(description="Its slug.")] = None
    pillar: Annotated[str | None, Field(description="Its slug.")] = None
    todo_id: str | None = None
    todo_title: str | None = None
    plan_todo_id: str | None = None
    run_id: str | None = None
    requester: str | None = None
    reason: Annotated[str | None, Field(description="Why a person is asked, or what happens without an answer.")] = None
    expires_at: str | None = None
    always: Annotated[dict[str, str] | None, Field(description="What an answer for always covers.")] = None


class InboxShape(ResponseModel):
    items: list[RequestShape]
    counts: dict[str, int]
    next_cursor: str | None = None


class ApprovalShape(ResponseModel):
    call_id: str
    status: str
    question: str
    why: str
    asked_at: str
    expires_at: str | None
    on_expiry: str
    session: str
    tool: str
    workspace: str
    outcomes: list[str]
    always: dict[str, str]


class ApprovalListShape(ResponseModel):
    items: list[ApprovalShape]


class ApprovalBody(RequestModel):
    outcome: OutcomeName
    reason: Annotated[Reason, Field(description="For cancel: the model reads it.")] = ""
    arguments: Annotated[JsonObject | None, Field(description="For modify: the tool's arguments to use instead.")] = (
        None
    )
    lifetime: Annotated[
        Literal["run", "session", "permanent"], Field(description="How long an answer for always holds.")
    ] = "session"


class AnsweredShape(ResponseModel):
    call_id: str
    status: str
    outcome: str | None


class InboxQuery(RequestModel):
    limit: Limit = 100
    cursor: Cursor = None


class InboxAnswerBody(RequestModel):
    """What a person says. Each action uses the fields that it needs, and no other may be given."""

    action: Annotated[InboxAction, Field(description="One of the `answers` of the request.")]
    text: Annotated[str, Field(max_length=20_000, description="For answer.")] = ""
    reason: Annotated[Reason, Field(description="For deny, extend, cancel, keep and retry.")] = ""
    deadline: Annotated[str | None, Field(max_length=100, description="For extend.")] = None
    always: Annotated[
        Literal["tool", "prefix", "server"] | None, Field(description="For approve: also approve later calls.")
    ] = None
    lifetime: Annotated[RuleLifetime, Field(description="For approve: how long always holds.")] = RuleLifetime.SESSION
    arguments: Annotated[JsonObject | None, Field(description="For modify: the tool's arguments to use instead.")] = (
        None
    )


class InboxAnswerShape(ResponseModel):
    number: int
    id: str
    kind: str
    action: str
    answer: str
    message: str


def _list(call: ApiCall) -> Any:
    return call.services.inbox.page(limit=call.query.limit, cursor=call.query.cursor).as_json()


def _show(call: ApiCall) -> Any:
    return call.services.inbox.find(call.path["number"]).as_json(call.context.now)


def _answer(call: ApiCall) -> Any:
    body = call.body
    answered = call.services.inbox.answer(
        call.scope(),
        call.path["number"],
        body.action,
        text=body.text,
        reason=body.reason,
        deadline=body.deadline,
        always=body.always,
        lifetime=body.lifetime,
        arguments=body.arguments,
    )
    return answered.as_json()


def _approvals(call: ApiCall) -> Any:
    return {"items": [call.services.approvals.as_json(each) for each in call.services.approvals.waiting()]}


def _approval(call: ApiCall) -> Any:
    return call.services.approvals.as_json(call.services.approvals.find(call.path["id"]))


def _answer_approval(call: ApiCall) -> Any:
    body = call.body
    answer = ApprovalAnswer(
        ApprovalOutcome(body.outcome),
        call.context.principal.actor,
        arguments=body.arguments,
        reason=body.reason,
        lifetime=RuleLifetime(body.lifetime),
    )
    approval = call.services.approvals.find(call.path["id"])
    return camel_json(call.services.approvals.answer(approval.call_id, answer), "call_id", "status", "outcome")


ENDPOINTS = [
    Endpoint("GET", "/inbox", "listInbox", "All that needs a person, oldest first.", _list, InboxShape, InboxQuery),
    Endpoint("GET", "/inbox/{number}", "getInboxItem", "One open request.", _show, RequestShape),
    Endpoint(
        "POST", "/inbox/{number}/answer", "answerInboxItem", "Answer a request.",
        _answer, InboxAnswerShape, body=InboxAnswerBody, roles=PEOPLE,
    ),
    Endpoint("GET", "/approvals", "listApprovals", "Tool calls that wait for approval.", _approvals, ApprovalListShape),
    Endpoint("GET", "/approvals/{id}", "getApproval", "An approval by the id of its call.", _approval, ApprovalShape),
    Endpoint(
        "POST", "/approvals/{id}/answer", "answerApproval", "Approve, deny or modify a tool call.",
        _answer_approval, AnsweredShape, body=ApprovalBody, roles=PEOPLE,
    ),
]  # fmt: skip
