"""One turn of one agent: what it has said and done so far, and the steps that the loop takes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Final

from punchlist.agent.budget import Budget
from punchlist.agent.context import ModelContext, state_text
from punchlist.agent.continuation import Reason, Situation, TurnCounters, ending_text
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
from punchlist.agent.list_state import ListSource, ListState
from punchlist.agent.message_kinds import CONTINUATION, REMINDER, RESUMED, TEXT
from punchlist.agent.reminders import reminder
from punchlist.agent.restore import RestoredTurn, restore
from punchlist.agent.result import TurnResult
from punchlist.agent.tool_execution import ToolExecution
from punchlist.agent.turn_log import TurnLog
from punchlist.errors import PunchlistError
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.kernel.ids import new_id
from punchlist.kernel.interrupt import run_unless_cancelled, sleep_unless_cancelled
from punchlist.models.model import CallReturn, FinishReason, Model, ModelError, Reply, RequestedCall, UserText
from punchlist.storage.async_bridge import AsyncBridge

CUT_OFF: Final = {
    FinishReason.LENGTH: "the model was cut off: its reply reached the limit of length",
    FinishReason.CONTENT_FILTER: "the model's reply was held back by a content filter",
    FinishReason.ERROR: "the model broke off with an error",
}
LONGEST_PAUSE: Final = 60.0
OVERTIME: Final = "the turn's time is up"


@dataclass(frozen=True, slots=True)
class TurnDeps:
    """What a turn works with."""

    model: Model
    calling: ToolExecution
    lists: ListSource
    record: TurnLog
    aside: AsyncBridge
    tools: Collection[str] = ()
    tell: EventListener | None = None


class Turn:
    def __init__(
        self,
        agent: AgentDefinition,
        turn_id: str,
        context: ModelContext,
        means: TurnDeps,
        signal: CancelSignal,
        purse: Budget,
        message: str | None = None,
    ) -> None:
        """`message` is what somebody says to an agent that goes on with a turn."""
        self._message = message
        self._agent = agent
        self._id = turn_id
        self._context = context
        self._means = means
        self._cancelled = signal
        self._signal = CancelSignal(signal)
        """Set when somebody has ended the turn, or when its time is up."""
        self._timer: asyncio.TimerHandle | None = None
        self._begun = monotonic()
        self._spent = TurnCounters()
        self._purse = purse
        self._failed: str | None = None
        self._interrupted = False
        self._waiting: Sequence[str] = ()
        self._view = ListState()
        self._changed_at = 0
        """The iteration in which a list last changed."""
        self._continued_at: object = None
        """How the lists were when the model was last sent back to them."""
        self._sent_back = False
        """It was, and has not stopped since."""
        self._reminded_at: object = None
        self._text = ""
        self._restored: RestoredTurn | None = None

    async def begin(self, goal: str) -> None:
        self._watch_the_clock()
        await self._look()
        await self._say(goal, TEXT)

    async def restore(self) -> Reply | None:
        """Go on where the turn was left: with its last reply, when it is not known what came of that."""
        self._watch_the_clock()
        self._restored = before = restore(await self._means.record.read())
        self._context.add(*before.messages)
        cost = self._means.model.info.cost(before.usage) or 0.0
        self._purse.restore(before.usage, cost)
        self._spent = before.spent
        self._text = next((one.text for one in reversed(before.messages) if isinstance(one, Reply) and one.text), "")
        self._changed_at = before.spent.iterations
        if before.reply is not None:
            self._failed = CUT_OFF.get(before.reply.finish)
        await self._look()
        # As much as a list has been given: it may have become clear just before.
        allowed = self._agent.limits.iterations(0, before.spent.iterations, bool(self._view.items))
        self._spent = self._spent._replace(allowed=allowed)
        if before.reminded:
            self._reminded_at = self._view.version
        return before.reply

    def _watch_the_clock(self) -> None:
        if (seconds := self._agent.limits.seconds) is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._signal.set, OVERTIME)

    async def _look(self) -> None:
        """See what has become of the lists, by our own calls or by anybody's."""
        before, self._view = self._view, await self._means.aside(self._means.lists.read)
        if self._view.version != before.version:
            self._changed_at = self._spent.iterations
        if self._view.items != before.items:
            self._tell(ListChanged(self._agent.name, self._id, self._view))
        for problem in self._view.problems:
            if problem not in before.problems:
                self.note(problem)

    async def _say(self, text: str, kind: str) -> None:
        """Something that the model is told, on record first."""
        said = UserText(text)
        await self._means.record.say(said, kind)
        self._context.add(said)

    # --- the model ----------------------------------------------------------------------------------------

    async def ask(self) -> Reply:
        """A reply, on record; an empty one when there is none, and then the turn has failed or was cancelled."""
        self._restored = None
        if self._message is not None:
            message, self._message = self._message, None
            await self._say(message, TEXT)
        await self._remind()
        state = state_text(self._view.text)
        request = self._context.request(state)
        self._means.record.asks(self._means.model.name, request, state)
        try:
            reply = await run_unless_cancelled(self._signal, self._means.model.ask(request, self._hear))
        except ModelError as error:
            self._failed = str(error)
            await self._means.record.failed(self._failed)
            return Reply(finish=FinishReason.ERROR)
        if reply is None:
            self._interrupted = True
            await self._means.record.failed(self._signal.reason or "")
            return Reply()
        calls = tuple([RequestedCall(new_id(), call.tool, call.arguments) for call in reply.calls])
        reply = Reply(reply.text, calls, reply.finish, reply.usage)
        self._failed = CUT_OFF.get(reply.finish)
        self._count(reply)
        await self._means.record.reply(reply)
        self._context.add(reply)
        self._tell(ReplyReceived(self._agent.name, self._id, reply.text, len(reply.calls)))
        return reply

    async def _remind(self) -> None:
        if self._view.version == self._reminded_at:
            return
        asked = self._spent.iterations
        text = reminder(
            asked=asked,
            since_change=asked - self._changed_at,
            after=self._agent.remind_after,
            open=self._view.open,
            tools=self._means.tools,
            # Later in a session it has been said.
            listed=bool(self._view.text) or not self._context.first,
        )
        if text is not None:
            self._reminded_at = self._view.version
            await self._say(text, REMINDER)

    def _count(self, reply: Reply) -> None:
        self._text = reply.text or self._text
        self._purse.charge(reply.usage, self._means.model.info.cost(reply.usage) or 0.0)
        self._spent = self._spent._replace(iterations=self._spent.iterations + 1, context=reply.usage.total)

    # --- its calls ----------------------------------------------------------------------------------------

    async def run_calls(self, reply: Reply) -> None:
        """Run what the reply wants; every call gets exactly one result, unless it waits for a person."""
        if not reply.calls:
            return
        before, self._restored = self._restored, None
        left_here = before is not None and before.reply is reply
        # Of what was left, some may have run: that is on record, whatever is wanted now.
        if self._failed or (self._signal.is_set and not left_here):
            self._answer([CallReturn(call.id, call.tool, "Not run.", failed=True) for call in reply.calls])
            return
        if before is not None and left_here:
            left = [call for call in reply.calls if call.id not in before.answered]
            came = await self._means.calling.resume(left, self._signal)
        else:
            came = await self._means.calling.run(reply.calls, self._signal)
        self._waiting = came.waiting
        self._answer(came.results)

    def _answer(self, results: Sequence[CallReturn]) -> None:
        self._means.record.keep(results)
        self._context.add(*results)

    # --- what comes of it ---------------------------------------------------------------------------------

    async def situation(self, reply: Reply) -> Situation:
        await self._look()
        over = None if self._view.turn_end_reason is None else f"somebody ended the turn ({self._view.turn_end_reason})"
        spent, limits = self._spent, self._agent.limits
        allowed = limits.iterations(spent.allowed, spent.iterations, bool(self._view.open))
        unchanged = spent.unchanged
        if self._sent_back and not reply.calls:
            unchanged = unchanged + 1 if self._view.version == self._continued_at else 0
            self._sent_back = False
        self._spent = spent._replace(
            tokens=self._purse.usage.total,
            cost=self._purse.cost,
            seconds=monotonic() - self._begun,
            allowed=allowed,
            unchanged=unchanged,
        )
        return Situation(
            open=self._view.open,
            counters=self._spent,
            limits=limits,
            enabled=self._agent.todo_driven,
            has_calls=bool(reply.calls),
            context_window=self._means.model.info.context_window,
            cancelled=over if self._cancelled.suspends else self._cancelled.reason or over,
            suspended=self._cancelled.reason if self._cancelled.suspends else None,
            message_pending=self._message is not None,
            # A reply that came in time and leaves nothing to do is an end of its own.
            timed_out=self._signal.reason == OVERTIME and bool(self._interrupted or reply.calls or self._view.open),
            failure=self._failed,
            pending_approvals=self._waiting,
        )

    async def send_continuation(self, prompt: str) -> None:
        """Send the model back to its list."""
        if self._restored is not None:
            # It had stopped because it had to wait, or before anybody could send it back.
            self._restored = None
            await self._say(prompt, RESUMED)
            return
        self._continued_at, self._sent_back = self._view.version, True
        self._spent = self._spent._replace(continuations=self._spent.continuations + 1)
        await sleep_unless_cancelled(
            self._signal, min(self._agent.check_interval * 2.0**self._spent.unchanged, LONGEST_PAUSE)
        )
        await self._say(prompt, CONTINUATION)
        most = self._agent.limits.continuations
        self._tell(Continued(self._agent.name, self._id, self._spent.continuations, most))

    async def suspend(self, on: Sequence[str]) -> TurnResult:
        """The turn waits; it stays open, for somebody to go on with it."""
        why = "; ".join(on)
        await self._means.record.suspend(f"{Reason.WAITING}: {why}")
        return self._ended(Reason.WAITING, why)

    async def end(self, reason: Reason, why: str) -> TurnResult:
        await self._look()
        told = "" if reason is Reason.COMPLETED else ending_text(reason, why, self._view.open)
        await self._means.record.end(reason, why, told)
        return self._ended(reason, why)

    async def fail(self, reason: Reason, why: str) -> TurnResult:
        """Something happened that the loop does not know; it is written down as far as that is possible."""
        told = ending_text(reason, why, self._view.open)
        with suppress(PunchlistError):
            await self._means.record.end(reason, why, told)
        return self._ended(reason, why)

    def _ended(self, reason: Reason, why: str) -> TurnResult:
        if self._timer is not None:
            self._timer.cancel()
        spent, left = self._spent, self._view.open
        ended = TurnResult(
            reason,
            why,
            self._text,
            spent.iterations,
            spent.continuations,
            self._purse.usage,
            left,
            self._view.items,
        )
        self._tell(TurnEnded(self._agent.name, self._id, ended))
        return ended

    # --- who watches --------------------------------------------------------------------------------------

    def _tell(self, news: AgentEvent) -> None:
        if self._means.tell is not None:
            self._means.tell(news)

    def _hear(self, text: str) -> None:
        self._tell(TextDelta(self._agent.name, self._id, text))

    def note(self, text: str) -> None:
        self._tell(NoteAdded(self._agent.name, self._id, text))
