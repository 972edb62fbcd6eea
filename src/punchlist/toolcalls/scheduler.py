"""`CoreToolScheduler`: takes requests and runs each call to its end.

It runs on one event loop and changes state only there, in short synchronous steps; the call's own task
awaits what takes time (the tool, a person, the database). The steps of a call:

    schedule -> validate (validation.py) -> [ask a person] -> queue for resources and a slot (concurrency.py)
             -> store (journal) -> run the tool (execution.py) -> end, and start the calls that depended on it

A call is stored as executing before it runs; so a call that was not stored before a crash did not run.
The scheduler does not know the database, the terminal or the configuration: it receives a `Journal`, an
`AskPerson` and values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, assert_never

from punchlist.errors import IllegalTransition, NotFound, PunchlistError
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.clock import Clock, system_clock
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.admission import CallAdmission
from punchlist.toolcalls.approval_watcher import ApprovalResponder, ApprovalWatcher
from punchlist.toolcalls.approvals import (
    EXPIRED_MESSAGE,
    ApprovalAnswer,
    ApprovalExpiry,
    ApprovalOutcome,
    ApprovalQuestion,
)
from punchlist.toolcalls.batch import (
    BatchedCall,
    CallBatch,
    CallTimeouts,
    awaits_approval,
    executing_calls,
    mark_executing,
    waits_for_itself,
)
from punchlist.toolcalls.call_table import CallEnding, CallTable, cancellation, not_started
from punchlist.toolcalls.concurrency import MAX_CONCURRENT_CALLS
from punchlist.toolcalls.execution import ExecutionEnvironment, RunningCall, execute
from punchlist.toolcalls.lifecycle import CallAction, CallStatus
from punchlist.toolcalls.listeners import AnsweredElsewhere, AskPerson, Journal, Listeners
from punchlist.toolcalls.model import (
    CallError,
    CancelledToolCall,
    ErroredToolCall,
    ExecutingToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
)
from punchlist.toolcalls.policy import Policy, RuleLifetime
from punchlist.toolcalls.tool import AgentTool
from punchlist.toolcalls.validation import CallValidator, ValidatedCall, check_ids, invalid_dependencies

GRACE: Final = 5.0
"""Seconds that a cancelled tool has to clean up before the scheduler gives it up."""

SLACK: Final = 0.5
"""Most seconds after its time limit at which the scheduler stops a call."""

SHUTTING_DOWN: Final = "the program is shutting down"
OnConfirm = Callable[[ApprovalOutcome, Mapping[str, Any]], Awaitable[None] | None]
_PERSON: Final = Actor(Role.PERSON, "person")
_AGENT: Final = Actor(Role.SUPERVISOR, "agent")


class CoreToolScheduler:
    def __init__(
        self,
        tools: Mapping[str, AgentTool] | Iterable[AgentTool] = (),
        policy: Policy | None = None,
        *,
        validator: CallValidator | None = None,
        journal: Journal | None = None,
        ask: AskPerson | None = None,
        listeners: Listeners | None = None,
        expiry: ApprovalExpiry = ApprovalExpiry(),  # noqa: B008 - a value
        environment: ExecutionEnvironment | None = None,
        concurrent: int = MAX_CONCURRENT_CALLS,
        ordered: bool = True,
        actor: Actor = _AGENT,
        clock: Clock = system_clock,
    ) -> None:
        """`expiry`: what happens to a question without an answer. `ordered`: the calls of a batch take effect in their
        order (call_order.py); otherwise they run concurrently, as far as `concurrent`, their dependencies and their
        resource keys allow."""
        by_name = tools if isinstance(tools, Mapping) else {tool.name: tool for tool in tools}
        self._validator = validator or CallValidator(by_name, policy or Policy(), expiry=expiry)
        self._journal = journal
        self._listeners = listeners or Listeners()
        self._environment = environment or ExecutionEnvironment()
        self._ordered = ordered
        self._actor = actor
        self._clock = clock
        self._calls = CallTable(journal, self._listeners, concurrent)
        self._timeouts = CallTimeouts(self._on_timeout)
        self._ask = ask
        self._background: set[asyncio.Task[None]] = set()
        self._validator.policy.on_change(self._on_policy_change)

    @cached_property
    def _admission(self) -> CallAdmission:
        return CallAdmission(
            self._calls,
            self._validator,
            self._environment.redact,
            self._watch_approvals,
            self._actor,
            self._clock,
        )

    @cached_property
    def _responder(self) -> ApprovalResponder:
        return ApprovalResponder(self._calls, self._validator, self._journal, self._environment.redact, self._clock)

    @cached_property
    def _approval_watcher(self) -> ApprovalWatcher:
        return ApprovalWatcher(
            self._calls.awaiting_approval,
            self._calls.is_settled,
            self._on_answer,
            self._on_expiry,
            self._journal,
            self._ask,
            self._clock,
        )

    # --- the interface that S2 names --------------------------------------------------------------------

    def schedule(
        self,
        requests: ToolCallRequest | Sequence[ToolCallRequest],
        signal: CancelSignal | None = None,
        *,
        ordered: bool | None = None,
        questions: Mapping[str, ApprovalQuestion] | None = None,
    ) -> CallBatch:
        """Schedule one call or several. Await the batch for the ended calls.

        `ordered` replaces the setting of the scheduler for this batch. `questions`, by call id: these are stored calls
        that wait for a person; they continue to wait.
        """
        for running in executing_calls():
            if self._calls.open.get(running.request.call_id) is running:
                raise waits_for_itself(running)
        batch_requests = [requests] if isinstance(requests, ToolCallRequest) else list(requests)
        check_ids(batch_requests, self._calls.has_seen)
        rejected = invalid_dependencies(batch_requests, self._calls.has_seen)
        batch = CallBatch(self._flushed, self._cancel, ordered=self._ordered if ordered is None else ordered)
        self._admission.admit(batch_requests, batch, rejected, questions or {})
        if signal is not None:
            batch.cancel_on(signal)
        self._proceed()
        return batch

    async def handle_confirmation_response(
        self,
        call_id: str,
        on_confirm: OnConfirm | None,
        outcome: ApprovalOutcome,
        signal: CancelSignal | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Apply a person's answer.

        `payload`: `arguments` (to modify), `reason` (to cancel), `by` (an Actor), `lifetime` (of an "always"), `shown`
        (the text that the person read, if it was not the question's).
        """
        given = payload or {}
        lifetime = given.get("lifetime", RuleLifetime.SESSION)
        by, arguments, reason = given.get("by", _PERSON), given.get("arguments"), given.get("reason", "")
        answer = ApprovalAnswer(outcome, by, arguments, reason, lifetime, given.get("shown"))
        self._responder.check(self._calls.waiting_entry(call_id), answer)
        if on_confirm is not None:
            confirmed = on_confirm(outcome, given)
            if confirmed is not None:
                await confirmed
        # Looked up again: another answer can have arrived in the meantime.
        entry = self._calls.waiting_entry(call_id)
        if signal is None or not signal.is_set:
            self._responder.apply(entry, answer)
        if signal is not None:
            signal.on_set(lambda reason: self._cancel([call_id], reason))
        self._proceed()
        if self._journal is not None:
            await self._journal.flushed(call_id)

    def attempt_execution_of_scheduled_calls(self, signal: CancelSignal | None = None) -> None:
        """Start every call that can start now."""
        if signal is not None and signal.is_set:
            scheduled = [id for id, entry in self._calls.open.items() if entry.call.status is CallStatus.SCHEDULED]
            self._cancel(scheduled, signal.reason or "cancelled")
            return
        for entry in self._calls.startable():
            if not self._ask_first(entry):
                self._start(entry)

    def check_and_notify_completion(self) -> bool:
        """Report the ended calls when no call is open. Returns whether no call is open."""
        if self._calls.has_unreported:
            completed = self._calls.take_completed()
            if self._listeners.on_all_tool_calls_complete is not None:
                self._listeners.completed(completed)
        return not self._calls.open

    # --- more -------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[ToolCall]:
        """The open calls in their current states."""
        return [entry.call for entry in self._calls.open.values()]

    def cancel(self, call_id: str, reason: str = "cancelled") -> None:
        if call_id in self._calls.ended:
            raise IllegalTransition(f"Call {call_id!r} has already ended ({self._calls.ended[call_id]}).")
        if call_id not in self._calls.open:
            raise NotFound(f"There is no call {call_id!r}.")
        self._cancel([call_id], reason)

    def cancel_all(self, reason: str = "cancelled") -> None:
        self._cancel(list(self._calls.open), reason)

    async def close(self, reason: str = SHUTTING_DOWN) -> None:
        """End all running calls. With a journal, calls that wait for a person stay stored and can be resumed."""
        entries = list(self._calls.open.values())
        waiting = [] if self._journal is None else [entry for entry in entries if awaits_approval(entry)]
        for entry in waiting:
            if entry.call.status is CallStatus.SCHEDULED:
                self._calls.end(not_started(entry, self._clock())._replace(alone=True))
        self._cancel([entry.request.call_id for entry in entries if entry not in waiting], reason)
        if "_approval_watcher" in self.__dict__:
            await self._approval_watcher.stop()
        running = [entry.task for entry in self._calls.open.values() if entry.task is not None]
        await asyncio.gather(*running, *self._background, return_exceptions=True)
        await self._flushed()

    def resume(self, request: ToolCallRequest, question: ApprovalQuestion) -> CallBatch:
        """Continue a stored call that waits for a person."""
        return self.schedule(request, questions={request.call_id: question})

    # --- execution --------------------------------------------------------------------------------------

    def _ask_first(self, entry: BatchedCall) -> bool:
        """Ask about a call that is about to start, if a person has not approved what it would do now."""
        validated, now = entry.validated, self._clock()
        assert validated is not None
        asked = self._validator.unanswered(validated, entry.approved, self._environment.redact, now)
        if asked is None:
            return False
        self._calls.unready(entry)
        entry.asked_again = entry.approved is not None
        entry.approved = None
        self._admission.ask(entry, asked, now)
        return True

    def _start(self, entry: BatchedCall) -> None:
        validated = entry.validated
        assert validated is not None
        request, tool, now = entry.request, validated.tool, self._clock()
        self._calls.advance(entry, CallAction.EXECUTE, ExecutingToolCall(request, tool, now), now)
        loop = asyncio.get_running_loop()
        limit = self._limit(validated)
        deadline = loop.time() + limit
        # The tool has the first chance to report the timeout: it knows more about it.
        self._timeouts.watch(entry, deadline + min(limit * 0.05, SLACK))
        running = RunningCall(request.call_id, self._environment, deadline, self._listeners.output, loop)
        entry.task = loop.create_task(self._run(entry, validated, running))

    async def _run(self, entry: BatchedCall, validated: ValidatedCall, running: RunningCall) -> None:
        outcome: ToolResult | CallError | str
        entry.started = True
        mark_executing(entry)
        try:
            if self._journal is not None:
                await self._journal.flushed(entry.request.call_id)
            refused = self._validator.judge_again(validated, self._clock()) if self._may_differ(entry) else None
            outcome = refused or await execute(validated.tool, validated.request.arguments, running)
        except asyncio.CancelledError:
            outcome = SHUTTING_DOWN
        except AnsweredElsewhere as conflict:
            outcome = str(conflict)
        except Exception as error:
            code = error.code if isinstance(error, PunchlistError) else "internal"
            outcome = CallError(code, f"The call was not run because it could not be stored. {error}")
        if entry.call.status is CallStatus.EXECUTING:
            self._finish(entry, entry.stop_reason or outcome)

    @staticmethod
    def _may_differ(entry: BatchedCall) -> bool:
        """Whether the situation can have changed since the call was validated."""
        return entry.waited or entry.approved is not None

    def _finish(self, entry: BatchedCall, outcome: ToolResult | CallError | str) -> None:
        self._timeouts.forget(entry)
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
                ended = CancelledToolCall(call.request, outcome, now)
                self._calls.end(CallEnding(entry, CallAction.CANCEL, ended, self._actor, outcome, detach=True))
            case _:
                assert_never(outcome)
        self._proceed()

    def _limit(self, validated: ValidatedCall) -> float:
        return validated.request.timeout or validated.tool.time_limit or self._environment.time_limit

    def _on_timeout(self, entry: BatchedCall) -> None:
        if entry.stop_reason is not None:
            # It was stopped and has not ended: give it up, so that other calls can continue.
            self._finish(entry, entry.stop_reason)
        elif entry.validated is not None:
            limit = self._limit(entry.validated)
            self._stop(entry, CallError("timed_out", f"The call exceeded its time limit of {limit:g} s and was ended."))

    def _stop(self, entry: BatchedCall, reason: str | CallError) -> None:
        """Cancel the task of a running call."""
        if entry.stop_reason is None and entry.task is not None:
            entry.stop_reason = reason
            entry.task.cancel()
            if entry.started:
                self._timeouts.watch(entry, asyncio.get_running_loop().time() + GRACE)
            else:
                # A task that is cancelled before its first step does not run at all.
                self._finish(entry, reason)

    def _cancel(self, call_ids: Sequence[str], reason: str) -> None:
        for call_id in call_ids:
            entry = self._calls.open.get(call_id)
            if entry is None:
                continue
            if entry.call.status is CallStatus.EXECUTING:
                self._stop(entry, reason)
            else:
                self._calls.end(cancellation(entry, reason, self._clock(), self._actor)._replace(detach=True))
        self._proceed()

    # --- after a change ---------------------------------------------------------------------------------

    def _proceed(self) -> None:
        """Start every call that can start now, and report when no call is open."""
        if self._calls.detached:
            self._reschedule_detached()
        self.attempt_execution_of_scheduled_calls()
        if not self._calls.has_unreported:
            return
        if self._journal is None or not self._listeners.on_all_tool_calls_complete:
            self.check_and_notify_completion()
        else:
            task = asyncio.get_running_loop().create_task(self._notify_when_flushed())
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    def _reschedule_detached(self) -> None:
        now = self._clock()
        for entry in self._calls.take_detached():
            self._admission.queue(entry, now)

    def _watch_approvals(self) -> None:
        # Here the watcher is made, which most schedulers never need.
        self._approval_watcher.start()

    async def _notify_when_flushed(self) -> None:
        # A store error is raised to the caller that awaits the batch.
        with suppress(Exception):
            await self._flushed()
        self.check_and_notify_completion()

    async def _flushed(self) -> None:
        if self._journal is not None:
            await self._journal.flushed()

    def _on_answer(self, call_id: str, answer: ApprovalAnswer, local: bool) -> None:
        """Apply an answer of the local person, or one that another process recorded."""
        entry = self._calls.open.get(call_id)
        if entry is None or entry.call.status is not CallStatus.AWAITING_APPROVAL:
            return
        if not local and not self._responder.is_current(entry, answer):
            return
        try:
            self._responder.apply(entry, answer)
        except PunchlistError as error:
            if local:
                raise
            # It is stored as answered, so the question will not be asked again.
            self._calls.end(cancellation(entry, f"The answer is not usable. {error}", self._clock()))
        self._proceed()

    def _on_policy_change(self) -> None:
        """Judge the waiting calls again after a change of the mode."""
        if self._calls.awaiting_approval():
            self._responder.judge_again()
            self._proceed()

    def _on_expiry(self, call_id: str) -> None:
        entry = self._calls.open.get(call_id)
        if entry is not None and entry.call.status is CallStatus.AWAITING_APPROVAL:
            self._calls.end(cancellation(entry, EXPIRED_MESSAGE, self._clock()))
            self._proceed()
