"""Carry out what a person answers to a request of the inbox: one function for every surface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, InvalidInput, NotAllowed
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Role
from punchlist.kernel.processes import is_running
from punchlist.kernel.text import did_you_mean, excerpt, visible
from punchlist.missions.model import MissionScope
from punchlist.storage import event_log
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.policy import RuleLifetime
from punchlist.views import inbox_repository
from punchlist.views.inbox_model import InboxAction, InboxItem, RequestKind

if TYPE_CHECKING:
    from punchlist.app import Services


@dataclass(frozen=True, slots=True)
class InboxAnswer:
    """What a person says. Each action uses the fields that it needs, and no other may be set."""

    action: InboxAction
    text: str = ""
    """The answer to a question; a note on an event."""
    reason: str = ""
    """Why; the model reads it."""
    deadline: str | None = None
    """The new deadline, for `extend`."""
    always: str | None = None
    """For `approve`: also approve later calls of this tool, prefix or server."""
    lifetime: RuleLifetime = RuleLifetime.SESSION
    """How long `always` holds."""
    arguments: Mapping[str, Any] | None = None
    """The arguments to use instead, for `modify`."""


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    item: InboxItem
    action: InboxAction
    answer: str
    """As it was recorded."""
    message: str
    """What happens now, in a sentence for people."""

    def as_json(self) -> dict[str, Any]:
        return {
            **camel_json(self.item, "number", "id", "kind"),
            "action": self.action.value,
            "answer": self.answer,
            "message": self.message,
        }


_FIELDS: Final[Mapping[InboxAction, frozenset[str]]] = {
    InboxAction.APPROVE: frozenset({"always", "lifetime"}),
    InboxAction.DENY: frozenset({"reason"}),
    InboxAction.MODIFY: frozenset({"arguments"}),
    InboxAction.ANSWER: frozenset({"text"}),
    InboxAction.EXTEND: frozenset({"deadline", "reason"}),
    InboxAction.CANCEL: frozenset({"reason"}),
    InboxAction.KEEP: frozenset({"reason"}),
    InboxAction.RETRY: frozenset({"reason"}),
    InboxAction.ACKNOWLEDGE: frozenset(),
}
_EMPTY: Final = {"text": "", "reason": "", "deadline": None, "always": None, "arguments": None}


def parse_action(action: str) -> InboxAction:
    try:
        return InboxAction(action)
    except ValueError:
        known = [each.value for each in InboxAction]
        hint = did_you_mean(str(action), known)
        got = excerpt(str(action))
        raise InvalidInput(f"action: must be one of {', '.join(known)}, got {got!r}.{hint}") from None


def check_answer(scope: Scope, item: InboxItem, answer: InboxAnswer) -> None:
    """Raise unless this caller may give this answer to this request."""
    if scope.actor.role is not Role.PERSON:
        raise NotAllowed(f"{scope.actor.role.described} may not answer requests of the inbox. A person can.")
    if answer.action not in item.answers:
        raise InvalidInput(
            f"Request {item.number} is of the kind {item.kind}. It can be answered with: {', '.join(item.answers)}."
        )
    for name, empty in _EMPTY.items():
        if getattr(answer, name) != empty and name not in _FIELDS[answer.action]:
            raise InvalidInput(f"{name}: is not used by `{answer.action}`")
    if answer.always is not None and answer.always not in item.always:
        possible = ", ".join(item.always) or "none"
        raise InvalidInput(f"always: {excerpt(answer.always)!r} is not possible for this call. Possible: {possible}.")


def carry_out(services: Services, scope: Scope, item: InboxItem, answer: InboxAnswer) -> AnsweredRequest:
    """Carry out an answer that was checked."""
    recorded, message = _ANSWERS[item.kind](services, scope, item, answer)
    return AnsweredRequest(item, answer.action, recorded, message)


_Recorded = tuple[str, str]


def _approval(services: Services, scope: Scope, item: InboxItem, answer: InboxAnswer) -> _Recorded:
    approval = approval_answer(scope, answer)
    services.approvals.answer(item.id, approval)
    call = services.approvals.call(item.id)
    if is_running(call.owner) is False and item.run_id is None:
        return approval.outcome.value, "Answered. `punchlist run --resume` continues the work."
    return approval.outcome.value, "Answered. The agent continues."


def approval_answer(scope: Scope, answer: InboxAnswer) -> ApprovalAnswer:
    match answer.action:
        case InboxAction.DENY:
            return ApprovalAnswer(ApprovalOutcome.CANCEL, scope.actor, reason=answer.reason)
        case InboxAction.MODIFY:
            return ApprovalAnswer(ApprovalOutcome.MODIFY, scope.actor, arguments=answer.arguments)
    outcome = ApprovalOutcome(f"proceed_always_{answer.always}") if answer.always else ApprovalOutcome.PROCEED_ONCE
    return ApprovalAnswer(outcome, scope.actor, lifetime=answer.lifetime)


def _question(services: Services, scope: Scope, item: InboxItem, answer: InboxAnswer) -> _Recorded:
    blocked = services.plans.resolve(item.session or "", item.id, answer.text, scope.actor)
    given = blocked.condition.answer or ""
    return given, f"Answered request {item.number}: {visible(given)}.{_continues(item)}"


def _event(services: Services, scope: Scope, item: InboxItem, answer: InboxAnswer) -> _Recorded:
    services.plans.report_event(item.session or "", item.question, scope.actor, note=answer.text)
    return answer.text, f"Reported the event {visible(item.question)}.{_continues(item)}"


def _continues(item: InboxItem) -> str:
    return " A worker continues its run." if item.run_id else " `punchlist run --resume` continues the work."


def _escalation(services: Services, scope: Scope, item: InboxItem, answer: InboxAnswer) -> _Recorded:
    in_mission = MissionScope(scope.conversation_id, scope.actor)
    if answer.action is InboxAction.ACKNOWLEDGE:
        services.escalations.acknowledge(in_mission, item.id)
        return "acknowledged", f"Request {item.number} stays open, without reminders."
    escalation = services.escalations.answer(
        in_mission, item.id, answer.action.value, deadline=answer.deadline, reason=answer.reason
    )
    given = escalation.answer or ""
    return given, f"Answered request {item.number}: {visible(given).removesuffix('.')}."


def _failure(services: Services, scope: Scope, item: InboxItem, answer: InboxAnswer) -> _Recorded:
    if answer.action is InboxAction.ACKNOWLEDGE:
        return _acknowledge(services, scope, item, answer)
    run = services.runs.resume(scope, item.id, answer.reason)
    return run.status.value, f"Run {run.id[-8:]} is {run.status}. A worker executes it."


def _acknowledge(services: Services, scope: Scope, item: InboxItem, _: InboxAnswer) -> _Recorded:
    """Leave the request out of the inbox from now on."""
    with services.store.write() as tx:
        changes = {"acknowledged_by": str(scope.actor), "acknowledged_at": tx.now()}
        if not tx.run(inbox_repository.ACKNOWLEDGE, id=item.id, **changes):
            raise Conflict(f"Request {item.number} was acknowledged already.")
        change = scope.change(f"inbox:{item.number}", "acknowledge", item.id, "seen", {"kind": item.kind.value})
        event_log.append(tx, change)
    return "acknowledged", f"Request {item.number} is not listed any more."


_ANSWERS: Final = {
    RequestKind.APPROVAL: _approval,
    RequestKind.QUESTION: _question,
    RequestKind.EVENT: _event,
    RequestKind.TIME: _acknowledge,
    RequestKind.ESCALATION: _escalation,
    RequestKind.FAILURE: _failure,
    RequestKind.BUDGET: _acknowledge,
    RequestKind.WORKER: _acknowledge,
}
