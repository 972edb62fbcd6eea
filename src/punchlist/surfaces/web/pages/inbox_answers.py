"""Answers to requests of the inbox, from their forms."""

from __future__ import annotations

import json
from typing import Any

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt, json_type
from punchlist.surfaces.web.pages.page import PageRequest, Redirect
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.views.inbox import InboxItem


def answer(request: PageRequest) -> Redirect:
    """One transaction: the answer and its effects."""
    item = request.services.inbox.find(request.parameters["id"])
    given = request.posted("answer")
    match item.kind:
        case "approval":
            message = _answer_approval(request, item, given)
        case "question":
            text = request.posted("text")
            request.services.plans.resolve(item.session or "", item.id, text, request.actor)
            message = "Answered. The agent continues with it."
        case "escalation":
            message = _answer_escalation(request, item, given)
        case "failure":
            request.services.runs.resume(request.scope(), item.id)
            message = "Queued again. A worker executes it."
    return Redirect(request.posted("next") or "/", message)


def _answer_approval(request: PageRequest, item: InboxItem, given: str) -> str:
    chosen = request.posted("always") if given == ApprovalOutcome.PROCEED_ONCE else ""
    try:
        outcome = ApprovalOutcome(chosen or given)
    except ValueError:
        raise InvalidInput(f"answer: {excerpt(chosen or given)!r} is not an answer to an approval") from None
    arguments = _arguments(request.posted("arguments")) if outcome is ApprovalOutcome.MODIFY else None
    reason = request.posted("reason") if outcome is ApprovalOutcome.CANCEL else ""
    request.services.approvals.answer(
        item.id, ApprovalAnswer(outcome, request.actor, arguments=arguments, reason=reason)
    )
    return "Denied. The agent reads why." if outcome is ApprovalOutcome.CANCEL else "Approved."


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"arguments: are not JSON ({error})") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"arguments: must be an object, got {json_type(found)}")
    return found


def _answer_escalation(request: PageRequest, item: InboxItem, given: str) -> str:
    scope = request.scope()
    if given == "acknowledge":
        request.services.escalations.acknowledge(scope, item.id)
        return "It stays open, without reminders."
    deadline = (request.posted("deadline") or None) if given == "extend" else None
    request.services.escalations.answer(scope, item.id, given, deadline=deadline, reason=request.posted("reason"))
    return {"extend": f"Extended to {deadline}.", "cancel": "The todo was cancelled."}.get(given, "The work continues.")
