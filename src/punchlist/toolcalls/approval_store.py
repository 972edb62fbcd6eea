"""Approvals on record: asked in one process, answered in any, and never lost in between (S5).

Every change of an approval is a row and an event of its own stream. The answer is written here; the
process that has the call in hand reads it and goes on (`Ledger.answers`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from punchlist.conversations import repository as conversation_records
from punchlist.errors import Conflict, InvalidInput, NotFound
from punchlist.kernel.actors import SYSTEM, Actor
from punchlist.kernel.events import Change
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.secrets import Redactor
from punchlist.kernel.text import excerpt
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls import approvals, repository
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalQuestion, OnExpiry
from punchlist.toolcalls.lifecycle import APPROVAL, OPEN_APPROVALS, ApprovalAction, ApprovalStatus
from punchlist.toolcalls.stored_call import StoredApproval, StoredCall, event_reason, new_approval, to_storable_text

ESCALATION = "escalation"
"""The kind of message that a conversation gets when nobody has answered."""


def approval_stream(call_id: str) -> str:
    return f"approval:{call_id}"


# --- inside somebody's transaction; the conversation is locked ----------------------------------------------


def ask(tx: Transaction, call: StoredCall, question: ApprovalQuestion, redactor: Redactor) -> None:
    approval = new_approval(call, question, redactor)
    status = APPROVAL.advance(NEW, ApprovalAction.ASK, SYSTEM.role)
    tx.run(repository.INSERT_APPROVAL, **approval._asdict())
    kept = {name: value for name, value in approval._asdict().items() if value is not None}
    event_log.append(tx, _change(approval, ApprovalAction.ASK, None, status, SYSTEM, approval.why, kept))


def answered_otherwise(tx: Transaction, call_id: str, said: ApprovalAnswer) -> bool:
    """Whether the question takes no such answer any more."""
    found = repository.approval(tx, call_id)
    if found is None or found.status in OPEN_APPROVALS:
        return False
    return found.answer is None or (found.answer.outcome, found.answer.actor) != (said.outcome, said.actor)


def answer(tx: Transaction, call_id: str, said: ApprovalAnswer, redactor: Redactor) -> None:
    """Write a person's answer, unless it is there already: given elsewhere, it was written there."""
    found = _get(tx, call_id)
    if found.answer is not None:
        return
    action = ApprovalAction.APPROVE if said.proceeds else ApprovalAction.DENY
    arguments = None if said.arguments is None else json.dumps(said.arguments, sort_keys=True)
    shown = None if said.arguments is None else json.dumps(redactor.value(dict(said.arguments)), sort_keys=True)
    columns = {"outcome": said.outcome.value, "reason": to_storable_text(redactor.text(said.reason))}
    data = {**columns, "to": shown}
    _close(tx, found, action, said.actor, columns["reason"], {**columns, "arguments": arguments}, data)


def withdraw(tx: Transaction, call_id: str, by: Actor, reason: str) -> None:
    """The call has ended in another way, so nobody needs to answer any more."""
    found = repository.approval(tx, call_id)
    if found is not None and found.answer is None and not APPROVAL.is_final(ApprovalStatus(found.status)):
        expired = reason == approvals.EXPIRED_MESSAGE and by.role is SYSTEM.role
        action = ApprovalAction.EXPIRE if expired else ApprovalAction.WITHDRAW
        _close(tx, found, action, by, to_storable_text(reason), {"reason": to_storable_text(reason)}, {})


def escalate(tx: Transaction, call_id: str) -> None:
    found = repository.approval(tx, call_id)
    if found is None or found.status != ApprovalStatus.PENDING:
        return
    status = APPROVAL.advance(ApprovalStatus(found.status), ApprovalAction.ESCALATE, SYSTEM.role)
    tx.run(repository.ESCALATE, id=call_id, status=status.value)
    asked = f"Nobody has answered since {found.asked_at}: may this run?\n\n{found.question}\n\nCall {call_id}."
    message = conversation_records.add_message(tx, found.conversation_id, "system", asked, kind=ESCALATION)
    data = conversation_records.fingerprint(message)
    event_log.append(
        tx, _change(found, ApprovalAction.ESCALATE, found.status, status, SYSTEM, "no answer in time", data)
    )


def _close(
    tx: Transaction,
    found: StoredApproval,
    action: ApprovalAction,
    by: Actor,
    reason: str,
    columns: dict[str, Any],
    data: dict[str, Any],
) -> None:
    status = APPROVAL.advance(ApprovalStatus(found.status), action, by.role)
    person = action in (ApprovalAction.APPROVE, ApprovalAction.DENY)
    written = {
        "status": status.value,
        "outcome": None,
        "arguments": None,
        "reason": "",
        "answered_by": str(by) if person else None,
        "answered_at": tx.now() if person else None,
        **columns,
    }
    tx.run(repository.CLOSE_APPROVAL, id=found.call_id, **written)
    kept = {name: written[name] for name in ("answered_by", "answered_at", "outcome", "reason")}
    event_log.append(tx, _change(found, action, found.status, status, by, reason, {**kept, **data}))


def _get(tx: Transaction, call_id: str) -> StoredApproval:
    found = repository.approval(tx, call_id)
    if found is None:
        raise NotFound(f"Call {excerpt(call_id)!r} waits for no approval. `punchlist approvals` lists those that do.")
    return found


def _change(
    approval: StoredApproval,
    action: ApprovalAction,
    before: str | None,
    after: ApprovalStatus,
    by: Actor,
    reason: str,
    data: dict[str, Any],
) -> Change:
    return Change(
        stream=approval_stream(approval.call_id),
        conversation_id=approval.conversation_id,
        actor=str(by),
        action=action,
        subject=approval.call_id,
        from_status=before,
        to_status=after,
        reason=event_reason(reason),
        data=data,
    )


# --- the service ---------------------------------------------------------------------------------------------


class Approvals:
    """What surfaces use: see what waits for a person, and answer it."""

    def __init__(self, store: Store, redactor: Redactor | None = None) -> None:
        self._store = store
        self._redactor = redactor or Redactor()

    def waiting(self, conversation_id: str | None = None) -> list[StoredApproval]:
        """Those without an answer, oldest first; of one conversation or of all."""
        self.expire_overdue()
        with self._store.read() as tx:
            return repository.open_approvals(tx, conversation_id)

    def find(self, wanted: str) -> StoredApproval:
        """By its call's id, or by the end of that, as long as only one open approval ends so."""
        with self._store.read() as tx:
            found = repository.approval(tx, wanted)
            if found is not None:
                return found
            ends = [one for one in repository.open_approvals(tx, None) if wanted and one.call_id.endswith(wanted)]
        if len(ends) > 1:
            raise InvalidInput(f"{excerpt(wanted)!r} is the end of {len(ends)} ids; give more of it.")
        if not ends:
            raise NotFound(
                f"There is no approval {excerpt(wanted)!r}. `punchlist approvals` lists those that wait for an answer."
            )
        return ends[0]

    def call(self, call_id: str) -> StoredCall:
        with self._store.read() as tx:
            found = repository.call(tx, call_id)
        if found is None:
            raise NotFound(f"There is no call {excerpt(call_id)!r}.")
        return found

    def answer(self, call_id: str, said: ApprovalAnswer) -> StoredApproval:
        """Write an answer down; whoever has the call in hand goes on with it."""
        self.expire_overdue()

        def write(tx: Transaction) -> None:
            found = _get(tx, call_id)
            approvals.validate_answer(found.as_question, said)
            if found.status not in OPEN_APPROVALS:
                raise Conflict(_already(found))
            answer(tx, call_id, said, self._redactor)

        return self._locked(call_id, write)

    def expire_overdue(self) -> None:
        """Do what is due to questions that nobody has answered."""
        now = self._store.clock()
        with self._store.read() as tx:
            due = [one for one in repository.open_approvals(tx, None) if one.is_due(now)]
        for one in due:
            if one.on_expiry == OnExpiry.DENY:
                self._locked(
                    one.call_id, partial(withdraw, by=SYSTEM, reason=approvals.EXPIRED_MESSAGE, call_id=one.call_id)
                )
            else:
                self._locked(one.call_id, partial(escalate, call_id=one.call_id))

    def _locked(self, call_id: str, work: Callable[[Transaction], None]) -> StoredApproval:
        with self._store.write() as tx:
            found = _get(tx, call_id)
            conversation_records.lock_conversation(tx, found.conversation_id)
            work(tx)
            return _get(tx, call_id)


def _already(found: StoredApproval) -> str:
    if found.answered_by is not None:
        return f"{found.answered_by} answered already, at {found.answered_at}: {found.outcome}."
    return f"This question is {found.status} and takes no answer any more."
