"""One turn of one agent: the steps that the loop takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from punchlist.agent.answer import (
    AnswerText,
    announces,
    final_prompt,
    fits,
    is_call_as_text,
    may_report,
)
from punchlist.agent.budget import TurnProgress
from punchlist.agent.context import state_text
from punchlist.agent.continuation import (
    ANNOUNCED_ONLY,
    Continue,
    Exits,
    OpenItem,
    Proceed,
    Reason,
    Situation,
    Stop,
    TurnCounters,
    Wait,
    ending_text,
    limit_reached,
    limit_warning,
)
from punchlist.agent.definitions import CHECKLIST_TOOL
from punchlist.agent.events import (
    AgentEvent,
    Continued,
    ListChanged,
    NoteAdded,
    TurnEnded,
)
from punchlist.agent.item_task import ASK_PERSON
from punchlist.agent.list_state import ListState
from punchlist.agent.message_kinds import CONTINUATION, FINAL, REMINDER, RESUMED, TEXT
from punchlist.agent.model_requests import ModelRequests
from punchlist.agent.named_files import files_text, named_files
from punchlist.agent.prompts import reminder
from punchlist.agent.resume import RestoredTurn, original_request, restore
from punchlist.agent.transcript import LOOP_KINDS
from punchlist.agent.turn_model import TurnDeps, TurnResult
from punchlist.errors import PunchlistError
from punchlist.kernel.cancellation import CancelSignal, sleep_unless_cancelled
from punchlist.kernel.text import one_line, visible
from punchlist.kernel.token_estimate import CHARACTERS_PER_TOKEN, estimated_tokens
from punchlist.models.model import (
    CallReturn,
    FinishReason,
    Reply,
    RequestedCall,
    Usage,
    UserText,
)

CUT_OFF: Final = {
    FinishReason.LENGTH: "the model's reply reached the length limit",
    FinishReason.CONTENT_FILTER: "a content filter held back the model's reply",
    FinishReason.ERROR: "the model ended its reply with an error",
}
MAX_PAUSE: Final = 60.0
OVERTIME: Final = "the time limit of the turn is reached"


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
        self._progress = TurnProgress(deps.work)
        self._failure: str | None = None
        self._pending_approvals: Sequence[str] = ()
        self._lists = ListState()
        self._work = deps.work
        self._reminded_at: object = None
        self._answer = AnswerText()
        self._empty_replies = 0
        self._told_to_act = False
        """The model has been told once that it only announced its work."""
        self._requests = ModelRequests(deps, self._signal, self._emit)
        self._tried_fresh: frozenset[str] = frozenset()
        self._restored: RestoredTurn | None = None
        self._reopened = ""
        """What the model is told about items whose checks fail after a later change."""

    @property
    def lists(self) -> ListState:
        """The lists as they were read last."""
        return self._lists

    @property
    def has_goal(self) -> bool:
        """Acceptance criteria decide whether the turn is completed."""
        return self._deps.judge is not None

    @property
    def missing(self) -> str:
        """What is missing for the goal, according to the last verdict."""
        return self._deps.judge.missing if self._deps.judge is not None else ""

    @property
    def is_planned(self) -> bool:
        """There is a list to work on, and the request of the turn adds nothing to it."""
        return bool(self._lists.open) and self._deps.request.is_planned

    @property
    def answer_text(self) -> str:
        return self._answer.text

    @property
    def goal(self) -> str:
        """The person's request."""
        texts = (message.text for message in self._context.messages if isinstance(message, UserText))
        return original_request(next(texts, ""))

    async def say(self, text: str, kind: str) -> None:
        """Add a message to the model."""
        await self._add_message(text, kind)

    async def begin(self, goal: str) -> None:
        self._start_timer()
        await self._read_lists()
        if self._lists.checklist is not None:
            self._work.begin(self._lists.checklist.items)
        await self._add_message(goal, TEXT)
        await self._show_files(goal)
        if (until := self._deps.request.until) is not None:
            await self._deps.log.save_goal(until.encode())
            self._context.add(UserText(until.text))

    async def _show_files(self, goal: str) -> None:
        """In drive: the files that the request or the item names. A plan that is made without them is guessed."""
        request = self._deps.request
        plans = request.driven is not None and not self.is_planned
        if "read_file" not in self._deps.tools or (request.item is None and not plans):
            return
        paths = named_files(self._deps.folder, [goal] if request.item is None else request.item.texts)
        if paths and (contents := await self._deps.gate.read_files(paths, self._signal)):
            await self._add_message(files_text(contents), TEXT)

    async def restore(self) -> Reply | None:
        """Resume from the stored messages. Returns the last reply if its calls or its decision are unfinished."""
        self._start_timer()
        self._restored = before = restore(await self._deps.log.read())
        self._context.restore(before.messages, before.compactions)
        self._budget.restore(before.usage, self._deps.model.info.cost(before.usage) or 0.0)
        self._work.restore(before.messages)
        self._deps.gate.restore(before.messages)
        if self._deps.request.driven is not None:
            # What the attempts at its items have changed is unknown.
            self._deps.request.passed.changed()
        if self._deps.request.item is not None:
            self._deps.request.item.restore(before.messages)
        for message in before.messages:
            if isinstance(message, Reply):
                self._add_to_answer(message)
                self._requests.next.replied(message)
            elif isinstance(message, UserText):
                self._told_to_act |= message.text == ANNOUNCED_ONLY
        if self._deps.judge is not None:
            self._deps.judge.restore(before.messages)
        if before.reply is not None:
            self._failure = CUT_OFF.get(before.reply.finish)
        await self._read_lists()
        # The list may have become clear just before, so any item grants the iterations of an open list.
        allowed = self._agent.limits.iterations(0, before.counters.iterations, bool(self._lists.items))
        self._progress.restore(before.counters._replace(allowed=allowed))
        if before.reminded:
            self._reminded_at = self._lists.version
        return before.reply

    def _start_timer(self) -> None:
        if (seconds := self._agent.limits.seconds) is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._signal.set, OVERTIME)

    async def _read_lists(self) -> None:
        """Read the lists; other processes and people change them too."""
        before, self._lists = self._lists, await self._deps.bridge(self._deps.lists.read)
        self._progress.lists_read(self._lists)
        if self._lists.items != before.items:
            self._emit(ListChanged(self._agent.name, self._deps.turn_id, self._lists))
        for problem in self._lists.problems:
            if problem not in before.problems:
                self.note(problem)

    async def _add_message(self, text: str, kind: str) -> None:
        """Store a message to the model, then add it to the context."""
        message = UserText(text, from_person=kind not in LOOP_KINDS)
        await self._deps.log.save_message(message, kind)
        self._context.add(message)
        self._requests.next.added(estimated_tokens(text))

    # --- the model ----------------------------------------------------------------------------------------

    async def ask(self) -> Reply:
        """The model's reply, stored. An empty reply means that the request failed or was cancelled."""
        self._restored = None
        if self._message is not None:
            message, self._message = self._message, None
            await self._add_message(message, TEXT)
        first_reminder = await self._remind()
        warning = limit_warning(self._progress.counters, self._agent.limits, bool(self._lists.open))
        state = state_text(self._lists.text, first_reminder or warning or "")
        reply = await self._requests.ask(state)
        if reply is None:
            self._failure = self._requests.failure
            return Reply(finish=FinishReason.ERROR) if self._failure else Reply()
        self._failure = CUT_OFF.get(reply.finish)
        self._add_to_answer(reply)
        self._progress.replied()
        return reply

    async def _remind(self) -> str:
        """Add a reminder if one is due. The first one of a session is part of the state, so that it does not stay."""
        if self._lists.version == self._reminded_at:
            return ""
        requests = self._progress.counters.iterations
        text = reminder(
            requests=requests,
            since_change=self._progress.since_change,
            after=self._agent.remind_after,
            open=self._lists.open,
            tools=self._deps.tools,
            # The initial reminder is for the first turn of a session only.
            listed=bool(self._lists.text) or not self._context.first_turn,
        )
        if text is None:
            return ""
        self._reminded_at = self._lists.version
        if requests == 0:
            return text
        await self._add_message(text, REMINDER)
        return ""

    def _add_to_answer(self, reply: Reply) -> None:
        is_call = not reply.calls and is_call_as_text(reply.text, self._deps.tools)
        if not is_call:
            self._answer.add(reply)
        is_empty = not reply.calls and (is_call or not reply.text.strip()) and self._answer.is_empty
        self._empty_replies = self._empty_replies + 1 if is_empty else 0

    # --- its calls ----------------------------------------------------------------------------------------

    async def run_calls(self, reply: Reply) -> None:
        """Run the calls of a reply. Each gets exactly one result, unless it waits for a person."""
        if not reply.calls:
            if self._deps.request.item is not None and self._failure is None:
                await self._deps.gate.finish_without_call(reply.text, self._signal)
            elif self._failure is None:
                await self._read_lists()
                if not self._lists.open:
                    await self.recheck()
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
            done = await self._deps.gate.resume(unanswered, self._signal)
            excess = [call for call in reply.calls[limit:] if call.id not in before.answered]
        else:
            done = await self._deps.gate.run(reply.calls[:limit], self._signal)
            excess = list(reply.calls[limit:])
        self._pending_approvals = done.waiting
        for why in done.refused:
            self.note(why)
        self._add_results([*done.results, *(_too_many(call, limit) for call in excess)])
        if self._deps.request.item is not None:
            self._deps.request.item.calls_ended(reply.calls, done.results)

    async def recheck(self) -> bool:
        """Before the turn ends as completed: run the checks again that have passed before the last change (V2).

        Returns whether an item is open again.
        """
        failed = await self._deps.gate.recheck(self._signal)
        for text in failed:
            self.note(text.partition("\n")[0])
        self._reopened = "\n\n".join(failed)
        await self._read_lists()
        return bool(failed)

    def _add_results(self, results: Sequence[CallReturn]) -> None:
        self._deps.log.add_results(results)
        before = self._context.length
        self._context.add(*results)
        # The context shortens results that are too long for the window.
        self._requests.next.added((self._context.length - before) // CHARACTERS_PER_TOKEN)

    # --- the decision and its effects ---------------------------------------------------------------------

    async def situation(self, reply: Reply) -> Situation:
        await self._read_lists()
        end_reason = self._lists.turn_end_reason
        ended = None if end_reason is None else f"the turn was ended from outside ({end_reason})"
        if not reply.calls:
            self._progress.stopped()
        self._count_next()
        return Situation(
            open=self._lists.open,
            counters=self._counters,
            limits=self._agent.limits,
            enabled=self._agent.todo_driven and any(self._can_end(item) for item in self._lists.open),
            has_calls=bool(reply.calls),
            finished=self._deps.request.item is not None and self._deps.request.item.exit is not None,
            empty_replies=self._empty_replies,
            has_text=not self._empty_replies or bool(self._answer.text),
            context_window=self._deps.model.info.context_window,
            window_assumed=self._deps.model.info.window_assumed,
            cancelled=ended if self._cancelled.suspends else self._cancelled.reason or ended,
            suspended=self._cancelled.reason if self._cancelled.suspends else None,
            message_pending=self._message is not None,
            announced=not reply.calls and not self._told_to_act and bool(self._deps.tools) and announces(reply.text),
            # A reply that arrived in time and leaves nothing to do completes the turn.
            timed_out=self._signal.reason == OVERTIME
            and bool(self._requests.interrupted or reply.calls or self._lists.open),
            failure=self._failure,
            pending_approvals=self._pending_approvals,
            has_goal=self._deps.judge is not None,
            exits=Exits(can_wait=not {"wait_todo", ASK_PERSON}.isdisjoint(self._deps.tools)),
            tried_fresh=self._tried_fresh if self._deps.try_item is not None else None,
        )

    def _count_next(self) -> None:
        """Bring the counters up to date, with an estimate of the next request."""
        counters = self._requests.next.counted(self._progress.counters, state_text(self._lists.text))
        limits = self._agent.limits
        self._progress.counters = counters._replace(
            tokens=self._budget.usage.total,
            cost=self._budget.cost,
            seconds=monotonic() - self._started_at,
            allowed=limits.iterations(counters.allowed, counters.iterations, bool(self._lists.open)),
        )

    @property
    def _counters(self) -> TurnCounters:
        """For the limits of the turn."""
        counters = self._progress.counters
        if self._deps.request.driven is None or not self._agent.limits.is_fixed:
            return counters
        # The attempts at its items count, too.
        return counters._replace(iterations=max(counters.iterations, self._budget.requests))

    def limit(self) -> Stop | None:
        """The limit that another request would exceed."""
        self._count_next()
        return limit_reached(Situation(self._lists.open, self._counters, self._agent.limits))

    def _can_end(self, item: OpenItem) -> bool:
        tool = {"plan": "complete_todo", "checklist": CHECKLIST_TOOL}.get(item.list)
        return tool is None or tool in self._deps.tools

    async def send_continuation(self, prompt: str) -> None:
        """Send the model back to its list."""
        if self._reopened:
            prompt, self._reopened = f"{self._reopened}\n\n{prompt}", ""
        if self._restored is not None:
            # The turn was suspended or interrupted before a continuation was sent: this one does not count.
            self._restored = None
            await self._add_message(prompt, RESUMED)
            return
        self._told_to_act |= prompt == ANNOUNCED_ONLY
        self._progress.continued()
        await sleep_unless_cancelled(
            self._signal, min(self._agent.check_interval * 2.0**self._progress.counters.unchanged, MAX_PAUSE)
        )
        await self._add_message(prompt, CONTINUATION)
        limit = self._agent.limits.continuations
        self._emit(Continued(self._agent.name, self._deps.turn_id, self._progress.counters.continuations, limit))

    async def try_fresh(self, item: OpenItem) -> Proceed | Wait | Stop:
        """Try an item once in a fresh context before the turn ends as stalled (C5)."""
        assert self._deps.try_item is not None
        self._tried_fresh |= {item.id}
        self.note(f"trying “{visible(item.title)}” in a fresh context")
        told = await self._deps.try_item(self.goal, item)
        await self._read_lists()
        if told is None:
            return Stop(Reason.STALLED, f"no progress in {self._progress.counters.unchanged} continuations")
        if isinstance(told, Wait):
            return told
        self._progress.helped()
        await self._add_message(told, RESUMED)
        return self.limit() or Proceed()

    async def judge(self) -> Continue | Stop:
        """Decide by the goal of the turn whether it is completed (V3)."""
        assert self._deps.judge is not None
        self.note("judging whether the goal is met")
        decision = await self._deps.judge.decide(self._answer.text, self._signal)
        met = isinstance(decision, Stop) and decision.reason is Reason.COMPLETED
        await self._read_lists()
        self.note("the goal is met" if met else f"the goal is not met yet: {one_line(self.missing)}")
        if isinstance(decision, Continue) and (stop := self.limit()) is not None:
            return Stop(stop.reason, f"{stop.why}; missing for the goal: {one_line(self.missing)}")
        return decision

    async def report(self, reason: Reason, why: str) -> None:
        """After a limit, one last call without tools, so that the model can report (T9)."""
        counters, window = self._progress.counters, self._deps.model.info.context_window
        if self._signal.is_set or not may_report(
            reason, counters, self._agent.limits, window, self._requests.interrupted
        ):
            return
        await self.answer(final_prompt(why))

    async def answer(self, prompt: str, *, fallback: str | None = None) -> None:
        """Ask for the answer in one call without tools. If there is none, the texts so far are the answer.

        With `fallback`, that is the answer then, and the model sees only the user's request and the prompt.
        """
        if fallback is not None:
            self._answer = AnswerText(fallback)
            self._count_next()
            tokens = estimated_tokens(self._context.system + self.goal + prompt)
            if not fits(self._requests.next.small(self._progress.counters, tokens), self._agent.limits):
                return
        await self._add_message(prompt, FINAL)
        if fallback is None:
            reply = await self._requests.report(state_text(self._lists.text))
        else:
            reply = await self._requests.report("", [UserText(self.goal), UserText(prompt)])
        if reply is None:
            return
        if fallback is not None and reply.text.strip():
            self._answer = AnswerText()
        self._answer.add(reply)

    async def suspend(self, on: Sequence[str]) -> TurnResult:
        """End this run of the turn; the turn stays open and can be resumed."""
        why = "; ".join(on)
        await self._deps.log.suspend(f"{Reason.WAITING}: {why}")
        return self._result(Reason.WAITING, why)

    async def end(self, reason: Reason, why: str, *, not_done: str = "") -> TurnResult:
        """`not_done`: what a completed turn has left out, for the answer."""
        await self._read_lists()
        if reason is Reason.COMPLETED and self._lists.open:
            reason, why = Reason.OPEN, "items were added while the turn ended"
        if not_done:
            self._answer.add(Reply(not_done))
        ending = not_done if reason is Reason.COMPLETED else ending_text(reason, why, self._lists.open)
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
            self._answer.text,
            self._progress.counters.iterations,
            self._progress.counters.all_continuations,
            self._budget.usage,
            self._lists.open,
            self._lists.items,
            None if self._deps.model.info.cost(Usage()) is None else self._budget.cost,
            self._work.all_work,
            self._requests.busy and reason is Reason.ERROR,
        )
        self._emit(TurnEnded(self._agent.name, self._deps.turn_id, result))
        return result

    # --- events -------------------------------------------------------------------------------------------

    def _emit(self, event: AgentEvent) -> None:
        if self._deps.on_event is not None:
            self._deps.on_event(event)

    def note(self, text: str) -> None:
        self._emit(NoteAdded(self._agent.name, self._deps.turn_id, text))
