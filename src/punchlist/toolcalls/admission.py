"""Admits the calls of a batch: validates them, puts them in order, and asks a person or queues them.

A call is rejected, denied, left to an identical one, or asked about, or it waits for its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from punchlist.errors import InvalidInput, NotAllowed
from punchlist.kernel.clock import Clock
from punchlist.kernel.events import Actor
from punchlist.toolcalls.approvals import ApprovalQuestion
from punchlist.toolcalls.batch import BatchedCall, CallBatch
from punchlist.toolcalls.call_table import CallEnding, CallTable, cancellation
from punchlist.toolcalls.concurrency import dependencies_first
from punchlist.toolcalls.lifecycle import ENDED, CallAction, CallStatus
from punchlist.toolcalls.model import CallError, ErroredToolCall, ScheduledToolCall, ToolCallRequest, WaitingToolCall
from punchlist.toolcalls.policy import Verdict
from punchlist.toolcalls.validation import CallValidator, ValidatedCall

Duplicates = dict[tuple[str, tuple[str, ...]], BatchedCall]


class CallAdmission:
    def __init__(
        self,
        calls: CallTable,
        validator: CallValidator,
        redact: Callable[[str], str],
        watch_approvals: Callable[[], None],
        actor: Actor,
        clock: Clock,
    ) -> None:
        self._calls = calls
        self._validator = validator
        self._redact = redact
        self._watch_approvals = watch_approvals
        self._actor = actor
        self._clock = clock

    def admit(
        self,
        requests: Sequence[ToolCallRequest],
        batch: CallBatch,
        rejected: Mapping[str, CallError],
        questions: Mapping[str, ApprovalQuestion],
    ) -> None:
        """`rejected`: errors of the batch as a whole. `questions`: of stored calls that wait for a person."""
        now = self._clock()
        # First those that can raise, so that nothing is scheduled then.
        stored = {
            request.call_id: self._still_valid(request, now) for request in requests if request.call_id in questions
        }
        entries = {}
        for request in requests:
            id = request.call_id
            if id in stored:
                waiting = WaitingToolCall(request, stored[id].tool, _shown_question(stored[id], questions[id]))
                entries[id] = self._calls.restore(waiting, stored[id], batch)
            else:
                entries[id] = self._calls.receive(request, batch, now, self._actor)
        duplicates: Duplicates = {}
        for request in dependencies_first(requests):
            entry = entries[request.call_id]
            if entry.validated is not None:
                duplicates[entry.validated.key, request.depends_on] = entry
                _put_in_order(entry)
                self._watch_approvals()
            else:
                self._validate(entry, rejected.get(request.call_id), duplicates, now)

    def _still_valid(self, request: ToolCallRequest, now: datetime) -> ValidatedCall:
        validated = self._validator.validate(request, now, count_repeat=False)
        if isinstance(validated, CallError):
            raise InvalidInput(f"Call {request.call_id} can no longer run. {validated.message}")
        if validated.decision.verdict is Verdict.DENY:
            raise NotAllowed(f"Call {request.call_id} can no longer run: {validated.decision.why}.")
        return validated

    def _validate(self, entry: BatchedCall, problem: CallError | None, duplicates: Duplicates, now: datetime) -> None:
        if entry.call.status in ENDED:
            # A dependency was rejected, and that has ended this call.
            return
        validated = problem or self._validator.validate(entry.request, now)
        if isinstance(validated, ValidatedCall) and validated.problem and self._is_first(entry, validated):
            validated = validated.problem
        if isinstance(validated, CallError):
            error = CallError(validated.code, self._redact(validated.message))
            errored = ErroredToolCall(entry.request, error, now)
            self._calls.end(CallEnding(entry, CallAction.REJECT, errored, reason=error.code))
            return
        entry.validated = validated
        decision = validated.decision
        scheduled = ScheduledToolCall(entry.request, validated.tool, decision)
        self._calls.advance(entry, CallAction.ACCEPT, scheduled, now, reason=decision.why)
        if decision.verdict is Verdict.DENY:
            self._calls.end(cancellation(entry, f"Denied: {decision.why}.", now))
            return
        key = (validated.key, entry.request.depends_on)
        if _shares_result(entry, duplicates.get(key)):
            _put_in_order(entry)
            return
        duplicates[key] = entry
        if self._follow_dependencies(entry, now):
            _put_in_order(entry)
            self._ask_or_queue(entry, validated, now)

    def _is_first(self, entry: BatchedCall, validated: ValidatedCall) -> bool:
        """Whether no call that could still change the situation comes before this one."""
        order = entry.batch.order
        return not entry.request.depends_on and (order is None or order.comes_first(validated))

    def queue(self, entry: BatchedCall, now: datetime) -> None:
        """Queue a call that ran together with an identical one, which no longer runs for both."""
        if entry.validated is not None and self._follow_dependencies(entry, now):
            self._ask_or_queue(entry, entry.validated, now)

    def _follow_dependencies(self, entry: BatchedCall, now: datetime) -> bool:
        """Block the call until its dependencies have ended. False when one of them has failed already."""
        for call_id in dict.fromkeys(entry.request.depends_on):
            if call_id in self._calls.open:
                entry.follow(self._calls.open[call_id])
            elif (status := self._calls.ended[call_id]) is not CallStatus.SUCCESS:
                reason = f"It depends on {call_id}, which ended with {status}."
                self._calls.end(cancellation(entry, reason, now))
                return False
        return True

    def _ask_or_queue(self, entry: BatchedCall, validated: ValidatedCall, now: datetime) -> None:
        if validated.question is None:
            self._calls.mark_ready(entry)
        else:
            self.ask(entry, validated, now)

    def ask(self, entry: BatchedCall, validated: ValidatedCall, now: datetime) -> None:
        """Let a scheduled call wait for a person."""
        assert validated.question is not None
        entry.validated = validated
        waiting = WaitingToolCall(entry.request, validated.tool, validated.question)
        self._calls.advance(entry, CallAction.ASK, waiting, now, reason=validated.question.why)
        entry.batch.call_paused()
        self._watch_approvals()


def _shares_result(entry: BatchedCall, duplicate: BatchedCall | None) -> bool:
    """Let the call share the result of an identical one, if nothing changes in between."""
    if duplicate is None or duplicate.call.status in ENDED:
        return False
    order = entry.batch.order
    if order is not None and not order.can_share(entry, duplicate):
        return False
    entry.leader = duplicate
    entry.follow(duplicate)
    return True


def _put_in_order(entry: BatchedCall) -> None:
    if entry.batch.order is not None:
        entry.batch.order.add(entry)


def _shown_question(validated: ValidatedCall, stored: ApprovalQuestion) -> ApprovalQuestion:
    """The question made from what will run, with the times of the stored one, and its text: that is what the person
    reads who answers it. If the call would do something else now, it is asked about again before it runs."""
    shown = validated.question or stored
    return replace(
        shown, text=stored.text, asked_at=stored.asked_at, expires_at=stored.expires_at, on_expiry=stored.on_expiry
    )
