"""The open calls of a scheduler: the only place where a call changes its state, and what follows from that."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from punchlist.errors import IllegalTransition, NotFound
from punchlist.kernel.actors import SYSTEM, Actor
from punchlist.kernel.lifecycle import NEW
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.batch import CallBatch, CallEntry
from punchlist.toolcalls.concurrency import CallSlots, ResourceLocks
from punchlist.toolcalls.lifecycle import ENDED, TOOL_CALL, CallAction, CallStatus
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


class CallEnding(NamedTuple):
    """The last step of a call."""

    entry: CallEntry
    action: CallAction
    call: CompletedToolCall
    actor: Actor = SYSTEM
    reason: str = ""
    answer: ApprovalAnswer | None = None
    detach: bool = False
    """It says nothing about identical calls: they go on without it."""


class CallTable:
    def __init__(self, journal: Journal | None, listeners: Listeners, concurrent: int) -> None:
        self._journal = journal
        self._listeners = listeners
        self.open: dict[str, CallEntry] = {}
        self.ended: dict[str, CallStatus] = {}
        self._completed: list[CompletedToolCall] = []
        self._ready: list[CallEntry] = []
        self.detached: list[CallEntry] = []
        self._claims = ResourceLocks()
        self._slots = CallSlots(concurrent)

    def has_seen(self, call_id: str) -> bool:
        return call_id in self.open or call_id in self.ended

    def awaiting_approval(self) -> list[WaitingToolCall]:
        return [entry.call for entry in self.open.values() if isinstance(entry.call, WaitingToolCall)]

    def waiting_entry(self, call_id: str) -> CallEntry:
        entry = self.open.get(call_id)
        if entry is None and call_id not in self.ended:
            raise NotFound(f"There is no call {call_id!r} that waits for approval.")
        status = self.ended[call_id] if entry is None else entry.call.status
        if entry is None or status is not CallStatus.AWAITING_APPROVAL:
            raise IllegalTransition(f"Call {call_id!r} does not wait for approval: it is {status}.")
        return entry

    # --- steps ------------------------------------------------------------------------------------------

    def receive(self, request: ToolCallRequest, batch: CallBatch, at: datetime, by: Actor) -> CallEntry:
        entry = CallEntry(ValidatingToolCall(request), batch)
        TOOL_CALL.advance(NEW, CallAction.RECEIVE, by.role)
        self.open[request.call_id] = entry
        batch.add(entry)
        self._tell(Transition(at, CallAction.RECEIVE, None, entry.call, by, ""))
        return entry

    def restore(self, call: WaitingToolCall, admitted: ValidatedCall, batch: CallBatch) -> None:
        """A call that has a past: nothing happens to it here."""
        entry = CallEntry(call, batch)
        entry.validated = admitted
        self.open[call.request.call_id] = entry
        batch.add(entry)

    def advance(
        self,
        entry: CallEntry,
        action: CallAction,
        call: ToolCall,
        at: datetime,
        by: Actor = SYSTEM,
        reason: str = "",
        answer: ApprovalAnswer | None = None,
    ) -> None:
        came_from = entry.call.status
        if TOOL_CALL.advance(came_from, action, by.role) is not call.status:
            raise AssertionError(f"{action} does not lead to {call.status}")
        entry.call = call
        transition = Transition(at, action, came_from, call, by, reason, answer)
        if self._journal is not None:
            self._journal.record(transition)
        self._listeners.changed(transition)

    def _tell(self, transition: Transition) -> None:
        if self._journal is not None:
            self._journal.record(transition)
        self._listeners.changed(transition)

    # --- whose turn it is -------------------------------------------------------------------------------

    def mark_ready(self, entry: CallEntry) -> None:
        """Nothing but its turn is missing, once what it waits for has ended."""
        if not entry.blocked_by:
            self._ready.append(entry)

    def startable(self) -> Iterator[CallEntry]:
        """The calls that may start now, each with a slot of its own."""
        if self._ready:
            self._line_up()
        while (call_id := self._slots.next()) is not None:
            found = self.open.get(call_id)
            if found is None or found.call.status is not CallStatus.SCHEDULED:
                self._slots.free()
            else:
                yield found

    def _line_up(self) -> None:
        ready, self._ready = self._ready, []
        if len(ready) > 1:
            ready.sort(key=_urgency)
        for entry in ready:
            assert entry.validated is not None
            request = entry.request
            # It may have been cancelled since.
            if entry.call.status is CallStatus.SCHEDULED and self._claims.claim(
                request.call_id, entry.validated.resources
            ):
                self._slots.queue(request.call_id, request.priority)

    # --- endings ----------------------------------------------------------------------------------------

    def end(self, ending: CallEnding) -> None:
        """End a call, and with it all that cannot go on without it."""
        endings = deque((ending,))
        while endings:
            one = endings.popleft()
            if one.entry.call.status in ENDED:
                # Reached on two ways.
                continue
            self.advance(one.entry, one.action, one.call, one.call.ended_at, one.actor, one.reason, one.answer)
            self._let_go(one.entry, one.call)
            if one.detach:
                self.detach_duplicates(one.entry)
            for follower in one.entry.followers or ():
                follower.unfollow(one.entry)
                if follower.call.status in ENDED:
                    continue
                if follower.leader is one.entry:
                    endings.append(self._as_its_twin(follower, one.call))
                elif one.call.status is not CallStatus.SUCCESS:
                    endings.append(cancellation(follower, _missing(one.call), one.call.ended_at))
                elif follower.call.status is CallStatus.SCHEDULED:
                    self.mark_ready(follower)

    def _let_go(self, entry: CallEntry, call: CompletedToolCall) -> None:
        call_id = entry.request.call_id
        del self.open[call_id]
        self.ended[call_id] = call.status
        self._completed.append(call)
        if entry.task is not None:
            self._slots.free()
        for freed in self._claims.release(call_id):
            self._slots.queue(freed, self.open[freed].request.priority)
        entry.batch.call_ended()

    def _as_its_twin(self, follower: CallEntry, leaders: CompletedToolCall) -> CallEnding:
        """What becomes of a call whose identical twin ran for both."""
        request, why = follower.request, f"as {leaders.request.call_id}, which is the same call"
        if isinstance(leaders, CancelledToolCall):
            return CallEnding(follower, CallAction.CANCEL, replace(leaders, request=request), reason=why)
        assert follower.validated is not None
        started = leaders.started_at if isinstance(leaders, SuccessfulToolCall) else leaders.ended_at
        executing = ExecutingToolCall(request, follower.validated.tool, started)
        self.advance(follower, CallAction.EXECUTE, executing, leaders.ended_at, reason=why)
        if isinstance(leaders, SuccessfulToolCall):
            return CallEnding(follower, CallAction.SUCCEED, replace(leaders, request=request), reason=why)
        return CallEnding(follower, CallAction.FAIL, replace(leaders, request=request), reason=why)

    def detach_duplicates(self, entry: CallEntry) -> None:
        """Identical calls that counted on this one: the first of them stands in for the others from now on."""
        twins = [one for one in entry.followers or () if one.leader is entry and one.call.status not in ENDED]
        if not twins:
            return
        entry.followers = [one for one in entry.followers or () if one not in twins]
        first, *others = twins
        first.leader, first.blocked_by = None, ()
        for other in others:
            other.leader, other.blocked_by = first, ()
            other.follow(first)
        self.detached.append(first)

    def take_detached(self) -> list[CallEntry]:
        """Calls that have to be looked at anew, since nobody runs for them any more."""
        alone, self.detached = self.detached, []
        return [entry for entry in alone if entry.call.status not in ENDED]

    def take_completed(self) -> list[CompletedToolCall]:
        """Those that ended since this was last asked."""
        completed, self._completed = self._completed, []
        return completed

    @property
    def has_unreported(self) -> bool:
        """Whether nothing is open, and somebody has not heard of it yet."""
        return not self.open and bool(self._completed)


def cancellation(entry: CallEntry, reason: str, at: datetime, by: Actor = SYSTEM) -> CallEnding:
    return CallEnding(entry, CallAction.CANCEL, CancelledToolCall(entry.request, reason, at), by, reason)


def _urgency(entry: CallEntry) -> int:
    return -entry.request.priority


def _missing(call: CompletedToolCall) -> str:
    what = f"It depends on {call.request.call_id} ({call.request.tool}), which"
    if isinstance(call, ErroredToolCall):
        return f"{what} failed: {call.error.message}"
    assert isinstance(call, CancelledToolCall)
    return f"{what} was cancelled: {call.reason}"
