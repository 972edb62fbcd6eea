"""What a person's answer does to the call they were asked about, and to those like it."""

from __future__ import annotations

from collections.abc import Sequence

from punchlist.kernel.clock import Clock
from punchlist.toolcalls import approvals
from punchlist.toolcalls.admission import Admission, Admitted
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.call_entry import CallEntry
from punchlist.toolcalls.call_table import CallEnding, CallTable, cancelled
from punchlist.toolcalls.journal import Journal
from punchlist.toolcalls.lifecycle import TOOL_CALL, CallAction
from punchlist.toolcalls.policy import Rule, Verdict
from punchlist.toolcalls.states import CancelledToolCall, ScheduledToolCall, WaitingToolCall


class ApprovalResponder:
    def __init__(self, calls: CallTable, admission: Admission, journal: Journal | None, clock: Clock) -> None:
        self._calls = calls
        self._admission = admission
        self._journal = journal
        self._clock = clock

    def consider(self, entry: CallEntry, answer: ApprovalAnswer) -> Admitted:
        """The call as the answer would make it; raises when the answer makes no sense."""
        assert isinstance(entry.call, WaitingToolCall)
        assert entry.admitted is not None
        TOOL_CALL.permit(CallAction.APPROVE if answer.proceeds else CallAction.DENY, answer.by.role)
        approvals.check(entry.call.question, answer)
        if answer.outcome is ApprovalOutcome.MODIFY and answer.arguments is not None:
            return self._admission.readmit(entry.admitted, answer.arguments, self._clock())
        return entry.admitted

    def apply(self, entry: CallEntry, answer: ApprovalAnswer) -> None:
        admitted = self.consider(entry, answer)
        call = entry.call
        assert isinstance(call, WaitingToolCall)
        if not answer.proceeds:
            over = CancelledToolCall(call.request, approvals.told_no(answer), self._clock())
            self._calls.end(CallEnding(entry, CallAction.DENY, over, answer.by, answer.reason, answer))
            return
        self._admission.settle(admitted)
        if answer.outcome is ApprovalOutcome.MODIFY:
            self._calls.part_from_twins(entry)
        self._let_run(entry, admitted, answer)
        if rules := approvals.rules_from(answer, call.question, call.tool):
            self._from_now_on(rules, answer)

    def expire(self, entry: CallEntry) -> None:
        self._calls.end(cancelled(entry, approvals.EXPIRED, self._clock()))

    def _let_run(self, entry: CallEntry, admitted: Admitted, answer: ApprovalAnswer) -> None:
        entry.admitted = admitted
        scheduled = ScheduledToolCall(admitted.request, admitted.tool, approvals.permission(answer))
        entry.request = admitted.request
        self._calls.step(entry, CallAction.APPROVE, scheduled, self._clock(), answer.by, answer.reason, answer)
        self._calls.ready(entry)

    def _from_now_on(self, rules: Sequence[Rule], answer: ApprovalAnswer) -> None:
        """Always means also those that wait already."""
        policy = self._admission.policy
        policy.session.extend(rules)
        if self._journal is not None:
            self._journal.note_rules(rules, answer.by)
        for entry in list(self._calls.open.values()):
            if isinstance(entry.call, WaitingToolCall) and entry.admitted is not None:
                decision = policy.decide(entry.admitted.tool, entry.admitted.request.arguments)
                if decision.verdict is Verdict.ALLOW:
                    self._let_run(entry, entry.admitted, answer)
