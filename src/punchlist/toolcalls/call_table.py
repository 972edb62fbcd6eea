"""The open calls of a scheduler. Calls change their state only here; endings propagate to dependent calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from punchlist.errors import Conflict, IllegalTransition, NotFound
from punchlist.kernel.events import SYSTEM, Actor
from punchlist.kernel.lifecycle import NEW
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.batch import BatchedCall, CallBatch, follows_running
from punchlist.toolcalls.concurrency import CallSlots, ResourceLocks
from punchlist.toolcalls.lifecycle import ENDED, TOOL_CALL, CallAction, CallStatus, UnfinishedCode
from punchlist.toolcalls.listeners import Journal, Listeners
from punchlist.toolcalls.model import (
    CancelledToolCall,
    CompletedToolCall,
    ErroredToolCall,
    ExecutingToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    Transition,
    ValidatingToolCall,
    WaitingToolCall,
)
from punchlist.toolcalls.validation import ValidatedCall

NOT_STARTED: Final = "It was not run, because a call before it in the same reply is not finished."


class NotWaiting(IllegalTransition, Conflict):
    """An answer to a call that does not wait for one, or no longer: another answer or a cancellation was first."""


class CallEnding(NamedTuple):
    """The last step of a call."""

    entry: BatchedCall
    action: CallAction
    call: CompletedToolCall
    actor: Actor = SYSTEM
    reason: str = ""
    answer: ApprovalAnswer | None = None
    detach: bool = False
    """The ending does not apply to identical calls: they continue without this one."""
    alone: bool = False
    """The calls behind it stay as they are: the scheduler is closed."""


class CallTable:
    def __init__(self, journal: Journal | None, listeners: Listeners, concurrent: int) -> None:
        self._journal = journal
        self._listeners = listeners
        self._listened = listeners.on_transition is not None or listeners.on_tool_calls_update is not None
        self.open: dict[str, BatchedCall] = {}
        self.ended: dict[str, CallStatus] = {}
        self._unreported: list[CompletedToolCall] = []
        self._ready: list[BatchedCall] = []
        self.detached: list[BatchedCall] = []
        self._locks = ResourceLocks()
        self._slots = CallSlots(concurrent)

    def has_seen(self, call_id: str) -> bool:
        return call_id in self.open or call_id in self.ended

    def awaiting_approval(self) -> list[WaitingToolCall]:
        return [entry.call for entry in self.open.values() if isinstance(entry.call, WaitingToolCall)]

    def is_settled(self, call: WaitingToolCall) -> bool:
        """Whether no call runs that comes before this one and may change what it would do."""
        entry = self.open.get(call.request.call_id)
        return entry is None or not follows_running(entry)

    def waiting_entry(self, call_id: str) -> BatchedCall:
        entry = self.open.get(call_id)
        if entry is None and call_id not in self.ended:
            raise NotFound(f"There is no call {call_id!r}.")
        status = self.ended[call_id] if entry is None else entry.call.status
        if entry is None or status is not CallStatus.AWAITING_APPROVAL:
            raise NotWaiting(f"Call {call_id!r} does not wait for approval: it is {status}.")
        return entry

    # --- steps ------------------------------------------------------------------------------------------

    def receive(self, request: ToolCallRequest, batch: CallBatch, at: datetime, actor: Actor) -> BatchedCall:
        entry = BatchedCall(ValidatingToolCall(request), batch)
        TOOL_CALL.advance(NEW, CallAction.RECEIVE, actor.role)
        self.open[request.call_id] = entry
        batch.add(entry)
        self._report(Transition(at, CallAction.RECEIVE, None, entry.call, actor, ""))
        return entry

    def restore(self, call: WaitingToolCall, validated: ValidatedCall, batch: CallBatch) -> BatchedCall:
        """Add a stored call that waits for approval, without a transition."""
        self.open[call.request.call_id] = entry = BatchedCall(call, batch, validated)
        batch.add(entry)
        return entry

    def advance(
        self,
        entry: BatchedCall,
        action: CallAction,
        call: ToolCall,
        at: datetime,
        actor: Actor = SYSTEM,
        reason: str = "",
        answer: ApprovalAnswer | None = None,
    ) -> None:
        from_status = entry.call.status
        if TOOL_CALL.advance(from_status, action, actor.role) is not call.status:
            raise AssertionError(f"{action} does not lead to {call.status}")
        entry.call = call
        self._report(Transition(at, action, from_status, call, actor, reason, answer))

    def _report(self, transition: Transition) -> None:
        if self._journal is not None:
            self._journal.record(transition)
        if self._listened:
            self._listeners.changed(transition)

    # --- starting ---------------------------------------------------------------------------------------

    def mark_ready(self, entry: BatchedCall) -> None:
        """Queue a call for its resources and a slot, unless it is blocked."""
        if not entry.blocked_by and not entry.ready:
            entry.ready = True
            self._ready.append(entry)

    def startable(self) -> Iterator[BatchedCall]:
        """The calls that can start now; each has a slot."""
        if self._ready:
            self._queue_ready()
        while (call_id := self._slots.next()) is not None:
            entry = self.open.get(call_id)
            if entry is None or entry.call.status is not CallStatus.SCHEDULED:
                self._slots.free()
            else:
                yield entry

    def _queue_ready(self) -> None:
        ready, self._ready = self._ready, []
        if len(ready) > 1:
            ready.sort(key=lambda entry: -entry.request.priority)
        for entry in ready:
            assert entry.validated is not None
            request, resources = entry.request, entry.validated.resources
            # The call can have been cancelled since it became ready.
            if entry.call.status is CallStatus.SCHEDULED and self._locks.claim(request.call_id, resources):
                self._slots.queue(request.call_id, request.priority)

    def unready(self, entry: BatchedCall) -> None:
        """Take back the start of a call that has to be asked about: it gives up its resources and its slot."""
        entry.ready = False
        self._slots.free()
        self._release(entry)

    # --- endings ----------------------------------------------------------------------------------------

    def end(self, ending: CallEnding) -> None:
        """End a call, and every call that cannot continue without it."""
        endings = deque((ending,))
        while endings:
            current = endings.popleft()
            entry, call = current.entry, current.call
            if entry.call.status in ENDED:
                # Reached along two dependencies.
                continue
            self.advance(entry, current.action, call, call.ended_at, current.actor, current.reason, current.answer)
            self._remove(entry, call)
            if current.detach:
                self.detach_duplicates(entry)
            for follower in () if current.alone else entry.followers:
                follower.unfollow(entry)
                if follower.call.status in ENDED:
                    continue
                if follower.leader is entry:
                    endings.append(self._ending_of_duplicate(follower, call))
                elif _is_unfinished(call):
                    endings.append(not_started(follower, call.ended_at))
                elif call.status is not CallStatus.SUCCESS and follower.needs(entry):
                    endings.append(cancellation(follower, _failed_dependency(call), call.ended_at))
                elif follower.call.status is CallStatus.SCHEDULED:
                    self.mark_ready(follower)

    def _remove(self, entry: BatchedCall, call: CompletedToolCall) -> None:
        call_id = entry.request.call_id
        del self.open[call_id]
        self.ended[call_id] = call.status
        self._unreported.append(call)
        if entry.task is not None:
            self._slots.free()
        self._release(entry)
        entry.batch.call_ended()

    def _release(self, entry: BatchedCall) -> None:
        for freed in self._locks.release(entry.request.call_id):
            self._slots.queue(freed, self.open[freed].request.priority)

    def _ending_of_duplicate(self, follower: BatchedCall, leader: CompletedToolCall) -> CallEnding:
        """The ending of a call whose identical leader ran for both."""
        request, reason = follower.request, f"identical to {leader.request.call_id}"
        if isinstance(leader, CancelledToolCall):
            return CallEnding(follower, CallAction.CANCEL, replace(leader, request=request), reason=reason)
        assert follower.validated is not None
        started_at = leader.started_at if isinstance(leader, SuccessfulToolCall) else leader.ended_at
        executing = ExecutingToolCall(request, follower.validated.tool, started_at)
        self.advance(follower, CallAction.EXECUTE, executing, leader.ended_at, reason=reason)
        action = CallAction.SUCCEED if isinstance(leader, SuccessfulToolCall) else CallAction.FAIL
        return CallEnding(follower, action, replace(leader, request=request), reason=reason)

    def detach_duplicates(self, entry: BatchedCall) -> None:
        """Let the calls that are identical to this one continue without it; the first of them leads the others."""
        duplicates = [each for each in entry.followers if each.leader is entry and each.call.status not in ENDED]
        if not duplicates:
            return
        entry.followers = [each for each in entry.followers if each not in duplicates]
        leader, *others = duplicates
        leader.leader = None
        leader.unfollow(entry)
        for other in others:
            other.leader = leader
            other.unfollow(entry)
            other.follow(leader)
        self.detached.append(leader)
        self.reorder(entry.batch)

    def reorder(self, batch: CallBatch) -> None:
        """Compute the order of a batch again: a call has joined it, or has other arguments."""
        if batch.order is not None:
            for entry in batch.order.compute_again():
                if entry.call.status is CallStatus.SCHEDULED and entry not in self.detached:
                    self.mark_ready(entry)

    def take_detached(self) -> list[BatchedCall]:
        """Calls that must be scheduled again, since their leader no longer runs for them."""
        detached, self.detached = self.detached, []
        return [entry for entry in detached if entry.call.status not in ENDED]

    def take_completed(self) -> list[CompletedToolCall]:
        """The calls that have ended since the last time."""
        completed, self._unreported = self._unreported, []
        return completed

    @property
    def has_unreported(self) -> bool:
        """Whether no call is open, and ended calls have not been reported."""
        return not self.open and bool(self._unreported)


def cancellation(entry: BatchedCall, reason: str, at: datetime, actor: Actor = SYSTEM) -> CallEnding:
    return CallEnding(entry, CallAction.CANCEL, CancelledToolCall(entry.request, reason, at), actor, reason)


def not_started(entry: BatchedCall, at: datetime) -> CallEnding:
    """The ending of a call that must come after one that is unfinished."""
    ended = CancelledToolCall(entry.request, NOT_STARTED, at, not_started=True)
    return CallEnding(entry, CallAction.CANCEL, ended, reason=NOT_STARTED)


def _is_unfinished(call: CompletedToolCall) -> bool:
    if isinstance(call, CancelledToolCall):
        return call.not_started
    return isinstance(call, ErroredToolCall) and call.error.code == UnfinishedCode.SUSPENDED


def _failed_dependency(call: CompletedToolCall) -> str:
    what = f"It depends on {call.request.call_id} ({call.request.tool}), which"
    if isinstance(call, ErroredToolCall):
        return f"{what} failed: {call.error.message}"
    assert isinstance(call, CancelledToolCall)
    return f"{what} was cancelled: {call.reason}"
