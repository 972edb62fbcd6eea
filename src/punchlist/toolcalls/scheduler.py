"""`CoreToolScheduler`: takes requests, and sees each call through to its end.

It runs on one event loop and changes state only there, in short synchronous steps; what takes time
(a tool, a person, the database) is awaited in the call's own task. The order of things for a call:

    schedule -> admission decides -> [a person is asked] -> its turn comes (scheduling.py)
             -> on record (journal) -> the tool runs (execution.py) -> ended, and whoever waited goes on

Nothing runs before it is on record as executing, so after a crash a call that was not on record did
not run. What it deliberately does not do: it knows no database, no terminal and no configuration;
these come as a `Journal`, an `Ask` and values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, assert_never

from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound, PunchlistError
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.kernel.clock import Clock, system_clock
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.approval_watcher import ApprovalResponder, ApprovalWatcher
from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome, ApprovalQuestion
from punchlist.toolcalls.batch import CallBatch, CallEntry, CallTimeouts, awaits_approval
from punchlist.toolcalls.call_table import CallEnding, CallTable, cancellation
from punchlist.toolcalls.concurrency import MAX_CONCURRENT_CALLS
from punchlist.toolcalls.execution import ExecutionEnvironment, RunningCall, execute
from punchlist.toolcalls.lifecycle import ENDED, CallAction, CallStatus
from punchlist.toolcalls.listeners import AnsweredElsewhere, AskPerson, Journal, Listeners
from punchlist.toolcalls.model import (
    CallError,
    CancelledToolCall,
    ErroredToolCall,
    ExecutingToolCall,
    ScheduledToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    WaitingToolCall,
)
from punchlist.toolcalls.policy import Policy, Verdict
from punchlist.toolcalls.tool import AgentTool
from punchlist.toolcalls.validation import CallValidator, RejectedCall, ValidatedCall, check_ids, invalid_dependencies

GRACE: Final = 5.0
"""Seconds that a cancelled tool has to end what it started before the scheduler stops waiting for it."""

SLACK: Final = 0.5
"""Seconds at most by which a time limit may be passed before we step in."""

SHUTTING_DOWN: Final = "the program is ending"
OnConfirm = Callable[[ApprovalOutcome, Mapping[str, Any]], Awaitable[None] | None]
Twins = dict[tuple[str, tuple[str, ...]], CallEntry]
_PERSON: Final = Actor(Role.PERSON, "person")
_AGENT: Final = Actor(Role.SUPERVISOR, "agent")


class CoreToolScheduler:
    def __init__(
        self,
        tools: Mapping[str, AgentTool] | Iterable[AgentTool] = (),
        policy: Policy | None = None,
        *,
        admission: CallValidator | None = None,
        journal: Journal | None = None,
        ask: AskPerson | None = None,
        listeners: Listeners | None = None,
        around: ExecutionEnvironment | None = None,
        concurrent: int = MAX_CONCURRENT_CALLS,
        actor: Actor = _AGENT,
        clock: Clock = system_clock,
    ) -> None:
        box = tools if isinstance(tools, Mapping) else {tool.name: tool for tool in tools}
        self._admission = admission or CallValidator(box, policy or Policy())
        self._journal = journal
        self._listeners = listeners or Listeners()
        self._around = around or ExecutionEnvironment()
        self._actor = actor
        self._clock = clock
        self._calls = CallTable(journal, self._listeners, concurrent)
        self._deadlines = CallTimeouts(self._time_is_up)
        self._answers = ApprovalResponder(self._calls, self._admission, journal, clock)
        self._asking = ApprovalWatcher(
            self._calls.awaiting_approval, self._take_answer, self._take_expiry, journal, ask, clock
        )
        self._background: set[asyncio.Task[None]] = set()

    # --- the four methods of the seed ------------------------------------------------------------------

    def schedule(
        self, requests: ToolCallRequest | Sequence[ToolCallRequest], signal: CancelSignal | None = None
    ) -> CallBatch:
        """Take on one call or several. Await the answer for what came of them."""
        wanted = [requests] if isinstance(requests, ToolCallRequest) else list(requests)
        check_ids(wanted, self._calls.has_seen)
        wrong = invalid_dependencies(wanted, self._calls.has_seen)
        batch, now = CallBatch(self._settled, self._cancel), self._clock()
        entries = [self._calls.receive(request, batch, now, self._actor) for request in wanted]
        twins: Twins = {}
        for entry in entries:
            self._admit(entry, wrong.get(entry.request.call_id), twins, now)
        if signal is not None:
            batch.cancel_on(signal)
        self._go_on()
        return batch

    async def handle_confirmation_response(
        self,
        call_id: str,
        on_confirm: OnConfirm | None,
        outcome: ApprovalOutcome,
        signal: CancelSignal | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """A person's answer. `payload` may hold `arguments` (to modify), `reason` (to cancel) and `by`, an Actor."""
        told = payload or {}
        answer = ApprovalAnswer(outcome, told.get("by", _PERSON), told.get("arguments"), told.get("reason", ""))
        self._answers.check(self._calls.waiting_entry(call_id), answer)
        if on_confirm is not None:
            heard = on_confirm(outcome, told)
            if heard is not None:
                await heard
        # Looked up again: somebody else may have answered in the meantime.
        entry = self._calls.waiting_entry(call_id)
        if signal is None or not signal.is_set:
            self._answers.apply(entry, answer)
        if signal is not None:
            signal.on_set(lambda reason: self._cancel([call_id], reason))
        self._go_on()
        if self._journal is not None:
            await self._journal.flushed(call_id)

    def attempt_execution_of_scheduled_calls(self, signal: CancelSignal | None = None) -> None:
        """Start whatever can start now."""
        if signal is not None and signal.is_set:
            scheduled = [id for id, entry in self._calls.open.items() if entry.call.status is CallStatus.SCHEDULED]
            self._cancel(scheduled, signal.reason or "cancelled")
            return
        for entry in self._calls.startable():
            self._start(entry)

    def check_and_notify_completion(self) -> bool:
        """Tell the listener when nothing is open any more; whether that is so."""
        if self._calls.has_unreported:
            self._listeners.completed(self._calls.take_completed())
        return not self._calls.open

    # --- and what goes with them -----------------------------------------------------------------------

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that have not ended, as they are now."""
        return [entry.call for entry in self._calls.open.values()]

    def cancel(self, call_id: str, reason: str = "cancelled") -> None:
        if call_id in self._calls.ended:
            raise IllegalTransition(f"Call {call_id!r} has ended ({self._calls.ended[call_id]}): nothing to cancel.")
        if call_id not in self._calls.open:
            raise NotFound(f"There is no call {call_id!r}.")
        self._cancel([call_id], reason)

    def cancel_all(self, reason: str = "cancelled") -> None:
        self._cancel(list(self._calls.open), reason)

    async def close(self, reason: str = SHUTTING_DOWN) -> None:
        """End what runs. What waits for a person stays on record, when there is one, and can go on later."""
        for call_id, entry in list(self._calls.open.items()):
            if self._journal is None or not awaits_approval(entry):
                self._cancel([call_id], reason)
        await self._asking.stop()
        running = [entry.task for entry in self._calls.open.values() if entry.task is not None]
        await asyncio.gather(*running, *self._background, return_exceptions=True)
        await self._settled()

    def resume(self, request: ToolCallRequest, question: ApprovalQuestion) -> CallBatch:
        """Take on a call that another process left waiting for a person; it goes on waiting here."""
        check_ids([request], self._calls.has_seen)
        admitted = self._admission.admit(request, self._clock(), counted=False)
        if isinstance(admitted, RejectedCall):
            raise InvalidInput(f"Call {request.call_id} can no longer run. {admitted.error.message}")
        if admitted.decision.verdict is Verdict.DENY:
            raise NotAllowed(f"Call {request.call_id} can no longer run: {admitted.decision.why}.")
        batch = CallBatch(self._settled, self._cancel)
        self._calls.restore(WaitingToolCall(request, admitted.tool, question), admitted, batch)
        self._asking.start()
        return batch

    # --- in ---------------------------------------------------------------------------------------------

    def _admit(self, entry: CallEntry, wrong: CallError | None, twins: Twins, now: datetime) -> None:
        if entry.call.status in ENDED:
            # What it depends on was refused before it was looked at.
            return
        admitted = RejectedCall(wrong) if wrong else self._admission.admit(entry.request, now)
        if isinstance(admitted, RejectedCall):
            told = CallError(admitted.error.code, self._around.redact(admitted.error.message))
            error = ErroredToolCall(entry.request, told, now)
            self._calls.end(CallEnding(entry, CallAction.REJECT, error, reason=told.code))
            return
        entry.validated = admitted
        decision = admitted.decision
        scheduled = ScheduledToolCall(entry.request, admitted.tool, decision)
        self._calls.advance(entry, CallAction.ACCEPT, scheduled, now, reason=decision.why)
        if decision.verdict is Verdict.DENY:
            self._calls.end(cancellation(entry, f"Denied: {decision.why}.", now))
            return
        twin = twins.setdefault((admitted.key, entry.request.depends_on), entry)
        if twin is not entry and twin.call.status not in ENDED:
            entry.leader = twin
            entry.follow(twin)
        elif not entry.request.depends_on or self._wait_for_others(entry, now):
            self._ask_or_line_up(entry, admitted, now)

    def _wait_for_others(self, entry: CallEntry, now: datetime) -> bool:
        """Get in line behind what it depends on; False when that has failed already."""
        for call_id in dict.fromkeys(entry.request.depends_on):
            if call_id in self._calls.open:
                entry.follow(self._calls.open[call_id])
            elif (ended := self._calls.ended[call_id]) is not CallStatus.SUCCESS:
                reason = f"It depends on {call_id}, which ended with {ended}."
                self._calls.end(cancellation(entry, reason, now))
                return False
        return True

    def _ask_or_line_up(self, entry: CallEntry, admitted: ValidatedCall, now: datetime) -> None:
        if admitted.question is None:
            self._calls.mark_ready(entry)
            return
        waiting = WaitingToolCall(entry.request, admitted.tool, admitted.question)
        self._calls.advance(entry, CallAction.ASK, waiting, now, reason=admitted.question.why)
        entry.batch.call_paused()
        self._asking.start()

    # --- through ----------------------------------------------------------------------------------------

    def _start(self, entry: CallEntry) -> None:
        admitted = entry.validated
        assert admitted is not None
        request, tool, now = entry.request, admitted.tool, self._clock()
        self._calls.advance(entry, CallAction.EXECUTE, ExecutingToolCall(request, tool, now), now)
        loop = asyncio.get_running_loop()
        limit = self._limit(admitted)
        deadline = loop.time() + limit
        # A tool that keeps to its deadline can say more about it than we can: it goes first.
        self._deadlines.watch(entry, deadline + min(limit * 0.05, SLACK))
        running = RunningCall(request.call_id, self._around, deadline, self._listeners.output, loop)
        entry.task = loop.create_task(self._run(entry, admitted, running))

    async def _run(self, entry: CallEntry, admitted: ValidatedCall, running: RunningCall) -> None:
        outcome: ToolResult | CallError | str
        entry.started = True
        try:
            if self._journal is not None:
                await self._journal.flushed(entry.request.call_id)
            outcome = await execute(admitted.tool, admitted.request.arguments, running, self._around)
        except asyncio.CancelledError:
            outcome = SHUTTING_DOWN
        except AnsweredElsewhere as answered:
            outcome = str(answered)
        except Exception as error:
            code = error.code if isinstance(error, PunchlistError) else "internal"
            outcome = CallError(code, f"Not run, since it could not be recorded. {error}")
        if entry.call.status is CallStatus.EXECUTING:
            self._finish(entry, entry.stop_reason or outcome)

    def _finish(self, entry: CallEntry, outcome: ToolResult | CallError | str) -> None:
        self._deadlines.forget(entry)
        call, now = entry.call, self._clock()
        assert isinstance(call, ExecutingToolCall)
        match outcome:
            case ToolResult():
                done = SuccessfulToolCall(call.request, call.tool, outcome, call.started_at, now)
                self._calls.end(CallEnding(entry, CallAction.SUCCEED, done))
            case CallError():
                error = ErroredToolCall(call.request, outcome, now)
                self._calls.end(CallEnding(entry, CallAction.FAIL, error, reason=outcome.code))
            case str():
                over = CancelledToolCall(call.request, outcome, now)
                self._calls.end(CallEnding(entry, CallAction.CANCEL, over, self._actor, outcome, detach=True))
            case _:
                assert_never(outcome)
        self._go_on()

    def _limit(self, admitted: ValidatedCall) -> float:
        return admitted.request.timeout or admitted.tool.time_limit or self._around.time_limit

    def _time_is_up(self, entry: CallEntry) -> None:
        if entry.stop_reason is not None:
            # It was told to end and has not: it holds nobody up any longer.
            self._finish(entry, entry.stop_reason)
        elif entry.validated is not None:
            limit = self._limit(entry.validated)
            self._stop(entry, CallError("timed_out", f"It took longer than its limit of {limit:g} s and was ended."))

    def _stop(self, entry: CallEntry, cause: str | CallError) -> None:
        """Make a running call end."""
        if entry.stop_reason is None and entry.task is not None:
            entry.stop_reason = cause
            entry.task.cancel()
            if entry.started:
                self._deadlines.watch(entry, asyncio.get_running_loop().time() + GRACE)
            else:
                # A task that is cancelled before its first step never takes it.
                self._finish(entry, cause)

    def _cancel(self, call_ids: Sequence[str], reason: str) -> None:
        for call_id in call_ids:
            entry = self._calls.open.get(call_id)
            if entry is None:
                continue
            if entry.call.status is CallStatus.EXECUTING:
                self._stop(entry, reason)
            else:
                self._calls.end(cancellation(entry, reason, self._clock(), self._actor)._replace(detach=True))
        self._go_on()

    # --- on ---------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """After something has changed: start what can start now, and say so when nothing is left."""
        if self._calls.detached:
            self._look_anew()
        self.attempt_execution_of_scheduled_calls()
        if not self._calls.has_unreported:
            return
        if self._journal is None or not self._listeners.on_all_tool_calls_complete:
            self.check_and_notify_completion()
        else:
            self._in_background(self._notify_when_on_record())

    def _look_anew(self) -> None:
        now = self._clock()
        for entry in self._calls.take_detached():
            if entry.validated is not None and self._wait_for_others(entry, now):
                self._ask_or_line_up(entry, entry.validated, now)

    async def _notify_when_on_record(self) -> None:
        # Whoever awaits the batch is told of an error; here it only matters that nothing is open.
        with suppress(Exception):
            await self._settled()
        self.check_and_notify_completion()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _settled(self) -> None:
        if self._journal is not None:
            await self._journal.flushed()

    def _take_answer(self, call_id: str, answer: ApprovalAnswer, *, at_hand: bool) -> None:
        """An answer from `ask`, at hand, or from elsewhere."""
        entry = self._calls.open.get(call_id)
        if entry is None or entry.call.status is not CallStatus.AWAITING_APPROVAL:
            return
        try:
            self._answers.apply(entry, answer)
        except PunchlistError as error:
            if at_hand:
                raise
            # It is on record as answered: nobody will be asked again.
            self._calls.end(cancellation(entry, f"The answer cannot be used. {error}", self._clock()))
        self._go_on()

    def _take_expiry(self, call_id: str) -> None:
        entry = self._calls.open.get(call_id)
        if entry is not None and entry.call.status is CallStatus.AWAITING_APPROVAL:
            self._answers.expire(entry)
            self._go_on()
