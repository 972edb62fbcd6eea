"""Approvals while a scheduler runs: ask the local person, watch for answers of other processes and for expiry
(`ApprovalWatcher`), and apply an answer to its call (`ApprovalResponder`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from punchlist.errors import PunchlistError, StoreError
from punchlist.kernel.clock import Clock
from punchlist.kernel.events import Actor, Role
from punchlist.toolcalls import approvals
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome, OnExpiry
from punchlist.toolcalls.batch import BatchedCall
from punchlist.toolcalls.call_table import CallEnding, CallTable, cancellation
from punchlist.toolcalls.lifecycle import TOOL_CALL, CallAction
from punchlist.toolcalls.listeners import AskPerson, Journal
from punchlist.toolcalls.model import CancelledToolCall, ScheduledToolCall, WaitingToolCall
from punchlist.toolcalls.policy import Rule, Verdict
from punchlist.toolcalls.validation import CallValidator, ValidatedCall, comparable

POLL_INTERVAL: Final = 0.05
"""Seconds between two looks for answers and expiry."""

_LOG: Final = logging.getLogger(__name__)
_PERSON: Final = Actor(Role.PERSON, "person")
"""Who changed the mode of a policy."""


OnAnswer = Callable[[str, ApprovalAnswer, bool], None]
"""Receives call id, answer, and whether the local person gave it; raises when such an answer is not usable."""


class ApprovalWatcher:
    """Runs at most two tasks, and only while calls wait for approval."""

    def __init__(
        self,
        waiting: Callable[[], list[WaitingToolCall]],
        is_settled: Callable[[WaitingToolCall], bool],
        on_answer: OnAnswer,
        on_expiry: Callable[[str], None],
        journal: Journal | None,
        ask: AskPerson | None,
        clock: Clock,
    ) -> None:
        self._waiting = waiting
        self._is_settled = is_settled
        self._on_answer = on_answer
        self._on_expiry = on_expiry
        self._journal = journal
        self._ask = ask
        self._clock = clock
        self._escalated: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        if self._ask is not None:
            self._ensure_running("ask", self._ask_in_order)
        self._ensure_running("watch", self._watch)

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ensure_running(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        running = self._tasks.get(name)
        if running is None or running.done():
            self._tasks[name] = asyncio.get_running_loop().create_task(work())

    async def _ask_in_order(self) -> None:
        unanswered: set[str] = set()
        while waiting := [call for call in self._waiting() if call.request.call_id not in unanswered]:
            call = next(filter(self._is_settled, waiting), None)
            if call is None:
                # A call before it runs, and may change what it would do.
                await asyncio.sleep(POLL_INTERVAL)
            elif not await self._ask_about(call):
                unanswered.add(call.request.call_id)

    async def _ask_about(self, call: WaitingToolCall) -> bool:
        """Ask until there is a usable answer, or the call no longer waits. False when the person does not answer."""
        assert self._ask is not None
        problem: str | None = None
        while call in self._waiting():
            question = asyncio.ensure_future(self._ask(call, problem))
            try:
                while not question.done() and call in self._waiting():
                    await asyncio.wait({question}, timeout=POLL_INTERVAL)
            finally:
                # Answered by another process, or stopped.
                question.cancel()
                await asyncio.gather(question, return_exceptions=True)
            if question.cancelled():
                return True
            try:
                answer = question.result()
                if answer is None:
                    return False
                self._on_answer(call.request.call_id, answer, True)
            except PunchlistError as error:
                problem = str(error)
            except Exception:
                _LOG.exception("asking about call %s failed; it keeps waiting", call.request.call_id)
                return False
        return True

    async def _watch(self) -> None:
        while waiting := self._waiting():
            await self._read_answers(waiting)
            self._check_expiry(waiting)
            await asyncio.sleep(POLL_INTERVAL)

    async def _read_answers(self, waiting: Sequence[WaitingToolCall]) -> None:
        if self._journal is None:
            return
        try:
            for call_id, answer in await self._journal.answers([call.request.call_id for call in waiting]):
                self._on_answer(call_id, answer, False)
        except StoreError as error:
            # The question is stored, and an answer will be: try again.
            _LOG.warning("cannot read answers: %s", error)

    def _check_expiry(self, waiting: Sequence[WaitingToolCall]) -> None:
        now = self._clock()
        for call in waiting:
            question, call_id = call.question, call.request.call_id
            if question.expires_at is None or now < question.expires_at:
                continue
            if question.on_expiry is OnExpiry.DENY:
                self._on_expiry(call_id)
            elif question.on_expiry is OnExpiry.ESCALATE and call_id not in self._escalated:
                self._escalated.add(call_id)
                if self._journal is not None:
                    self._journal.escalate(call)


class ApprovalResponder:
    """Applies a person's answer to its call, and to other waiting calls that an "always" covers."""

    def __init__(
        self,
        calls: CallTable,
        validator: CallValidator,
        journal: Journal | None,
        redact: Callable[[str], str],
        clock: Clock,
    ) -> None:
        self._calls = calls
        self._validator = validator
        self._journal = journal
        self._redact = redact
        self._clock = clock

    def check(self, entry: BatchedCall, answer: ApprovalAnswer) -> ValidatedCall:
        """The call as the answer would change it. Raises when the answer is not usable."""
        assert isinstance(entry.call, WaitingToolCall)
        assert entry.validated is not None
        TOOL_CALL.check_role(CallAction.APPROVE if answer.proceeds else CallAction.DENY, answer.actor.role)
        approvals.validate_answer(entry.call.question, answer)
        if answer.outcome is ApprovalOutcome.MODIFY and answer.arguments is not None:
            return self._validator.revalidate(entry.validated, answer.arguments, self._clock())
        return entry.validated

    def is_current(self, entry: BatchedCall, answer: ApprovalAnswer) -> bool:
        """Whether a stored answer is for the question as it is now. One from before it was asked again can still be
        stored."""
        call = entry.call
        assert isinstance(call, WaitingToolCall)
        if not entry.asked_again or answer.shown is None:
            return True
        return comparable(self._redact(answer.shown)) == comparable(self._redact(call.question.text))

    def apply(self, entry: BatchedCall, answer: ApprovalAnswer) -> None:
        validated = self.check(entry, answer)
        call = entry.call
        assert isinstance(call, WaitingToolCall)
        if not answer.proceeds:
            ended = CancelledToolCall(call.request, approvals.denial_message(answer), self._clock())
            self._calls.end(CallEnding(entry, CallAction.DENY, ended, answer.actor, answer.reason, answer))
            return
        self._validator.mark_approved(validated)
        if answer.outcome is ApprovalOutcome.MODIFY:
            entry.approved = validated.question.text if validated.question else None
        else:
            entry.approved = call.question.text if answer.shown is None else answer.shown
        self._approve(entry, validated, answer)
        if answer.outcome is ApprovalOutcome.MODIFY:
            self._calls.detach_duplicates(entry)
            self._calls.reorder(entry.batch)
        if rules := approvals.rules_from_answer(answer, call.question, call.tool):
            self._add_rules(rules, answer)

    def judge_again(self) -> None:
        """Let the waiting calls run that the policy allows now, and end those that it denies now."""
        for entry in list(self._calls.open.values()):
            if not isinstance(entry.call, WaitingToolCall) or entry.validated is None:
                continue
            decision = self._validator.policy.decide(entry.validated.tool, entry.validated.request.arguments)
            if decision.verdict is Verdict.ALLOW:
                answer = ApprovalAnswer(ApprovalOutcome.PROCEED_ONCE, _PERSON, reason=decision.why)
                self._approve(entry, entry.validated, answer)
            elif decision.verdict is Verdict.DENY:
                self._calls.end(cancellation(entry, f"Denied: {decision.why}.", self._clock()))

    def _approve(self, entry: BatchedCall, validated: ValidatedCall, answer: ApprovalAnswer) -> None:
        entry.validated = validated
        scheduled = ScheduledToolCall(validated.request, validated.tool, approvals.permission_from_answer(answer))
        entry.request = validated.request
        self._calls.advance(entry, CallAction.APPROVE, scheduled, self._clock(), answer.actor, answer.reason, answer)
        self._calls.mark_ready(entry)

    def _add_rules(self, rules: Sequence[Rule], answer: ApprovalAnswer) -> None:
        """Add session rules, and approve the waiting calls that they allow."""
        policy = self._validator.policy
        policy.session_rules.extend(rules)
        if self._journal is not None:
            self._journal.record_rules(rules, answer.actor)
        for entry in list(self._calls.open.values()):
            if isinstance(entry.call, WaitingToolCall) and entry.validated is not None:
                decision = policy.decide(entry.validated.tool, entry.validated.request.arguments)
                if decision.verdict is Verdict.ALLOW:
                    self._approve(entry, entry.validated, answer)
