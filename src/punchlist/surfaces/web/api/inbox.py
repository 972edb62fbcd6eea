"""What needs a person: the inbox, and approvals of tool calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp
from punchlist.surfaces.web.api.endpoint import PEOPLE, ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import JsonObject, Reason
from punchlist.toolcalls.always import describe
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome, always_rule
from punchlist.toolcalls.policy import RuleLifetime
from punchlist.toolcalls.stored_call import StoredApproval
from punchlist.views.inbox import InboxItem

OutcomeName = Literal[
    "proceed_once", "proceed_always_tool", "proceed_always_prefix", "proceed_always_server", "modify", "cancel"
]


class RequestShape(ResponseModel):
    number: int
    id: str
    kind: str
    subject: str
    question: str
    asked_at: str
    age_seconds: int
    answers: list[str]


class InboxShape(ResponseModel):
    items: list[RequestShape]
    counts: dict[str, int]


class ApprovalShape(ResponseModel):
    call_id: str
    status: str
    question: str
    why: str
    asked_at: str
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
    arguments: Annotated[JsonObject | None, Field(description="For modify: the arguments to use instead.")] = None
    lifetime: Annotated[
        Literal["run", "session", "permanent"], Field(description="How long an answer for always holds.")
    ] = "session"


class AnsweredShape(ResponseModel):
    call_id: str
    status: str
    outcome: str | None


class InboxAnswerBody(RequestModel):
    """An answer to a request; which answers are possible depends on its kind."""

    answer: Annotated[
        Literal["approve", "deny", "modify", "answer", "extend", "cancel", "keep", "acknowledge", "retry"],
        Field(description="One of the answers of the request."),
    ]
    text: Annotated[str, Field(max_length=20_000, description="The answer to a question, or the reason.")] = ""
    deadline: Annotated[str | None, Field(max_length=100, description="For extend.")] = None
    arguments: Annotated[JsonObject | None, Field(description="For modify.")] = None


class InboxAnswerShape(ResponseModel):
    number: int
    id: str
    kind: str
    result: str


_POSSIBLE = {
    "approval": ("approve", "deny", "modify"),
    "question": ("answer",),
    "escalation": ("extend", "cancel", "keep", "acknowledge"),
    "failure": ("retry",),
}
_OUTCOMES = {
    "approve": ApprovalOutcome.PROCEED_ONCE,
    "deny": ApprovalOutcome.CANCEL,
    "modify": ApprovalOutcome.MODIFY,
}


def request_json(call: ApiCall, item: InboxItem) -> dict[str, Any]:
    optional = camel_json(item, "session", "mission", "todo_id", "reason", "expires_at", "run_id", "requester")
    age = (call.context.now - parse_timestamp(item.asked_at)).total_seconds()
    return {
        **camel_json(item, "number", "id", "kind", "subject", "question", "asked_at"),
        "ageSeconds": max(0, int(age)),
        "answers": list(_POSSIBLE[item.kind]),
        **{key: value for key, value in optional.items() if value is not None},
    }


def _list(call: ApiCall) -> Any:
    items = call.services.inbox.list()
    kinds = [item.kind for item in items]
    return {
        "items": [request_json(call, item) for item in items],
        "counts": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
    }


def _show(call: ApiCall) -> Any:
    return request_json(call, call.services.inbox.find(call.path["number"]))


def _answer(call: ApiCall) -> Any:
    services, body = call.services, call.body
    item = services.inbox.find(call.path["number"])
    if body.answer not in _POSSIBLE[item.kind]:
        raise InvalidInput(f"answer: a request of the kind {item.kind} takes {', '.join(_POSSIBLE[item.kind])}")
    if (body.deadline is not None) != (body.answer == "extend"):
        raise InvalidInput("deadline: is for extend, and required there")
    if (body.arguments is not None) != (body.answer == "modify"):
        raise InvalidInput("arguments: is for modify, and required there")
    match item.kind:
        case "approval":
            answer = ApprovalAnswer(
                _OUTCOMES[body.answer], call.context.principal.actor, arguments=body.arguments, reason=body.text
            )
            result = services.approvals.answer(item.id, answer).status
        case "question":
            given = services.plans.resolve(item.session or "", item.id, body.text, call.context.principal.actor)
            result = given.condition.answer or ""
        case "escalation" if body.answer == "acknowledge":
            result = services.escalations.acknowledge(call.scope(), item.id).status
        case "escalation":
            answered = services.escalations.answer(
                call.scope(), item.id, body.answer, deadline=body.deadline, reason=body.text
            )
            result = answered.answer or ""
        case "failure":
            result = services.runs.resume(call.scope(item.session), item.id, body.text).status.value
    return {**camel_json(item, "number", "id", "kind"), "result": result}


def approval_json(call: ApiCall, approval: StoredApproval) -> dict[str, Any]:
    stored = call.services.approvals.call(approval.call_id)
    question = approval.as_question
    rules = {outcome: always_rule(outcome, question, stored.tool) for outcome in question.outcomes}
    return {
        **camel_json(approval, "call_id", "status", "question", "why", "asked_at", "expires_at", "on_expiry"),
        "session": approval.conversation_id,
        "tool": stored.tool,
        "workspace": stored.workspace,
        "outcomes": [outcome.value for outcome in question.outcomes],
        "always": {outcome.removeprefix("proceed_always_"): describe(rule) for outcome, rule in rules.items() if rule},
    }


def _approvals(call: ApiCall) -> Any:
    return {"items": [approval_json(call, each) for each in call.services.approvals.waiting()]}


def _approval(call: ApiCall) -> Any:
    return approval_json(call, call.services.approvals.find(call.path["id"]))


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
    Endpoint("GET", "/inbox", "listInbox", "Everything that needs a person, oldest first.", _list, InboxShape),
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
