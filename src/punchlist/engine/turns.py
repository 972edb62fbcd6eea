"""A turn of an agent as part of a run: begun once, worked on until it ends, at rest while it has to wait.

    begin   a turn with its request on record
    work    the agent's loop; after a crash it goes on from what is on record
    rest    paused by a person, or waiting for one; then work again

Each is a step of the engine. The loop inside of `work` is durable by itself: what the model said and what
its calls did is on record, so that taking it up again repeats none of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final, Protocol, TypedDict, TypeVar

from punchlist.agent.budget import Budget
from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.message_kinds import TEXT
from punchlist.agent.restore import restore
from punchlist.agent.result import TurnResult
from punchlist.agent.runtime import AgentRuntime, TurnRequest
from punchlist.agent.wait import is_resumable
from punchlist.conversations import repository as turn_records
from punchlist.conversations.model import Message, NewMessage, Scope
from punchlist.conversations.usage import with_workers
from punchlist.engine.active_runs import PAUSED, TOLD, ActiveRun, ActiveRuns, RunStopped
from punchlist.engine.durable import retrying_bridge
from punchlist.engine.worker_services import AgentPosition, WorkerServices
from punchlist.errors import PunchlistError
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.text import excerpt
from punchlist.models.model import Reply
from punchlist.runs.lifecycle import ControlRequest, RunStatus
from punchlist.runs.model import Run, UsageIncrement, remaining_text
from punchlist.runs.queue import RunNotOwned, RunQueue
from punchlist.storage.async_bridge import bridge
from punchlist.toolcalls.approval_store import Approvals
from punchlist.toolcalls.approvals import LONGEST_REASON, ApprovalAnswer, ApprovalOutcome
from punchlist.toolcalls.repository import count_of_turn

INTERVAL: Final = 0.2
"""Seconds between two looks at something that is waited for."""
_STOPPED: Final = "stopped"
T = TypeVar("T")


class TurnFailed(PunchlistError):
    """An agent could not go on, such as for want of a model."""

    code = "turn_failed"


class Steps(Protocol):
    async def step(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T: ...


class StepResult(TypedDict):
    """What came of a turn, as the engine keeps it."""

    turnId: str
    reason: str
    why: str
    text: str
    inputTokens: int
    outputTokens: int
    cost: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnTask:
    """One turn that is to be taken."""

    key: str
    post: AgentPosition
    agent: AgentDefinition
    request: NewMessage
    remark: Callable[[], str] | None = None


class TurnSteps:
    def __init__(self, premises: WorkerServices, steps: Steps, book: RunQueue, hands: ActiveRuns, slots: int) -> None:
        self._premises = premises
        self._steps = steps
        self._book = book
        self._hands = hands
        # Runs that rest take none.
        self._slots = asyncio.Semaphore(slots)
        self._aside = retrying_bridge(bridge(premises.store))

    async def take(self, run: Run, task: TurnTask, begun: str | None = None) -> StepResult:
        """From its request to its end. `begun` is a turn that has its request already."""
        turn_id = (
            begun if begun is not None else await self._steps.step(f"{task.key}.begin", lambda: self._begin(run, task))
        )
        seconds = 0.0
        for number in range(1_000_000):
            came = await self._steps.step(f"{task.key}.work.{number}", lambda: self._work(run, task, turn_id))
            seconds += came["seconds"]
            if came["reason"] != Reason.WAITING:
                break
            rest = partial(self._rest, run, task, came)
            if await self._steps.step(f"{task.key}.rest.{number}", rest) == _STOPPED:
                raise RunStopped
        await self._steps.step(f"{task.key}.spent", lambda: self._spent(run, came, seconds))
        if (
            came["reason"] == Reason.CANCELLED
            and (await self._aside(self._book.get_owned, run.id)).wish is ControlRequest.STOP
        ):
            raise RunStopped
        if came["reason"] == Reason.ERROR:
            raise TurnFailed(f"{task.agent.name}: {came['why']}")
        return came

    async def _ours(self, run: Run) -> Run:
        if self._hands.take(run.id).superseded:
            raise RunNotOwned(f"Run {run.id} was given to this worker anew.")
        return await self._aside(self._book.get_owned, run.id)

    async def _begin(self, run: Run, task: TurnTask) -> str:
        # Nobody else works in this chat: the list of runs sees to that.
        conversations, request = self._premises.conversations, task.request
        scope = Scope(task.post.conversation_id, Actor(task.agent.role, task.agent.name))
        left = await self._aside(conversations.current_turn, scope.conversation_id)
        if left is not None and left.agent_id == task.agent.name:
            said = await self._aside(conversations.of_turn, left.id)
            if [NewMessage(one.role, one.kind, one.content) for one in said] == [request]:
                # It was begun, and we died before that was known here.
                return left.id
        begin, fence = conversations.begin_turn, self._book.fence(run.id)
        turn = await self._aside(begin, scope, reason="a run", request=request, abandoned=True, fence=fence)
        return turn.id

    async def _work(self, run: Run, task: TurnTask, turn_id: str) -> StepResult:
        hand = self._hands.take(run.id)
        hand.engaged = True
        try:
            came = await self._in_turn(hand, run, task, turn_id)
        finally:
            hand.engaged = False
        await self._until_closed()
        return came

    async def _in_turn(self, hand: ActiveRun, run: Run, task: TurnTask, turn_id: str) -> StepResult:
        async with self._slots:
            now = await self._ours(run)
            if self._hands.closing or now.wish is not None:
                return _resting(turn_id, PAUSED)
            if now.turn_id != turn_id:
                now = await self._aside(self._book.set_turn, run.id, turn_id)
            hand.at_work = True
            try:
                return await self._at_work(hand, now, task, turn_id)
            finally:
                hand.at_work = False

    async def _at_work(self, hand: ActiveRun, run: Run, task: TurnTask, turn_id: str) -> StepResult:
        runtime = self._premises.runtime(task.post, task.agent, task.remark)
        stored = await self._aside(self._premises.conversations.of_turn, turn_id)
        turn = await self._aside(self._premises.conversations.turn, turn_id)
        if not turn.open:
            # It ended, and we died before that was known here; or somebody has ended it.
            return _on_record(turn_id, turn.end_reason or "", restore(stored))
        message = unsaid(run.message, stored)
        signal, purse, since = hand.fresh(run), Budget(), monotonic()
        work = TurnRequest(
            task.agent,
            signal,
            None,
            budget=purse,
            message=message,
            owner_is_dead=True,
            fence=self._book.fence(run.id),
            left_open_on_outage=True,
        )
        outcome = await runtime.run_turn(work, turn_id)
        if run.message is not None:
            left = unsaid(run.message, await self._aside(self._premises.conversations.of_turn, turn_id))
            await self._aside(self._book.message_delivered, run.id, run.message, left)
        return _came(turn_id, outcome.ended, purse, monotonic() - since)

    async def _until_closed(self) -> None:
        """A worker that ends leaves the step as it is: another takes it up, from the turn's record."""
        if self._hands.closing:
            await asyncio.Event().wait()

    async def _rest(self, run: Run, task: TurnTask, came: StepResult) -> str:
        """Until there is something to do again."""
        runtime = self._premises.runtime(task.post, task.agent)
        while True:
            await self._until_closed()
            try:
                now = await self.heed(run)
            except RunStopped:
                # What a step raises comes back as another error when it is known already.
                return _STOPPED
            if now.message is not None:
                await asyncio.to_thread(self._withdraw, runtime, now.message)
            if await self._can_go_on(runtime, now, came):
                if now.status is RunStatus.WAITING:
                    await self._aside(self._book.wake, run.id, "it can go on")
                return "go on"
            if now.status is RunStatus.RUNNING:
                await self._aside(self._book.wait, run.id, came["why"])
            await asyncio.sleep(INTERVAL)

    async def _can_go_on(self, runtime: AgentRuntime, run: Run, came: StepResult) -> bool:
        if run.message is not None or came["why"] in (PAUSED, TOLD):
            return True
        return await is_resumable(runtime, came["turnId"]) is not False

    async def heed(self, run: Run) -> Run:
        """See what people want of a run: stay as long as it is paused, leave when it is stopped."""
        while True:
            await self._until_closed()
            now = await self._ours(run)
            match now.wish:
                case ControlRequest.STOP:
                    raise RunStopped
                case ControlRequest.PAUSE:
                    if now.status is not RunStatus.PAUSED:
                        await self._aside(self._book.pause, run.id)
                    await asyncio.sleep(INTERVAL)
                case None:
                    if now.status is RunStatus.PAUSED:
                        return await self._aside(self._book.resume, run.id)
                    return now

    def _withdraw(self, runtime: AgentRuntime, message: str) -> None:
        """Calls that wait for an answer: what somebody has said instead is one."""
        approvals = Approvals(self._premises.store)
        for asked in approvals.waiting(runtime.site.place.scope.conversation_id):
            approvals.answer(
                asked.call_id,
                ApprovalAnswer(
                    ApprovalOutcome.CANCEL, Actor(Role.PERSON, "person"), reason=excerpt(message, LONGEST_REASON)
                ),
            )

    async def _spent(self, run: Run, came: StepResult, seconds: float) -> None:
        calls = await self._aside(self._calls, came["turnId"])
        used = UsageIncrement(came["inputTokens"], came["outputTokens"], came["cost"], calls, seconds)
        await self._aside(self._book.add_usage, run.id, came["turnId"], used)

    def _calls(self, turn_id: str) -> int:
        with self._premises.store.read() as tx:
            turn = turn_records.turn(tx, turn_id)
            whole = with_workers(tx, turn) if turn is not None else ()
            return sum(count_of_turn(tx, one.id) for one in whole)


def unsaid(message: str | None, stored: Sequence[Message]) -> str | None:
    """What of the words for an agent it has not been told: people add to them while it is being told the first."""
    for row in stored:
        if message is not None and row.kind == TEXT:
            message = remaining_text(message, row.content)
    return message


def _came(turn_id: str, ended: TurnResult, purse: Budget, seconds: float) -> StepResult:
    usage = ended.usage
    return {
        "turnId": turn_id,
        "reason": ended.reason.value,
        "why": ended.why,
        "text": ended.text if ended.reason is not Reason.COMPLETED else ended.last_text,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cost": purse.cost,
        "seconds": seconds,
    }


def _resting(turn_id: str, why: str) -> StepResult:
    return {
        "turnId": turn_id,
        "reason": Reason.WAITING.value,
        "why": why,
        "text": "",
        "inputTokens": 0,
        "outputTokens": 0,
        "cost": 0.0,
        "seconds": 0.0,
    }


def _on_record(turn_id: str, end_reason: str, before: Any) -> StepResult:
    reason, _, why = end_reason.partition(": ")
    text = next((one.text for one in reversed(before.messages) if isinstance(one, Reply) and one.text), "")
    known = reason if reason in list(Reason) else Reason.CANCELLED.value
    return {
        "turnId": turn_id,
        "reason": known,
        "why": why,
        "text": text,
        "inputTokens": before.usage.input_tokens,
        "outputTokens": before.usage.output_tokens,
        "cost": 0.0,
        "seconds": 0.0,
    }
