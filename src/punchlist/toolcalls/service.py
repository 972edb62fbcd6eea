"""Stores tool calls: each transition is a row and an event, written in one transaction.

A call belongs to one process (`owner`). Every update names the status and the owner that the writer last
saw; when they have changed, the update does nothing. So two processes never both continue one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, NotFound
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import SYSTEM, Actor, Change
from punchlist.kernel.processes import current_process, is_running
from punchlist.kernel.secrets import Redactor
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls import approval_store, repository, signatures
from punchlist.toolcalls.approvals import EXPIRED_MESSAGE, ApprovalAnswer, denial_message
from punchlist.toolcalls.call_endings import INTERRUPTED, TURN_ENDED, end_stored_call
from punchlist.toolcalls.lifecycle import ApprovalStatus, CallAction, CallStatus, UnfinishedCode
from punchlist.toolcalls.listeners import AnsweredElsewhere
from punchlist.toolcalls.model import Transition, WaitingToolCall
from punchlist.toolcalls.policy import Rule
from punchlist.toolcalls.rule_store import AlwaysRules
from punchlist.toolcalls.signatures import Sign
from punchlist.toolcalls.stored_call import (
    StoredApproval,
    StoredCall,
    call_change,
    changed_columns,
    event_data,
    event_reason,
    new_call,
    rule_to_json,
    to_storable_text,
)
from punchlist.toolcalls.tool import Effect

NOT_STARTED: Final = "The program ended before this call ran. Call it again if it is still needed."
ANSWERED_TWICE: Final = "Two people answered at the same moment, so the call was not run. Call it again if needed."
HISTORY_LENGTH: Final = 50
_UNFINISHED_CODES: Final = {
    INTERRUPTED: UnfinishedCode.INTERRUPTED.value,
    NOT_STARTED: UnfinishedCode.NOT_STARTED.value,
}
_UNFINISHED: Final = frozenset(UnfinishedCode)
"""Resuming such a call does not count as a repetition."""


ExtraWrite = Callable[[Transaction], None]
"""A write of another component, made in the same transaction."""


class ToolCallService:
    """Writes and reads the calls of one scheduler. Called from one thread at a time."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        workspace: str,
        turn_id: str | None = None,
        *,
        abandoned: bool = False,
        redactor: Redactor | None = None,
        sign: Sign | None = None,
        project: str | None = None,
    ) -> None:
        """`abandoned`: the previous worker of the turn is known to have lost it, even if it is alive. `sign` signs
        rules, questions and answers for this user; without it every stored one is trusted."""
        self._store = store
        self._conversations = Conversations(store)
        self._scope = scope
        self._workspace = workspace
        self._turn_id = turn_id
        self._abandoned = abandoned
        self._redactor = redactor or Redactor()
        self._rules = AlwaysRules(store, scope.conversation_id, project or workspace, sign, turn_id)
        self._unstored: list[Rule] = []
        """Rules with a secret in them: they are valid in this process only."""
        self._sign = sign
        self._owner = current_process()
        self._last: dict[str, StoredCall] = {}
        if turn_id is not None:
            with store.read() as tx:
                turn = conversation_repository.find_turn(tx, turn_id)
            if turn is None or turn.conversation_id != scope.conversation_id:
                raise NotFound(f"Session {scope.conversation_id!r} has no turn {turn_id!r}.")

    # --- writing ----------------------------------------------------------------------------------------

    def record(
        self,
        transitions: Sequence[Transition],
        rules: Sequence[tuple[Rule, Actor]] = (),
        extra: Sequence[ExtraWrite] = (),
    ) -> dict[str, Conflict]:
        """Write everything in one transaction, `extra` first.

        Returns the calls that could not be written because another process has changed them, and why.
        """
        by_call: dict[str, list[Transition]] = {}
        for transition in transitions:
            by_call.setdefault(transition.call.request.call_id, []).append(transition)
        after: dict[str, StoredCall] = {}
        lost: dict[str, Conflict] = {}
        changes: dict[str, list[Change]] = {}
        with self._store.write() as tx:
            if not (tx.exclusive and self._turn_id):
                self._conversations.ensure(tx, self._scope)
            for write in extra:
                write(tx)
            has_new = bool(by_call.keys() - self._last.keys())
            position = repository.last_position(tx, self._scope.conversation_id) if has_new else 0
            for call_id, steps in by_call.items():
                position += 1
                try:
                    after[call_id], changes[call_id] = self._write(tx, call_id, steps, position)
                except Conflict as conflict:
                    lost[call_id] = conflict
            # Events are appended in the order of the transitions, not call by call.
            in_order = (step.call.request.call_id for step in transitions)
            events = [changes[call_id].pop(0) for call_id in in_order if call_id in after]
            events += self._add_rules(tx, rules)
            if events:
                event_log.append(tx, *events)
        self._last.update(after)
        for call_id in [*lost, *(call_id for call_id, call in after.items() if call.ended_at is not None)]:
            self._last.pop(call_id, None)
        return lost

    def _write(
        self, tx: Transaction, call_id: str, steps: Sequence[Transition], position: int
    ) -> tuple[StoredCall, list[Change]]:
        """Write the steps of one call. Raises Conflict when another process has changed it."""
        before = call = self._last.get(call_id)
        # Answers after the call was asked about again are for another question.
        answers = [
            step.answer for step in takewhile(lambda step: step.action is not CallAction.ASK, steps) if step.answer
        ]
        if before and any(approval_store.is_answered_differently(tx, call_id, answer) for answer in answers):
            raise AnsweredElsewhere(self._end_by_earlier_answer(tx, before))
        changes = []
        for step in steps:
            if call is None:
                call = new_call(
                    step,
                    self._redactor,
                    position=position,
                    conversation_id=self._scope.conversation_id,
                    turn_id=self._turn_id,
                    workspace=self._workspace,
                    owner=self._owner,
                )
                columns = call._asdict()
            else:
                columns = changed_columns(step, self._redactor)
                call = call._replace(**columns)
            reason = event_reason(self._redactor.text(step.reason))
            data = {"at": timestamp(step.at), **event_data(columns)}
            changes.append(call_change(call, step.action, step.from_status, step.actor, reason, data))
        assert call is not None
        kept = repository.insert_call(tx, call) if before is None else repository.update_call(tx, before, call)
        if not kept:
            problem = "is used by an earlier call" if before is None else "is owned by another process"
            raise Conflict(f"Call id {call_id!r} {problem}.")
        for step in steps:
            self._update_approval(tx, call, step)
        return call, changes

    def _end_by_earlier_answer(self, tx: Transaction, call: StoredCall) -> str:
        """End a call whose question was answered elsewhere first: it was denied, it expired, or it was approved twice
        and it is unknown which approval holds."""
        approval = repository.find_approval(tx, call.id)
        first = approval.answer if approval else None
        if first is not None and not first.proceeds:
            reason, action, actor = denial_message(first), CallAction.DENY, first.actor
        else:
            reason, action, actor = EXPIRED_MESSAGE if first is None else ANSWERED_TWICE, CallAction.CANCEL, SYSTEM
        reason = to_storable_text(self._redactor.text(reason))
        end_stored_call(tx, call, action, actor, "answered elsewhere", explanation=reason)
        return reason

    def _update_approval(self, tx: Transaction, call: StoredCall, step: Transition) -> None:
        if isinstance(step.call, WaitingToolCall):
            approval_store.ask(tx, call, step.call.question, self._redactor, self._sign)
        elif step.answer is not None:
            approval_store.record_answer(tx, call, step.answer, self._redactor, self._sign)
            # The call holds the new arguments now, and drops their secrets when it ends.
            repository.forget_arguments(tx, call.id)
        elif step.action is CallAction.CANCEL and step.from_status is CallStatus.AWAITING_APPROVAL:
            approval_store.withdraw(tx, call.id, step.actor, self._redactor.text(step.reason))

    def _add_rules(self, tx: Transaction, rules: Sequence[tuple[Rule, Actor]]) -> list[Change]:
        changes = []
        for rule, actor in rules:
            written = rule_to_json(rule)
            if self._redactor.text(written) == written:
                changes.append(self._rules.add(tx, rule, actor))
            else:
                self._unstored.append(rule)
        return changes

    def escalate(self, call_id: str) -> None:
        with self._store.write() as tx:
            self._conversations.ensure(tx, self._scope)
            approval_store.escalate(tx, call_id)

    # --- reading ----------------------------------------------------------------------------------------

    def answers(self, call_ids: Sequence[str]) -> list[tuple[str, ApprovalAnswer]]:
        """The answers given so far to these calls."""
        with self._store.read() as tx:
            found = [repository.find_approval(tx, call_id) for call_id in call_ids]
            answered = [
                (approval, self._is_genuine(tx, approval)) for approval in found if approval and approval.answer
            ]
        for approval, genuine in answered:
            if not genuine:
                self._ask_again(approval.call_id)
        return [(approval.call_id, approval.answer) for approval, genuine in answered if genuine and approval.answer]

    def _is_genuine(self, tx: Transaction, approval: StoredApproval) -> bool:
        call = repository.find_call(tx, approval.call_id)
        return call is not None and signatures.is_genuine_answer(self._sign, approval, call, self._workspace)

    def _ask_again(self, call_id: str) -> None:
        with self._store.write() as tx:
            self._conversations.ensure(tx, self._scope)
            found = repository.find_approval(tx, call_id)
            call = repository.find_call(tx, call_id)
            if found is None or found.answer is None or call is None or self._is_genuine(tx, found):
                return
            if call.status == CallStatus.AWAITING_APPROVAL:
                approval_store.reopen(tx, found)

    def find(self, call_id: str) -> StoredCall | None:
        with self._store.read() as tx:
            return repository.find_call(tx, call_id)

    def approval(self, call_id: str) -> StoredApproval | None:
        """The approval of a call, without an answer that this user did not give for this call."""
        with self._store.read() as tx:
            found = repository.find_approval(tx, call_id)
            if found is None or found.answer is None or self._is_genuine(tx, found):
                return found
        self._ask_again(call_id)
        return found._replace(outcome=None, answered_by=None, answered_at=None, arguments=None, reason="")

    @property
    def rules(self) -> AlwaysRules:
        return self._rules

    def session_rules(self) -> list[Rule]:
        """The "always" rules that apply to the calls of this process."""
        return [*self._rules.effective(), *self._unstored]

    def fingerprints(self, tools: Sequence[str]) -> Mapping[str, str]:
        """The fingerprint of each of these tools at its last successful call."""
        with self._store.read() as tx:
            found = {tool: repository.last_fingerprint(tx, tool) for tool in tools}
        return {tool: fingerprint for tool, fingerprint in found.items() if fingerprint}

    def history(self) -> list[tuple[str, Effect]]:
        """The last calls of the turn, oldest first: repeat detection continues with them after a restart."""
        if self._turn_id is None:
            return []
        with self._store.read() as tx:
            newest = repository.newest_calls_of_turn(tx, self._turn_id, HISTORY_LENGTH)
        return [
            (f"{call.tool} {call.arguments}", Effect(call.effect))
            for call in reversed(newest)
            if call.effect and call.error_code not in _UNFINISHED
        ]

    # --- recovery ---------------------------------------------------------------------------------------

    def recover(self) -> list[StoredCall]:
        """End the open calls of processes that are gone. Calls that wait for a person stay open."""
        with self._store.read() as tx:
            orphans = [
                (call, reason)
                for call in repository.open_calls(tx, self._scope.conversation_id)
                if self._is_orphaned(tx, call) and (reason := _end_reason(tx, call)) is not None
            ]
        return [ended for call, reason in orphans if (ended := self._end_orphan(call, reason)) is not None]

    def _is_orphaned(self, tx: Transaction, call: StoredCall) -> bool:
        """Whether the owner has lost the call: it has ended, or it is a worker that lost the turn. The owner can be
        this process: a turn that a database outage interrupted is resumed where it was."""
        if self._abandoned and call.turn_id == self._turn_id and is_running(call.owner) is not False:
            return call.owner == self._owner or repository.find_worker(tx, call.owner) is not None
        return is_running(call.owner) is False

    def _end_orphan(self, call: StoredCall, reason: str) -> StoredCall | None:
        running = call.status == CallStatus.EXECUTING
        action = CallAction.FAIL if running else CallAction.CANCEL
        code = _UNFINISHED_CODES.get(reason)
        with self._store.write() as tx:
            self._conversations.ensure(tx, self._scope)
            ended = end_stored_call(tx, call, action, SYSTEM, _owner_gone(call), explanation=reason, error_code=code)
            if ended is not None:
                approval_store.withdraw(tx, call.id, SYSTEM, reason)
            return ended

    def take_over(self, call_id: str) -> StoredCall | None:
        """Become the owner of a call that waits for a person; None when a running process owns it."""
        with self._store.write() as tx:
            self._conversations.ensure(tx, self._scope)
            call = repository.find_call(tx, call_id)
            if call is None or call.status != CallStatus.AWAITING_APPROVAL:
                return None
            # A call that this process left in a suspended turn is its own.
            if call.owner != self._owner and is_running(call.owner) is True and not self._is_orphaned(tx, call):
                return None
            owned = call._replace(owner=self._owner)
            if not repository.update_call(tx, call, owned):
                return None
            data = {"owner": self._owner}
            event_log.append(tx, call_change(owned, "take_over", call.status, SYSTEM, _owner_gone(call), data))
        self._last[call_id] = owned
        return owned


def _owner_gone(call: StoredCall) -> str:
    return f"its process {call.owner} has ended"


def _end_reason(tx: Transaction, call: StoredCall) -> str | None:
    """Why an orphaned call cannot continue; None when it still waits for a person."""
    match call.status:
        case CallStatus.EXECUTING:
            return INTERRUPTED
        case CallStatus.AWAITING_APPROVAL:
            approval = repository.find_approval(tx, call.id)
            if approval is not None and approval.status == ApprovalStatus.EXPIRED:
                return EXPIRED_MESSAGE
            turn = conversation_repository.find_turn(tx, call.turn_id) if call.turn_id else None
            return TURN_ENDED if turn is not None and not turn.open else None
    return NOT_STARTED
