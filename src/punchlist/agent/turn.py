"""One turn of one agent: its request, its result, its dependencies, and the steps that the loop takes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from punchlist.agent.budget import Budget
from punchlist.agent.context import ModelContext, state_text
from punchlist.agent.continuation import OpenItem, Reason, Situation, TurnCounters, ending_text
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.events import (
    AgentEvent,
    Continued,
    EventListener,
    ListChanged,
    NoteAdded,
    ReplyReceived,
    TextDelta,
    TurnEnded,
)
from punchlist.agent.list_state import ListItem, ListState, TurnLists
from punchlist.agent.message_kinds import CONTINUATION, REMINDER, RESUMED, TEXT
from punchlist.agent.prompts import reminder
from punchlist.agent.resume import RestoredTurn, restore
from punchlist.agent.tool_execution import ToolExecution
from punchlist.agent.transcript import TurnLog
from punchlist.conversations.service import Fence
from punchlist.errors import PunchlistError
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.cancellation import CancelSignal, run_unless_cancelled, sleep_unless_cancelled
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import visible_block
from punchlist.models.model import CallReturn, FinishReason, Model, ModelError, Reply, RequestedCall, Usage, UserText
from punchlist.storage.async_bridge import AsyncBridge

CUT_OFF: Final = {
    FinishReason.LENGTH: "the model's reply reached the length limit",
    FinishReason.CONTENT_FILTER: "a content filter held back the model's reply",
    FinishReason.ERROR: "the model ended its reply with an error",
}
MAX_PAUSE: Final = 60.0
MAX_FAILURE_LENGTH: Final = 10_000
"""Of a provider's error."""
OVERTIME: Final = "the time limit of the turn is reached"


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn to run: a new one with a goal, or `goal=None` to resume an interrupted one."""

    agent: AgentDefinition
    signal: CancelSignal
    goal: str | None
    parent: str | None = None
    """The turn that delegated this one."""
    depth: int = 0
    max_depth: int | None = None
    """The delegation depth of the agent at the top."""
    budget: Budget = field(default_factory=Budget)
    message: str | None = None
    """A message from a person to an agent that resumes a turn."""
    owner_is_dead: bool = False
    """The process that owned the turn is known to be dead."""
    fence: Fence | None = None
    """Rejects writes of a process that lost the turn to another."""
    left_open_on_outage: bool = False
    """The caller resumes the turn after a database outage, so the turn stays open."""

    @property
    def actor(self) -> Actor:
        return Actor(self.agent.role if self.parent is None else Role.WORKER, self.agent.name)

    @property
    def depth_limit(self) -> int:
        return self.agent.delegation_depth if self.max_depth is None else self.max_depth


@dataclass(frozen=True, slots=True)
class TurnResult:
    turn_id: str
    reason: Reason
    why: str
    last_text: str
    """The text of the agent's last reply that has one."""
    iterations: int
    continuations: int
    usage: Usage
    open: tuple[OpenItem, ...]
    items: tuple[ListItem, ...] = ()
    """All items of the turn's lists."""

    @property
    def ending(self) -> str:
        """How the turn ended and what is left; empty if it was completed."""
        return "" if self.reason is Reason.COMPLETED else ending_text(self.reason, self.why, self.open)

    @property
    def text(self) -> str:
        """The final message for the person, including open items (T14)."""
        return "\n\n".join(part for part in (self.last_text, self.ending) if part)


@dataclass(frozen=True, slots=True)
class TurnDeps:
    """Everything a turn needs, built once by `AgentRuntime`."""

    turn_id: str
    request: TurnRequest
    model: Model
    tools: Collection[str]
    execution: ToolExecution
    lists: TurnLists
    log: TurnLog
    context: ModelContext
    bridge: AsyncBridge
    on_event: EventListener | None = None


def _too_many(call: RequestedCall, limit: int) -> CallReturn:
    text = f"Not run: only the first {limit} calls of a reply are run. Call it again in your next reply, if needed."
    return CallReturn(call.id, call.tool, text, failed=True)


class Turn:
    def __init__(self, deps: TurnDeps) -> None:
        request = deps.request
        self._deps = deps
        self._context = deps.context
        self._agent = request.agent
        self._budget = request.budget
        self._message = request.message
        self._cancelled = request.signal
        self._signal = CancelSignal(request.signal)
        """Set when the turn is cancelled or its time limit is reached."""
        self._timer: asyncio.TimerHandle | None = None
        self._started_at = monotonic()
        self._counters = TurnCounters()
        self._failure: str | None = None
        self._interrupted = False
        self._pending_approvals: Sequence[str] = ()
        self._lists = ListState()
        self._changed_at = 0
        """The iteration in which a list last changed."""
        self._continued_at: object = None
        """The version of the lists at the last continuation."""
        self._continuing = False
        """A continuation was sent and the model has not stopped since."""
        self._reminded_at: object = None
        self._text = ""
        self._restored: RestoredTurn | None = None

    async def begin(self, goal: str) -> None:
        self._start_timer()
        await self._read_lists()
        await self._add_message(goal, TEXT)

    async def restore(self) -> Reply | None:
        """Resume from the stored messages. Returns the last reply if its calls or its decision are unfinished."""
        self._start_timer()
        self._restored = before = restore(await self._deps.log.read())
        self._context.add(*before.messages)
        self._budget.restore(before.usage, self._deps.model.info.cost(before.usage) or 0.0)
        self._counters = before.counters
        self._text = before.last_text
        self._changed_at = before.counters.iterations
        if before.reply is not None:
            self._failure = CUT_OFF.get(before.reply.finish)
        await self._read_lists()
        # The list may have become clear just before, so any item grants the iterations of an open list.
        allowed = self._agent.limits.iterations(0, before.counters.iterations, bool(self._lists.items))
        self._counters = self._counters._replace(allowed=allowed)
        if before.reminded:
            self._reminded_at = self._lists.version
        return before.reply

    def _start_timer(self) -> None:
        if (seconds := self._agent.limits.seconds) is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._signal.set, OVERTIME)

    async def _read_lists(self) -> None:
        """Read the lists; other processes and people change them too."""
        before, self._lists = self._lists, await self._deps.bridge(self._deps.lists.read)
        if self._lists.version != before.version:
            self._changed_at = self._counters.iterations
        if self._lists.items != before.items:
            self._emit(ListChanged(self._agent.name, self._deps.turn_id, self._lists))
        for problem in self._lists.problems:
            if problem not in before.problems:
                self.note(problem)

    async def _add_message(self, text: str, kind: str) -> None:
        """Store a message to the model, then add it to the context."""
        message = UserText(text)
        await self._deps.log.save_message(message, kind)
        self._context.add(message)

    # --- the model ----------------------------------------------------------------------------------------

    async def ask(self) -> Reply:
        """The model's reply, stored. An empty reply means that the request failed or was cancelled."""
        self._restored = None
        if self._message is not None:
            message, self._message = self._message, None
            await self._add_message(message, TEXT)
        await self._remind()
        state = state_text(self._lists.text)
        request, log, model = self._context.request(state), self._deps.log, self._deps.model
        log.request_sent(model.name, request, state)
        try:
            reply = await run_unless_cancelled(self._signal, model.ask(request, self._on_text))
        except ModelError as error:
            # Written by the provider: it may contain characters that cannot be stored.
            self._failure = visible_block(str(error)[:MAX_FAILURE_LENGTH])
            await log.save_failure(self._failure)
            return Reply(finish=FinishReason.ERROR)
        if reply is None:
            self._interrupted = True
            await log.save_failure(self._signal.reason or "")
            return Reply()
        calls = tuple([RequestedCall(new_id(), call.tool, call.arguments) for call in reply.calls])
        reply = Reply(reply.text, calls, reply.finish, reply.usage)
        self._failure = CUT_OFF.get(reply.finish)
        self._count(reply)
        await log.save_reply(reply)
        self._context.add(reply)
        self._emit(ReplyReceived(self._agent.name, self._deps.turn_id, reply.text, len(reply.calls)))
        return reply

    async def _remind(self) -> None:
        if self._lists.version == self._reminded_at:
            return
        requests = self._counters.iterations
        text = reminder(
            requests=requests,
            since_change=requests - self._changed_at,
            after=self._agent.remind_after,
            open=self._lists.open,
            tools=self._deps.tools,
            # The initial reminder is for the first turn of a session only.
            listed=bool(self._lists.text) or not self._context.first_turn,
        )
        if text is not None:
            self._reminded_at = self._lists.version
            await self._add_message(text, REMINDER)

    def _count(self, reply: Reply) -> None:
        self._text = reply.text or self._text
        self._budget.charge(reply.usage, self._deps.model.info.cost(reply.usage) or 0.0)
        self._counters = self._counters._replace(iterations=self._counters.iterations + 1, context=reply.usage.total)

    # --- its calls ----------------------------------------------------------------------------------------

    async def run_calls(self, reply: Reply) -> None:
        """Run the calls of a reply. Each gets exactly one result, unless it waits for a person."""
        if not reply.calls:
            return
        before, self._restored = self._restored, None
        resumed = before is not None and before.reply is reply
        # Calls of a restored reply may have run already, so their results are looked up even now.
        if self._failure or (self._signal.is_set and not resumed):
            self._add_results([CallReturn(call.id, call.tool, "Not run.", failed=True) for call in reply.calls])
            return
        limit = self._agent.limits.calls_per_reply
        if before is not None and resumed:
            unanswered = [call for call in reply.calls[:limit] if call.id not in before.answered]
            done = await self._deps.execution.resume(unanswered, self._signal)
            excess = [call for call in reply.calls[limit:] if call.id not in before.answered]
        else:
            done = await self._deps.execution.run(reply.calls[:limit], self._signal)
            excess = list(reply.calls[limit:])
        self._pending_approvals = done.waiting
        self._add_results([*done.results, *(_too_many(call, limit) for call in excess)])

    def _add_results(self, results: Sequence[CallReturn]) -> None:
        self._deps.log.add_results(results)
        self._context.add(*results)

    # --- the decision and its effects ---------------------------------------------------------------------

    async def situation(self, reply: Reply) -> Situation:
        await self._read_lists()
        end_reason = self._lists.turn_end_reason
        ended = None if end_reason is None else f"the turn was ended from outside ({end_reason})"
        counters, limits = self._counters, self._agent.limits
        allowed = limits.iterations(counters.allowed, counters.iterations, bool(self._lists.open))
        unchanged = counters.unchanged
        if self._continuing and not reply.calls:
            unchanged = unchanged + 1 if self._lists.version == self._continued_at else 0
            self._continuing = False
        self._counters = counters._replace(
            tokens=self._budget.usage.total,
            cost=self._budget.cost,
            seconds=monotonic() - self._started_at,
            allowed=allowed,
            unchanged=unchanged,
        )
        return Situation(
            open=self._lists.open,
            counters=self._counters,
            limits=limits,
            enabled=self._agent.todo_driven,
            has_calls=bool(reply.calls),
            context_window=self._deps.model.info.context_window,
            cancelled=ended if self._cancelled.suspends else self._cancelled.reason or ended,
            suspended=self._cancelled.reason if self._cancelled.suspends else None,
            message_pending=self._message is not None,
            # A reply that arrived in time and leaves nothing to do completes the turn.
            timed_out=self._signal.reason == OVERTIME and bool(self._interrupted or reply.calls or self._lists.open),
            failure=self._failure,
            pending_approvals=self._pending_approvals,
        )

    async def send_continuation(self, prompt: str) -> None:
        """Send the model back to its list."""
        if self._restored is not None:
            # The turn was suspended or interrupted before a continuation was sent: this one does not count.
            self._restored = None
            await self._add_message(prompt, RESUMED)
            return
        self._continued_at, self._continuing = self._lists.version, True
        self._counters = self._counters._replace(continuations=self._counters.continuations + 1)
        await sleep_unless_cancelled(
            self._signal, min(self._agent.check_interval * 2.0**self._counters.unchanged, MAX_PAUSE)
        )
        await self._add_message(prompt, CONTINUATION)
        limit = self._agent.limits.continuations
        self._emit(Continued(self._agent.name, self._deps.turn_id, self._counters.continuations, limit))

    async def suspend(self, on: Sequence[str]) -> TurnResult:
        """End this run of the turn; the turn stays open and can be resumed."""
        why = "; ".join(on)
        await self._deps.log.suspend(f"{Reason.WAITING}: {why}")
        return self._result(Reason.WAITING, why)

    async def end(self, reason: Reason, why: str) -> TurnResult:
        await self._read_lists()
        ending = "" if reason is Reason.COMPLETED else ending_text(reason, why, self._lists.open)
        await self._deps.log.end(reason, why, ending)
        return self._result(reason, why)

    async def fail(self, reason: Reason, why: str) -> TurnResult:
        """End the turn after an unexpected error, and store that if the database allows it."""
        with suppress(PunchlistError):
            await self._deps.log.end(reason, why, ending_text(reason, why, self._lists.open))
        return self._result(reason, why)

    def _result(self, reason: Reason, why: str) -> TurnResult:
        if self._timer is not None:
            self._timer.cancel()
        result = TurnResult(
            self._deps.turn_id,
            reason,
            why,
            self._text,
            self._counters.iterations,
            self._counters.continuations,
            self._budget.usage,
            self._lists.open,
            self._lists.items,
        )
        self._emit(TurnEnded(self._agent.name, self._deps.turn_id, result))
        return result

    # --- events -------------------------------------------------------------------------------------------

    def _emit(self, event: AgentEvent) -> None:
        if self._deps.on_event is not None:
            self._deps.on_event(event)

    def _on_text(self, text: str) -> None:
        self._emit(TextDelta(self._agent.name, self._deps.turn_id, text))

    def note(self, text: str) -> None:
        self._emit(NoteAdded(self._agent.name, self._deps.turn_id, text))
