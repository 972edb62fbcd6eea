"""One turn of one agent: what it has said and done so far, and the steps that the loop takes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Final

from punchlist.agent.context import Context, state_text
from punchlist.agent.continuation import Open, Reason, Situation, Spent
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.lists import Lists, View
from punchlist.agent.record import Record
from punchlist.agent.transcript import CONTINUATION, TEXT
from punchlist.kernel.ids import new_id
from punchlist.kernel.signals import CancelSignal
from punchlist.models.model import Call, Finish, Hear, Model, ModelError, Reply, Returned, Said, Usage
from punchlist.storage.bridge import Aside
from punchlist.toolcalls.batch import Batch
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.toolcalls.states import (
    CancelledToolCall,
    ErroredToolCall,
    SuccessfulToolCall,
    ToolCall,
    ToolCallRequest,
    WaitingToolCall,
)

CUT_OFF: Final = {
    Finish.LENGTH: "the model was cut off: its reply reached the limit of length",
    Finish.CONTENT_FILTER: "the model's reply was held back by a content filter",
    Finish.ERROR: "the model broke off with an error",
}
LONGEST_PAUSE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn came out."""

    reason: Reason
    why: str
    text: str
    iterations: int
    continuations: int
    usage: Usage
    open: tuple[Open, ...]


@dataclass(frozen=True, slots=True)
class Means:
    """What a turn works with."""

    model: Model
    scheduler: CoreToolScheduler
    lists: Lists
    record: Record
    aside: Aside
    asks: bool = False
    """Somebody is at hand to be asked: a call that needs approval is waited for."""
    hear: Hear | None = None
    told: Callable[[str], None] | None = None


class Turn:
    def __init__(self, agent: AgentDefinition, goal: str, context: Context, means: Means, signal: CancelSignal) -> None:
        self._agent = agent
        self._goal = goal
        self._context = context
        self._means = means
        self._signal = signal
        self._begun = monotonic()
        self._spent = Spent()
        self._usage = Usage()
        self._failed: str | None = None
        self._waiting: list[str] = []
        self._mark: object = None
        self._view = View()
        self._text = ""

    async def begin(self) -> None:
        said = Said(self._goal)
        await self._means.record.add(said, kind=TEXT)
        self._context.add(said)
        await self._look()

    async def _look(self) -> None:
        """See what has become of the lists, by our own calls or by anybody's."""
        self._view = await self._means.aside(self._means.lists.look)

    # --- the model ----------------------------------------------------------------------------------------

    async def ask(self) -> Reply:
        """A reply, on record; an empty one when there is none, and then the turn has failed or was cancelled."""
        request = self._context.request(state_text(self._view.shown))
        try:
            reply = await self._unless_cancelled(self._means.model.ask(request, self._means.hear))
        except ModelError as error:
            self._failed = str(error)
            return Reply(finish=Finish.ERROR)
        if reply is None:
            return Reply()
        reply = replace(reply, calls=_with_ids_of_their_own(reply.calls))
        self._failed = CUT_OFF.get(reply.finish)
        self._note(reply)
        await self._means.record.add(reply)
        self._context.add(reply)
        return reply

    def _note(self, reply: Reply) -> None:
        self._text = reply.text or self._text
        self._usage += reply.usage
        spent = self._spent
        cost = self._means.model.traits.cost(reply.usage) or 0.0
        self._spent = replace(
            spent,
            iterations=spent.iterations + 1,
            tokens=self._usage.total,
            context=reply.usage.total,
            cost=spent.cost + cost,
        )

    async def _unless_cancelled(self, asking: Coroutine[Any, Any, Reply]) -> Reply | None:
        """The reply, or None when somebody wants the turn to end first."""
        task = asyncio.ensure_future(asking)
        cancelled = asyncio.Event()
        forget = self._signal.when_set(lambda _: cancelled.set())
        waiting = asyncio.ensure_future(cancelled.wait())
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            forget()
            for one in (task, waiting):
                one.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)

    # --- its calls ----------------------------------------------------------------------------------------

    async def call(self, reply: Reply) -> None:
        """Run what the reply wants; every call gets exactly one result, unless it waits for a person."""
        if not reply.calls or self._failed or self._signal.is_set:
            await self._answer([Returned(call.id, call.tool, "Not run.", failed=True) for call in reply.calls])
            return
        requests = {call.id: ToolCallRequest(call.tool, _arguments(call), new_id()) for call in reply.calls}
        batch = self._means.scheduler.schedule(list(requests.values()), self._signal)
        calls = await self._finished(batch)
        results = [_returned(call, done) for call, done in zip(reply.calls, calls, strict=True)]
        self._waiting = [f"{one.request.tool}: {one.question.why}" for one in calls if isinstance(one, WaitingToolCall)]
        await self._answer([result for result in results if result is not None])

    async def _finished(self, batch: Batch) -> Sequence[ToolCall]:
        return await batch if self._means.asks else await batch.at_rest()

    async def _answer(self, results: Sequence[Returned]) -> None:
        if results:
            await self._means.record.add(*results)
            self._context.add(*results)

    # --- what comes of it ---------------------------------------------------------------------------------

    async def situation(self, reply: Reply) -> Situation:
        await self._look()
        spent, limits = self._spent, self._agent.limits
        allowed = limits.iterations(spent.allowed, spent.iterations, bool(self._view.open))
        self._spent = replace(spent, seconds=monotonic() - self._begun, allowed=allowed)
        return Situation(
            open=self._view.open,
            spent=self._spent,
            limits=self._agent.limits,
            enabled=self._agent.todo_driven,
            calls=bool(reply.calls),
            window=self._means.model.traits.window,
            cancelled=self._signal.reason,
            failed=self._failed,
            approvals=self._waiting,
        )

    async def go_on(self, prompt: str) -> None:
        """Send the model back to its list."""
        unchanged = self._spent.unchanged + 1 if self._view.mark == self._mark else 0
        self._mark = self._view.mark
        self._spent = replace(self._spent, continuations=self._spent.continuations + 1, unchanged=unchanged)
        await asyncio.sleep(min(self._agent.check_interval * 2.0**unchanged, LONGEST_PAUSE))
        said = Said(prompt)
        await self._means.record.add(said, kind=CONTINUATION)
        self._context.add(said)
        if self._means.told is not None:
            self._means.told(f"continued ({self._spent.continuations} of {self._agent.limits.continuations})")

    async def end(self, reason: Reason, why: str) -> Ended:
        await self._look()
        await self._means.record.end(reason, why)
        spent = self._spent
        return Ended(reason, why, self._text, spent.iterations, spent.continuations, self._usage, self._view.open)


def _with_ids_of_their_own(calls: Sequence[Call]) -> tuple[Call, ...]:
    """Some models number their calls alike; a provider would then refuse the transcript."""
    seen: set[str] = set()
    made = []
    for call in calls:
        id = call.id if call.id and call.id not in seen else f"call_{new_id()}"
        seen.add(id)
        made.append(replace(call, id=id))
    return tuple(made)


def _arguments(call: Call) -> Mapping[str, object]:
    # What is no object is refused by the scheduler, with a sentence that the model can act on.
    return call.arguments  # type: ignore[return-value]


def _returned(call: Call, done: ToolCall) -> Returned | None:
    match done:
        case SuccessfulToolCall(result=result):
            return Returned(call.id, call.tool, result.text)
        case ErroredToolCall(error=error):
            return Returned(call.id, call.tool, error.message, failed=True)
        case CancelledToolCall(reason=reason):
            return Returned(call.id, call.tool, reason, failed=True)
    return None
