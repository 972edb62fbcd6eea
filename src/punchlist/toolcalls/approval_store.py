"""Approvals: asked in one process, answered in any, and stored in between (S5).

Every change of an approval writes its row and an event of the approval's own stream. The answer is
written here; the process that owns the call reads it (`ToolCallService.answers`) and continues.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from punchlist.conversations import repository as conversation_repository
from punchlist.errors import Conflict, InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import SYSTEM, Actor, Change
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.secrets import Redactor
from punchlist.kernel.text import excerpt, visible
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.storage.transitions import transition
from punchlist.toolcalls import approvals, repository, signatures
from punchlist.toolcalls.always import always_coverage
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalQuestion, OnExpiry
from punchlist.toolcalls.lifecycle import APPROVAL, OPEN_APPROVALS, ApprovalAction, ApprovalStatus
from punchlist.toolcalls.signatures import Sign
from punchlist.toolcalls.stored_call import (
    StoredApproval,
    StoredCall,
    event_reason,
    new_approval,
    stored_outcome,
    to_storable_text,
)

ESCALATION = "escalation"
"""The kind of message that a conversation receives when a question is not answered in time."""
NOT_SIGNED = "The answer was not given by you for this call, so the question is asked again."
_ANSWER_COLUMNS = ("answered_by", "answered_at", "outcome", "reason", "answer_signature")


def approval_stream(call_id: str) -> str:
    return f"approval:{call_id}"


# --- inside the caller's transaction, which has locked the conversation -------------------------------------


def ask(
    tx: Transaction, call: StoredCall, question: ApprovalQuestion, redactor: Redactor, sign: Sign | None = None
) -> None:
    """Ask about a call, for the first time or again."""
    approval = new_approval(call, question, redactor)
    approval = approval._replace(question_signature=signatures.sign_question(sign, approval, call))
    found = repository.find_approval(tx, call.id)
    if found is not None:
        changes = {name: getattr(approval, name) for name in repository.QUESTION_COLUMNS}
        _reopen(tx, found, approval.why, changes)
        return
    APPROVAL.advance(NEW, ApprovalAction.ASK, SYSTEM.role)
    repository.insert_approval(tx, approval)
    columns = {name: value for name, value in approval._asdict().items() if value is not None}
    event_log.append(tx, _change(None, approval, ApprovalAction.ASK, SYSTEM, approval.why, columns))


def is_answered_differently(tx: Transaction, call_id: str, answer: ApprovalAnswer) -> bool:
    """Whether the question is closed with another answer than this one."""
    found = repository.find_approval(tx, call_id)
    if found is None or found.status in OPEN_APPROVALS:
        return False
    return found.answer is None or (found.answer.outcome, found.answer.actor) != (answer.outcome, answer.actor)


def record_answer(
    tx: Transaction, call: StoredCall, answer: ApprovalAnswer, redactor: Redactor, sign: Sign | None = None
) -> None:
    """Write a person's answer, unless the process that received it has written it already."""
    found = _get(tx, call.id)
    if found.answer is not None:
        return
    changes: dict[str, Any] = {
        "outcome": stored_outcome(answer),
        "reason": to_storable_text(redactor.text(answer.reason)),
        "arguments": None if answer.arguments is None else json.dumps(answer.arguments, sort_keys=True),
        "answered_by": str(answer.actor),
        "answered_at": tx.now(),
    }
    changes["answer_signature"] = signatures.sign_answer(sign, found._replace(**changes), call)
    shown = None if answer.arguments is None else json.dumps(redactor.value(dict(answer.arguments)), sort_keys=True)
    action = ApprovalAction.APPROVE if answer.proceeds else ApprovalAction.DENY
    _advance(tx, found, action, answer.actor, changes["reason"] or "", changes, {"to": shown})


def reopen(tx: Transaction, approval: StoredApproval) -> None:
    """Ask again: the answer was not given by this user for this call."""
    _reopen(tx, approval, NOT_SIGNED, {})


def _reopen(tx: Transaction, approval: StoredApproval, why: str, question: dict[str, Any]) -> None:
    changes = {**dict.fromkeys((*_ANSWER_COLUMNS, "arguments")), "reason": "", **question}
    _advance(tx, approval, ApprovalAction.REOPEN, SYSTEM, why, changes, {name: changes[name] for name in question})


def withdraw(tx: Transaction, call_id: str, actor: Actor, reason: str) -> None:
    """Close the question of a call that has ended otherwise."""
    found = repository.find_approval(tx, call_id)
    if found is not None and found.answer is None and not APPROVAL.is_final(ApprovalStatus(found.status)):
        expired = reason == approvals.EXPIRED_MESSAGE and actor.role is SYSTEM.role
        action = ApprovalAction.EXPIRE if expired else ApprovalAction.WITHDRAW
        reason = to_storable_text(reason)
        _advance(tx, found, action, actor, reason, {"reason": reason})


def escalate(tx: Transaction, call_id: str) -> None:
    """Ask in the conversation, once."""
    found = repository.find_approval(tx, call_id)
    if found is None or found.status != ApprovalStatus.PENDING:
        return
    text = f"No answer since {found.asked_at}. May this call run?\n\n{found.question}\n\nCall {call_id}."
    message = conversation_repository.add_message(tx, found.conversation_id, "system", text, kind=ESCALATION)
    data = conversation_repository.fingerprint(message)
    _advance(tx, found, ApprovalAction.ESCALATE, SYSTEM, "no answer in time", {}, data)


def _advance(
    tx: Transaction,
    approval: StoredApproval,
    action: ApprovalAction,
    actor: Actor,
    reason: str,
    changes: dict[str, Any],
    data: dict[str, Any] | None = None,
) -> None:
    transition(
        tx,
        APPROVAL,
        action,
        actor.role,
        lock=lambda _: approval,
        update=repository.update_approval,
        event=lambda before, after, _: _change(
            before.status,
            after,
            action,
            actor,
            reason,
            {**({name: getattr(after, name) for name in _ANSWER_COLUMNS} if changes else {}), **(data or {})},
        ),
        changes=changes,
    )


def _get(tx: Transaction, call_id: str) -> StoredApproval:
    found = repository.find_approval(tx, call_id)
    if found is None:
        raise NotFound(
            f"Call {excerpt(call_id)!r} does not wait for approval. `punchlist approvals` lists the calls that do."
        )
    return found


def _change(
    from_status: str | None,
    approval: StoredApproval,
    action: ApprovalAction,
    actor: Actor,
    reason: str,
    data: dict[str, Any],
) -> Change:
    return Change(
        stream=approval_stream(approval.call_id),
        conversation_id=approval.conversation_id,
        actor=str(actor),
        action=action,
        subject=approval.call_id,
        from_status=from_status,
        to_status=approval.status,
        reason=event_reason(reason),
        data=data,
    )


# --- the service ---------------------------------------------------------------------------------------------


class Approvals:
    """Lists the calls that wait for a person, and records answers."""

    def __init__(self, store: Store, redactor: Redactor | None = None, sign: Sign | None = None) -> None:
        """`sign` signs answers with the user's key; without it, questions and answers are not verified."""
        self._store = store
        self._redactor = redactor or Redactor()
        self._sign = sign

    def waiting(self, conversation_id: str | None = None) -> list[StoredApproval]:
        """Open approvals of one conversation or of all, oldest first."""
        self.expire_overdue()
        with self._store.read() as tx:
            return [self._verified(tx, approval) for approval in repository.open_approvals(tx, conversation_id)]

    def _verified(self, tx: Transaction, approval: StoredApproval) -> StoredApproval:
        return self.verified(approval, repository.find_call(tx, approval.call_id))

    def verified(self, approval: StoredApproval, call: StoredCall | None) -> StoredApproval:
        """The approval with a question that shows the call that will run."""
        if call is None or signatures.is_genuine_question(self._sign, approval, call):
            return approval
        return approval._replace(question=signatures.describe_call(call), prefixes="[]", server=None)

    def find(self, id: str) -> StoredApproval:
        """The approval of a call id, or of the end of one that only one approval has. Open ones come first."""
        with self._store.read() as tx:
            found = repository.find_approval(tx, id)
            if found is not None:
                return self._verified(tx, found)
            matches = [each for each in repository.open_approvals(tx, None) if id and each.call_id.endswith(id)]
            # One that is closed says why when it is answered.
            matches = matches or (repository.newest_approvals(tx, ending=id, most=2) if id else [])
        if len(matches) > 1:
            raise InvalidInput(f"{excerpt(id)!r} is the end of {len(matches)} ids. Give more characters.")
        if not matches:
            raise NotFound(
                f"There is no approval {excerpt(id)!r}. `punchlist approvals` lists those that wait for an answer."
            )
        return self.find(matches[0].call_id)

    def why_closed(self, call_id: str) -> str | None:
        """Why an approval can no longer be answered; None if it can, or if there is none."""
        with self._store.read() as tx:
            found = repository.find_approval(tx, call_id)
            return None if found is None else _why_closed(tx, found)

    def call(self, call_id: str) -> StoredCall:
        with self._store.read() as tx:
            found = repository.find_call(tx, call_id)
        if found is None:
            raise NotFound(f"There is no call {excerpt(call_id)!r}.")
        return found

    def editor(self, call_id: str) -> str:
        """The name of the person who has edited the arguments of a call; empty if none has."""
        with self._store.read() as tx:
            found = repository.find_approval(tx, call_id)
        if found is None or found.outcome != approvals.ApprovalOutcome.MODIFY:
            return ""
        return (found.answered_by or "").partition(":")[2]

    def edited_calls(self, conversation_id: str) -> dict[str, tuple[str, dict[str, Any]]]:
        """Who has edited each call that ran with other arguments than the agent's, and the arguments that ran."""
        with self._store.read() as tx:
            found = repository.edited_calls(tx, conversation_id=conversation_id)
        return {id: (by.partition(":")[2], json.loads(arguments)) for id, by, arguments in found}

    def run_of(self, call_id: str) -> str | None:
        """The run that the call belongs to: the worker that executes the run continues with the call."""
        with self._store.read() as tx:
            return repository.run_of_call(tx, call_id)

    def as_json(self, approval: StoredApproval) -> dict[str, Any]:
        """The call, the question, the answers that are possible, and what "always" would cover."""
        call, question = self.call(approval.call_id), approval.as_question
        return {
            **camel_json(approval, "call_id", "status", "question", "why", "asked_at", "expires_at", "on_expiry"),
            "session": approval.conversation_id,
            "tool": call.tool,
            "workspace": call.workspace,
            "outcomes": [outcome.value for outcome in question.outcomes],
            "always": always_coverage(question, call.tool),
        }

    def answer(self, call_id: str, answer: ApprovalAnswer) -> StoredApproval:
        """Record an answer; the process that owns the call continues with it."""
        self.expire_overdue()

        def write(tx: Transaction) -> None:
            found = _get(tx, call_id)
            if (closed := _why_closed(tx, found)) is not None:
                raise Conflict(closed)
            approvals.validate_answer(found.as_question, answer)
            call = repository.find_call(tx, call_id)
            assert call is not None
            record_answer(tx, call, answer, self._redactor, self._sign)

        return self._locked(call_id, write)

    def expire_overdue(self) -> None:
        """Deny or escalate every question whose time is up."""
        now = self._store.clock()
        with self._store.read() as tx:
            due = [approval for approval in repository.expiring(tx, timestamp(now)) if approval.is_due(now)]
        for approval in due:
            id = approval.call_id
            if approval.on_expiry == OnExpiry.DENY:
                self._locked(id, partial(withdraw, call_id=id, actor=SYSTEM, reason=approvals.EXPIRED_MESSAGE))
            else:
                self._locked(id, partial(escalate, call_id=id))

    def _locked(self, call_id: str, work: Callable[[Transaction], None]) -> StoredApproval:
        with self._store.write() as tx:
            found = _get(tx, call_id)
            conversation_repository.lock_conversation(tx, found.conversation_id)
            work(tx)
            return _get(tx, call_id)


def _why_closed(tx: Transaction, approval: StoredApproval) -> str | None:
    if approval.answered_by is not None and approval.status not in OPEN_APPROVALS:
        return f"{approval.answered_by} has already answered, at {approval.answered_at}: {approval.outcome}."
    turn_end = repository.turn_end_of_call(tx, approval.call_id)
    if turn_end is not None:
        return f"The turn that asked has ended ({visible(turn_end)}), so its call does not run and needs no answer."
    if approval.status not in OPEN_APPROVALS:
        return f"This question is {approval.status} and can no longer be answered."
    return None
