"""Tool calls on record: transitions written as rows and events in one transaction, and what is read back.

A call belongs to the process that has it in hand (`owner`). Whoever writes says which state and which
owner they last saw, and a call that is no longer so is left alone: two processes never both go on
with one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from punchlist.conversations import repository as conversation_records
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, NotFound
from punchlist.kernel.actors import SYSTEM, Actor
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Change
from punchlist.kernel.process_id import current_process, is_running
from punchlist.kernel.secrets import Redactor
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls import approval_store, repository
from punchlist.toolcalls.approvals import EXPIRED_MESSAGE, ApprovalAnswer, denial_message
from punchlist.toolcalls.lifecycle import TOOL_CALL, ApprovalStatus, CallAction, CallStatus
from punchlist.toolcalls.listeners import AnsweredElsewhere
from punchlist.toolcalls.model import Transition, WaitingToolCall
from punchlist.toolcalls.policy import Rule
from punchlist.toolcalls.stored_call import (
    StoredApproval,
    StoredCall,
    call_from_row,
    changed_columns,
    event_data,
    event_reason,
    new_call,
    rule_from_json,
    rule_to_json,
    to_storable_text,
)
from punchlist.toolcalls.tool import Effect

INTERRUPTED: Final = (
    "The program ended while this ran. Whether it took effect is not known: look before you call it again."
)
NOT_STARTED: Final = "The program ended before this ran. Call it again if it is still needed."
HISTORY_LENGTH: Final = 50
TURN_ENDED: Final = "The turn that wanted this has ended, so it was not run."
_LEFT: Final = ("interrupted", "suspended")
"""Codes of calls that were left in the middle: taking such a one up again is no repetition."""
ANSWERED_TWICE: Final = "Two people answered at the same moment, so it was not run. Call it again if it is needed."
RULE_ADDED: Final = "always"
"""The action of an event that tells of a new session rule."""


def call_stream(conversation_id: str) -> str:
    return f"toolcalls:{conversation_id}"


ExtraWrite = Callable[[Transaction], None]


class ToolCallService:
    """The records of one scheduler's calls. Called from one thread at a time."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        workspace: str,
        turn_id: str | None = None,
        *,
        abandoned: bool = False,
        redactor: Redactor | None = None,
        seal: Callable[[str], str] | None = None,
    ) -> None:
        """`abandoned`: the previous process of the turn is known to have lost it, even if it is alive. `seal` signs a
        stored rule for this user; without it every stored rule is trusted."""
        self._store = store
        self._conversations = Conversations(store)
        self._scope = scope
        self._workspace = workspace
        self._turn_id = turn_id
        self._abandoned = abandoned
        self._redactor = redactor or Redactor()
        self._seal = seal
        self._owner = current_process()
        self._last: dict[str, StoredCall] = {}
        if turn_id is not None:
            with store.read() as tx:
                turn = conversation_records.find_turn(tx, turn_id)
            if turn is None or turn.conversation_id != scope.conversation_id:
                raise NotFound(f"Session {scope.conversation_id!r} has no turn {turn_id!r}.")

    # --- writing ----------------------------------------------------------------------------------------

    def record(
        self,
        transitions: Sequence[Transition],
        rules: Sequence[tuple[Rule, Actor]] = (),
        along: Sequence[ExtraWrite] = (),
    ) -> dict[str, Conflict]:
        """Write all of it in one transaction; the calls that were not ours to change any more, and why.

        `along` is what somebody else has to write at the same moment; it comes first.
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
            for write in along:
                write(tx)
            here = self._scope.conversation_id
            position = repository.last_position(tx, here) if by_call.keys() - self._last.keys() else 0
            for call_id, steps in by_call.items():
                position += 1
                try:
                    after[call_id], changes[call_id] = self._write(tx, call_id, steps, position)
                except Conflict as conflict:
                    lost[call_id] = conflict
            # In the order in which it happened, not call by call.
            in_turn = (step.call.request.call_id for step in transitions)
            news = [changes[call_id].pop(0) for call_id in in_turn if call_id in after]
            news += [self._say_always(tx, rule, by) for rule, by in rules if self._may_be_kept(rule)]
            if news:
                event_log.append(tx, *news)
        self._last.update(after)
        for call_id in [*lost, *(call_id for call_id, call in after.items() if call.ended_at is not None)]:
            self._last.pop(call_id, None)
        return lost

    def _write(
        self, tx: Transaction, call_id: str, steps: Sequence[Transition], position: int
    ) -> tuple[StoredCall, list[Change]]:
        """Write a call's steps; a Conflict when it is not as it was left."""
        before = call = self._last.get(call_id)
        if before and any(
            step.answer and approval_store.answered_otherwise(tx, call_id, step.answer) for step in steps
        ):
            raise AnsweredElsewhere(self._give_way(tx, before))
        changes = []
        for step in steps:
            if call is None:
                call = self._new(step, position)
                columns = call._asdict()
            else:
                columns = changed_columns(step, self._redactor)
                call = call._replace(**columns)
            changes.append(self._change(step, event_data(columns)))
        assert call is not None
        kept = repository.insert_call(tx, call) if before is None else repository.update_call(tx, before, call)
        if not kept:
            taken = "has been used before" if before is None else "is in the hand of another process"
            raise Conflict(f"Call {call_id!r} {taken}.")
        for step in steps:
            self._question(tx, call, step)
        return call, changes

    def _give_way(self, tx: Transaction, call: StoredCall) -> str:
        """Somebody else's answer was first. A no and a time-out end the call; of two yeses nobody knows which."""
        approval = repository.approval(tx, call.id)
        first = approval.answer if approval else None
        if first is not None and not first.proceeds:
            why, action, by = denial_message(first), CallAction.DENY, first.actor
        else:
            why, action, by = EXPIRED_MESSAGE if first is None else ANSWERED_TWICE, CallAction.CANCEL, SYSTEM
        status = TOOL_CALL.advance(CallStatus(call.status), action, by.role)
        why = to_storable_text(self._redactor.text(why))
        columns: dict[str, Any] = {
            "status": status.value,
            "explanation": why,
            "ended_at": tx.now(),
            "exact": None,
        }
        if repository.update_call(tx, call, call._replace(**columns)):
            event_log.append(tx, self._told(call, action, status, columns, by, "answered elsewhere"))
        return why

    def _question(self, tx: Transaction, call: StoredCall, step: Transition) -> None:
        if isinstance(step.call, WaitingToolCall):
            approval_store.ask(tx, call, step.call.question, self._redactor)
        elif step.answer is not None:
            approval_store.answer(tx, call.id, step.answer, self._redactor)
            # The call has them now, without secrets once it has ended.
            tx.run(repository.FORGET_ARGUMENTS, id=call.id)
        elif step.action is CallAction.CANCEL and step.from_status is CallStatus.AWAITING_APPROVAL:
            approval_store.withdraw(tx, call.id, step.actor, self._redactor.text(step.reason))

    def _new(self, step: Transition, position: int) -> StoredCall:
        return new_call(
            step,
            self._redactor,
            position=position,
            conversation_id=self._scope.conversation_id,
            turn_id=self._turn_id,
            workspace=self._workspace,
            owner=self._owner,
        )

    def _change(self, step: Transition, data: dict[str, Any]) -> Change:
        return Change(
            stream=call_stream(self._scope.conversation_id),
            conversation_id=self._scope.conversation_id,
            actor=str(step.actor),
            action=step.action,
            subject=step.call.request.call_id,
            from_status=step.from_status,
            to_status=step.call.status,
            reason=event_reason(self._redactor.text(step.reason)),
            data={"at": timestamp(step.at), **data},
        )

    def _may_be_kept(self, rule: Rule) -> bool:
        """A rule that holds a secret is for this process alone."""
        written = rule_to_json(rule)
        return self._redactor.text(written) == written

    def _say_always(self, tx: Transaction, rule: Rule, by: Actor) -> Change:
        written = rule_to_json(rule)
        repository.add_rule(tx, self._scope.conversation_id, written, self._sealed(written), str(by))
        return Change(
            stream=call_stream(self._scope.conversation_id),
            conversation_id=self._scope.conversation_id,
            actor=str(by),
            action=RULE_ADDED,
            subject=rule.tool,
            from_status=None,
            to_status=None,
            reason=event_reason(str(rule)),
            data={"rule": written},
        )

    def escalate(self, call_id: str) -> None:
        with self._store.write() as tx:
            self._conversations.ensure(tx, self._scope)
            approval_store.escalate(tx, call_id)

    # --- reading ----------------------------------------------------------------------------------------

    def answers(self, call_ids: Sequence[str]) -> list[tuple[str, ApprovalAnswer]]:
        """What was answered by anybody of these calls."""
        with self._store.read() as tx:
            found = [repository.approval(tx, call_id) for call_id in call_ids]
        return [(one.call_id, one.answer) for one in found if one is not None and one.answer is not None]

    def find(self, call_id: str) -> StoredCall | None:
        with self._store.read() as tx:
            return repository.call(tx, call_id)

    def approval(self, call_id: str) -> StoredApproval | None:
        with self._store.read() as tx:
            return repository.approval(tx, call_id)

    def session_rules(self) -> list[Rule]:
        with self._store.read() as tx:
            stored = repository.rules(tx, self._scope.conversation_id)
        return [rule_from_json(rule) for rule, seal in stored if self._seal is None or seal == self._sealed(rule)]

    def _sealed(self, rule: str) -> str:
        return "" if self._seal is None else self._seal(f"{self._scope.conversation_id}\n{rule}")

    def fingerprints(self, tools: Sequence[str]) -> Mapping[str, str]:
        """What each of these tools looked like when it last ran, where that is known."""
        with self._store.read() as tx:
            rows = {tool: tx.one(repository.LAST_FINGERPRINT, tool=tool) for tool in tools}
        return {tool: str(row[0]) for tool, row in rows.items() if row}

    def history(self) -> list[tuple[str, Effect]]:
        """The turn's last calls, oldest first, for noticing loops across a restart."""
        if self._turn_id is None:
            return []
        with self._store.read() as tx:
            rows = tx.all(repository.OF_TURN, turn_id=self._turn_id, most=HISTORY_LENGTH)
        calls = [call_from_row(row) for row in reversed(rows)]
        whole = [call for call in calls if call.effect and call.error_code not in _LEFT]
        return [(f"{call.tool} {call.arguments}", Effect(str(call.effect))) for call in whole]

    # --- after somebody's end ----------------------------------------------------------------------------

    def recover(self) -> list[StoredCall]:
        """End what a process left open that is no more; what waits for a person goes on waiting."""
        with self._store.read() as tx:
            left = [
                (call, why)
                for call in repository.open_calls(tx, self._scope.conversation_id)
                if self._left(call) and (why := _why_over(tx, call)) is not None
            ]
        return [ended for call, why in left if (ended := self._end_for(call, why)) is not None]

    def _left(self, call: StoredCall) -> bool:
        """Whether the process that had a call has it no more. That may be this one: a turn that the database broke off
        is taken up again where it was."""
        if self._abandoned and call.turn_id == self._turn_id:
            return True
        return is_running(call.owner) is False

    def _end_for(self, call: StoredCall, why: str) -> StoredCall | None:
        running = call.status == CallStatus.EXECUTING
        action = CallAction.FAIL if running else CallAction.CANCEL
        status = TOOL_CALL.advance(CallStatus(call.status), action, SYSTEM.role)
        with self._store.write() as tx:
            self._conversations.ensure(tx, self._scope)
            columns: dict[str, Any] = {
                "status": status.value,
                "error_code": "interrupted" if running else None,
                "explanation": why,
                "ended_at": tx.now(),
                "exact": None,
            }
            ended = call._replace(**columns)
            if not repository.update_call(tx, call, ended):
                return None
            event_log.append(tx, self._told(call, action, status, columns, SYSTEM, _no_more(call)))
            approval_store.withdraw(tx, call.id, SYSTEM, why)
            return ended

    def take_over(self, call_id: str) -> StoredCall | None:
        """Take in hand a call that waits for a person, from a process that is no more; None when another has it."""
        with self._store.write() as tx:
            self._conversations.ensure(tx, self._scope)
            call = repository.call(tx, call_id)
            if call is None or call.status != CallStatus.AWAITING_APPROVAL:
                return None
            # What we left ourselves, in a turn that waited, is ours to go on with.
            if call.owner != self._owner and is_running(call.owner) is True and not self._left(call):
                return None
            ours = call._replace(owner=self._owner)
            if not repository.update_call(tx, call, ours):
                return None
            taken = {"owner": self._owner}
            event_log.append(
                tx, self._told(call, "take_over", CallStatus.AWAITING_APPROVAL, taken, SYSTEM, _no_more(call))
            )
        self._last[call_id] = ours
        return ours

    def _told(
        self, call: StoredCall, action: str, status: CallStatus, columns: dict[str, Any], by: Actor, reason: str
    ) -> Change:
        return Change(
            stream=call_stream(call.conversation_id),
            conversation_id=call.conversation_id,
            actor=str(by),
            action=action,
            subject=call.id,
            from_status=call.status,
            to_status=status,
            reason=reason,
            data=event_data(columns),
        )


def _no_more(call: StoredCall) -> str:
    return f"its process {call.owner} is no more"


def _why_over(tx: Transaction, call: StoredCall) -> str | None:
    """Why a call of a process that is no more cannot go on; None for one that still waits for a person."""
    match call.status:
        case CallStatus.EXECUTING:
            return INTERRUPTED
        case CallStatus.AWAITING_APPROVAL:
            approval = repository.approval(tx, call.id)
            if approval is not None and approval.status == ApprovalStatus.EXPIRED:
                return EXPIRED_MESSAGE
            turn = conversation_records.find_turn(tx, call.turn_id) if call.turn_id else None
            return TURN_ENDED if turn is not None and not turn.open else None
    return NOT_STARTED
