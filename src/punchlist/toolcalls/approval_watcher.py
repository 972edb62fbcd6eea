"""While calls wait for a person: asking at hand, listening for answers from elsewhere, watching the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from punchlist.errors import PunchlistError, StoreError
from punchlist.kernel.clock import Clock
from punchlist.toolcalls import approvals
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome, OnExpiry
from punchlist.toolcalls.batch import CallEntry
from punchlist.toolcalls.call_table import CallEnding, CallTable, cancellation
from punchlist.toolcalls.lifecycle import TOOL_CALL, CallAction
from punchlist.toolcalls.listeners import AskPerson, Journal
from punchlist.toolcalls.model import CancelledToolCall, ScheduledToolCall, WaitingToolCall
from punchlist.toolcalls.policy import Rule, Verdict
from punchlist.toolcalls.validation import CallValidator, ValidatedCall

POLL_INTERVAL: Final = 0.05
"""Seconds between two looks."""

_LOG: Final = logging.getLogger(__name__)


class ReceivedAnswer(Protocol):
    def __call__(self, call_id: str, answer: ApprovalAnswer, *, at_hand: bool) -> None:
        """Raises when an answer makes no sense; one from elsewhere never does."""


class ApprovalWatcher:
    """Two tasks at most, and only while something waits."""

    def __init__(
        self,
        waiting: Callable[[], list[WaitingToolCall]],
        answered: ReceivedAnswer,
        expired: Callable[[str], None],
        journal: Journal | None,
        ask: AskPerson | None,
        clock: Clock,
    ) -> None:
        self._waiting = waiting
        self._answered = answered
        self._expired = expired
        self._journal = journal
        self._ask = ask
        self._clock = clock
        self._escalated: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Something waits."""
        if self._ask is not None:
            self._keep_going("ask", self._ask_in_turn)
        self._keep_going("listen", self._listen)

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _keep_going(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        running = self._tasks.get(name)
        if running is None or running.done():
            self._tasks[name] = asyncio.get_running_loop().create_task(work())

    async def _ask_in_turn(self) -> None:
        passed: set[str] = set()
        while open_questions := [call for call in self._waiting() if call.request.call_id not in passed]:
            call = open_questions[0]
            if not await self._ask_about(call):
                passed.add(call.request.call_id)

    async def _ask_about(self, call: WaitingToolCall) -> bool:
        """Ask until there is an answer that can be used; whether there is none, and nobody to give one."""
        assert self._ask is not None
        problem: str | None = None
        while call in self._waiting():
            asking = asyncio.ensure_future(self._ask(call, problem))
            try:
                while not asking.done() and call in self._waiting():
                    await asyncio.wait({asking}, timeout=POLL_INTERVAL)
            finally:
                # Answered elsewhere, or we are stopped: the question is put away.
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            if asking.cancelled():
                return True
            try:
                answer = asking.result()
                if answer is None:
                    return False
                self._answered(call.request.call_id, answer, at_hand=True)
            except PunchlistError as error:
                problem = str(error)
            except Exception:
                _LOG.exception("asking about call %s failed; it goes on waiting", call.request.call_id)
                return False
        return True

    async def _listen(self) -> None:
        while waiting := self._waiting():
            await self._hear(waiting)
            self._look_at_the_clock(waiting)
            await asyncio.sleep(POLL_INTERVAL)

    async def _hear(self, waiting: Sequence[WaitingToolCall]) -> None:
        if self._journal is None:
            return
        try:
            for call_id, answer in await self._journal.answers([call.request.call_id for call in waiting]):
                self._answered(call_id, answer, at_hand=False)
        except StoreError as error:
            # The database is away; the question is on record there, and so will the answer be.
            _LOG.warning("cannot look for answers: %s", error)

    def _look_at_the_clock(self, waiting: Sequence[WaitingToolCall]) -> None:
        now = self._clock()
        for call in waiting:
            question = call.question
            if question.expires_at is None or now < question.expires_at:
                continue
            if question.on_expiry is OnExpiry.DENY:
                self._expired(call.request.call_id)
            elif question.on_expiry is OnExpiry.ESCALATE and call.request.call_id not in self._escalated:
                self._escalated.add(call.request.call_id)
                if self._journal is not None:
                    self._journal.escalate(call)


class ApprovalResponder:
    def __init__(self, calls: CallTable, admission: CallValidator, journal: Journal | None, clock: Clock) -> None:
        self._calls = calls
        self._admission = admission
        self._journal = journal
        self._clock = clock

    def check(self, entry: CallEntry, answer: ApprovalAnswer) -> ValidatedCall:
        """The call as the answer would make it; raises when the answer makes no sense."""
        assert isinstance(entry.call, WaitingToolCall)
        assert entry.validated is not None
        TOOL_CALL.check_role(CallAction.APPROVE if answer.proceeds else CallAction.DENY, answer.actor.role)
        approvals.validate_answer(entry.call.question, answer)
        if answer.outcome is ApprovalOutcome.MODIFY and answer.arguments is not None:
            return self._admission.readmit(entry.validated, answer.arguments, self._clock())
        return entry.validated

    def apply(self, entry: CallEntry, answer: ApprovalAnswer) -> None:
        admitted = self.check(entry, answer)
        call = entry.call
        assert isinstance(call, WaitingToolCall)
        if not answer.proceeds:
            over = CancelledToolCall(call.request, approvals.denial_message(answer), self._clock())
            self._calls.end(CallEnding(entry, CallAction.DENY, over, answer.actor, answer.reason, answer))
            return
        self._admission.settle(admitted)
        if answer.outcome is ApprovalOutcome.MODIFY:
            self._calls.detach_duplicates(entry)
        self._let_run(entry, admitted, answer)
        if rules := approvals.rules_from_answer(answer, call.question, call.tool):
            self._from_now_on(rules, answer)

    def expire(self, entry: CallEntry) -> None:
        self._calls.end(cancellation(entry, approvals.EXPIRED_MESSAGE, self._clock()))

    def _let_run(self, entry: CallEntry, admitted: ValidatedCall, answer: ApprovalAnswer) -> None:
        entry.validated = admitted
        scheduled = ScheduledToolCall(admitted.request, admitted.tool, approvals.permission_from_answer(answer))
        entry.request = admitted.request
        self._calls.advance(entry, CallAction.APPROVE, scheduled, self._clock(), answer.actor, answer.reason, answer)
        self._calls.mark_ready(entry)

    def _from_now_on(self, rules: Sequence[Rule], answer: ApprovalAnswer) -> None:
        """Always means also those that wait already."""
        policy = self._admission.policy
        policy.session_rules.extend(rules)
        if self._journal is not None:
            self._journal.record_rules(rules, answer.actor)
        for entry in list(self._calls.open.values()):
            if isinstance(entry.call, WaitingToolCall) and entry.validated is not None:
                decision = policy.decide(entry.validated.tool, entry.validated.request.arguments)
                if decision.verdict is Verdict.ALLOW:
                    self._let_run(entry, entry.validated, answer)
