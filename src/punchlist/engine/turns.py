"""An agent's turn as part of a run.

    begin   create the turn with its request
    work    run the agent loop; after a crash it continues from the stored messages
    rest    wait while the run is paused or the agent waits, then work again

Each is a step of the durable engine. The loop inside `work` is durable too: model replies and tool results are
stored as they arrive, so continuing it repeats none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from punchlist.agent.budget import Budget
from punchlist.agent.continuation import Reason
from punchlist.agent.message_kinds import TEXT
from punchlist.agent.resume import is_resumable, restore
from punchlist.agent.runtime import AgentRuntime
from punchlist.agent.turn_model import TurnRequest, TurnResult
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Message, NewMessage, NoticeKind
from punchlist.conversations.repository import with_child_turns
from punchlist.engine.active_runs import MESSAGE_RECEIVED, PAUSED, ActiveRun, ActiveRuns, RunStopped
from punchlist.engine.durable import DurableEngine, retrying_bridge
from punchlist.engine.runtime_factory import RuntimeFactory, TurnTask
from punchlist.errors import PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.text import excerpt
from punchlist.missions.budgets.service import REACHED, Budgets
from punchlist.missions.planning.retries import UNAVAILABLE
from punchlist.models.model import Reply
from punchlist.runs.lifecycle import ControlRequest, RunStatus
from punchlist.runs.model import Run, UsageIncrement, remaining_text
from punchlist.runs.queue import RunNotOwned, RunQueue
from punchlist.storage.async_bridge import make_bridge
from punchlist.toolcalls.approvals import MAX_REASON_LENGTH, ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.repository import count_calls_of_turn, run_of_call

if TYPE_CHECKING:
    from punchlist.app import Services

POLL_INTERVAL: Final = 0.2
_STOPPED: Final = "stopped"


class TurnFailed(PunchlistError):
    """A turn ended with an error, for example because no model was available."""

    code = "turn_failed"


class StepResult(TypedDict):
    """The result of a turn, as the durable engine stores it."""

    turnId: str
    reason: str
    why: str
    text: str
    inputTokens: int
    outputTokens: int
    cost: float
    seconds: float
    modelBusy: NotRequired[bool]


class TurnSteps:
    def __init__(
        self,
        services: Services,
        durable: DurableEngine,
        queue: RunQueue,
        active_runs: ActiveRuns,
        runtimes: RuntimeFactory,
        slots: int,
    ) -> None:
        self._services = services
        self._durable = durable
        self._queue = queue
        self._active_runs = active_runs
        self._runtimes = runtimes
        # Runs that rest do not use a slot.
        self._slots = asyncio.Semaphore(slots)
        self._call = retrying_bridge(make_bridge(services.store))
        self._budgets = Budgets(services.store)

    async def run(self, run: Run, task: TurnTask, turn_id: str | None = None) -> StepResult:
        """Run a turn to its end. `turn_id` names a turn that already has its request."""
        step = self._durable.step
        if turn_id is None:
            turn_id = await step(f"{task.key}.begin", lambda: self._begin(run, task))
        work = partial(self._work, run, task, turn_id)
        seconds, number = 0.0, 0
        while True:
            result = await step(f"{task.key}.work.{number}", work)
            seconds += result["seconds"]
            if result["reason"] != Reason.WAITING:
                break
            if await step(f"{task.key}.rest.{number}", partial(self._rest, run, task, result)) == _STOPPED:
                raise RunStopped
            number += 1
        await step(f"{task.key}.spent", lambda: self._add_usage(run, result, seconds))
        if result["reason"] == Reason.CANCELLED:
            owned = await self._call(self._queue.get_owned, run.id)
            if owned.wish is ControlRequest.STOP:
                raise RunStopped
        if result["reason"] == Reason.ERROR:
            busy = UNAVAILABLE if result.get("modelBusy") else ""
            raise TurnFailed(f"{busy}{task.agent.name}: {result['why']}")
        return result

    async def check_requests(self, run: Run) -> Run:
        """Wait while the run is paused; raise when it is stopped."""
        while True:
            await self._block_if_closing()
            now = await self._get_owned(run)
            match now.wish:
                case ControlRequest.STOP:
                    raise RunStopped
                case ControlRequest.PAUSE:
                    if now.status is not RunStatus.PAUSED:
                        await self._call(self._queue.pause, run.id)
                    await asyncio.sleep(POLL_INTERVAL)
                case None:
                    if now.status is not RunStatus.PAUSED:
                        return now
                    if (resumed := await self._call(self._queue.resume, run.id)) is not None:
                        return resumed
                    await asyncio.sleep(POLL_INTERVAL)

    async def _get_owned(self, run: Run) -> Run:
        if self._active_runs.track(run.id).superseded:
            raise RunNotOwned(f"Run {run.id} was dispatched to this worker again.")
        return await self._call(self._queue.get_owned, run.id)

    async def _begin(self, run: Run, task: TurnTask) -> str:
        # One worker executes a run, so an open turn of the run belongs to no live process.
        conversations, request = self._services.conversations, task.request
        open_turn = await self._call(conversations.current_turn, task.conversation_id, run.id)
        if open_turn is not None and open_turn.agent_id == task.agent.name:
            stored = await self._call(conversations.turn_messages, open_turn.id)
            if [NewMessage(message.role, message.kind, message.content) for message in stored] == [request]:
                # A worker created the turn and died before the step was recorded.
                return open_turn.id
        begin, fence = conversations.begin_turn, self._queue.fence(run.id)
        turn = await self._call(
            begin, task.scope, reason="a run", request=request, abandoned=True, fence=fence, run_id=run.id
        )
        return turn.id

    async def _work(self, run: Run, task: TurnTask, turn_id: str) -> StepResult:
        active = self._active_runs.track(run.id)
        active.needs_slot = True
        try:
            result = await self._work_in_slot(active, run, task, turn_id)
        finally:
            active.needs_slot = False
        await self._block_if_closing()
        return result

    async def _work_in_slot(self, active: ActiveRun, run: Run, task: TurnTask, turn_id: str) -> StepResult:
        async with self._slots:
            now = await self._get_owned(run)
            if self._active_runs.closing or now.wish is not None:
                return _result(turn_id, Reason.WAITING.value, PAUSED)
            if now.turn_id != turn_id:
                now = await self._call(self._queue.set_turn, run.id, turn_id)
            active.working = True
            try:
                return await self._run_agent(active, now, task, turn_id)
            finally:
                active.working = False

    async def _run_agent(self, active: ActiveRun, run: Run, task: TurnTask, turn_id: str) -> StepResult:
        conversations = self._services.conversations
        stored = await self._call(conversations.turn_messages, turn_id)
        turn = await self._call(conversations.turn, turn_id)
        if not turn.open:
            # It ended before the step was recorded, or a person ended it.
            return _stored_result(turn_id, turn.end_reason or "", stored)
        signal, budget, started = active.new_signal(run), Budget(), monotonic()
        request = TurnRequest(
            task.agent,
            signal,
            None,
            budget=budget,
            message=await self._call(self._message_for, run, task, stored),
            owner_is_dead=True,
            fence=self._queue.fence(run.id),
            left_open_on_outage=True,
        )
        runtime = self._runtimes.build(task, lambda reason: signal.set(reason, suspends=True))
        outcome = await runtime.run_turn(request, turn_id)
        if run.message is not None:
            stored = await self._call(conversations.turn_messages, turn_id)
            rest = await self._call(self._message_for, run, task, stored)
            await self._call(self._queue.message_delivered, run.id, run.message, rest)
        return _turn_result(turn_id, outcome, budget, monotonic() - started)

    def _message_for(self, run: Run, task: TurnTask, stored: Sequence[Message]) -> str | None:
        """The part of the run's message that the agent of this turn has not received yet."""
        message = undelivered(run.message, stored)
        if message is None or run.todo_id is None or task.agent.name == run.agent:
            return message
        # The reviewer itself gave the feedback; the owner reads it in the next round.
        for said in self._services.mission_todos.messages(run.todo_id):
            if message is not None and said.kind == NoticeKind.TODO_FEEDBACK:
                message = remaining_text(message, said.text)
        return message

    async def _block_if_closing(self) -> None:
        """A worker that shuts down never completes its steps: the next worker repeats them from the stored turn."""
        if self._active_runs.closing:
            await asyncio.Event().wait()

    async def _rest(self, run: Run, task: TurnTask, result: StepResult) -> str:
        """Wait until the turn can continue."""
        runtime = self._runtimes.build(task)
        while True:
            await self._block_if_closing()
            try:
                now = await self.check_requests(run)
            except RunStopped:
                # A replayed step would raise another exception type, so the step returns a value.
                return _STOPPED
            if now.message is not None:
                await asyncio.to_thread(self._cancel_approvals, task.conversation_id, run.id, now.message)
            if await self._can_continue(runtime, now, task, result):
                working = now.status is RunStatus.RUNNING
                if working or await self._call(self._queue.wake, run.id, "it can continue") is not None:
                    return "go on"
            elif now.status is RunStatus.RUNNING:
                await self._call(self._queue.wait, run.id, result["why"])
            await asyncio.sleep(POLL_INTERVAL)

    async def _can_continue(self, runtime: AgentRuntime, run: Run, task: TurnTask, result: StepResult) -> bool:
        if result["why"].startswith(REACHED) and task.mission is not None:
            place = task.spend_place(task.mission)
            return await self._call(self._budgets.is_available, place.mission_id, place.todo_id)
        if run.message is not None or result["why"] in (PAUSED, MESSAGE_RECEIVED):
            return True
        return await is_resumable(runtime, result["turnId"]) is not False

    def _cancel_approvals(self, conversation_id: str, run_id: str, message: str) -> None:
        """A message to the agent also answers its pending approvals."""
        approvals = self._services.approvals
        person, reason = Actor(Role.PERSON, "person"), excerpt(message, MAX_REASON_LENGTH)
        for approval in approvals.waiting(conversation_id):
            with self._services.store.read() as tx:
                if run_of_call(tx, approval.call_id) != run_id:
                    continue
            approvals.answer(approval.call_id, ApprovalAnswer(ApprovalOutcome.CANCEL, person, reason=reason))

    async def _add_usage(self, run: Run, result: StepResult, seconds: float) -> None:
        calls = await self._call(self._count_calls, result["turnId"])
        used = UsageIncrement(result["inputTokens"], result["outputTokens"], result["cost"], calls, seconds)
        await self._call(self._queue.add_usage, run.id, result["turnId"], used)

    def _count_calls(self, turn_id: str) -> int:
        with self._services.store.read() as tx:
            turn = conversation_repository.find_turn(tx, turn_id)
            turns = with_child_turns(tx, turn) if turn is not None else ()
            return sum(count_calls_of_turn(tx, each.id) for each in turns)


def undelivered(message: str | None, stored: Sequence[Message]) -> str | None:
    """The part of a message that is not in the turn yet: people may add to it while the agent receives it."""
    for row in stored:
        if message is not None and row.kind == TEXT:
            message = remaining_text(message, row.content)
    return message


def _result(turn_id: str, reason: str, why: str, text: str = "") -> StepResult:
    return {
        "turnId": turn_id,
        "reason": reason,
        "why": why,
        "text": text,
        "inputTokens": 0,
        "outputTokens": 0,
        "cost": 0.0,
        "seconds": 0.0,
    }


def _turn_result(turn_id: str, ended: TurnResult, budget: Budget, seconds: float) -> StepResult:
    text = ended.text if ended.reason is not Reason.COMPLETED else ended.last_text
    return {
        **_result(turn_id, ended.reason.value, ended.why, text),
        "inputTokens": ended.usage.input_tokens,
        "outputTokens": ended.usage.output_tokens,
        "cost": budget.cost,
        "seconds": seconds,
        "modelBusy": ended.model_busy,
    }


def _stored_result(turn_id: str, end_reason: str, stored: Sequence[Message]) -> StepResult:
    before = restore(stored)
    reason, _, why = end_reason.partition(": ")
    text = next((reply.text for reply in reversed(before.messages) if isinstance(reply, Reply) and reply.text), "")
    known = reason if reason in list(Reason) else Reason.CANCELLED.value
    return {
        **_result(turn_id, known, why, text),
        "inputTokens": before.usage.input_tokens,
        "outputTokens": before.usage.output_tokens,
    }
