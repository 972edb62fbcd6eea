"""The workers of one turn: begun, gone on with, and what their failures mean for the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from punchlist.agent.budget import Budget
from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.restore import restore
from punchlist.agent.result import TurnResult
from punchlist.conversations.model import StoredTurn, TurnScope
from punchlist.errors import Conflict, IllegalTransition, PunchlistError
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.models.model import Reply, UserText
from punchlist.storage.async_bridge import make_bridge

if TYPE_CHECKING:
    from punchlist.agent.runtime import AgentRuntime, TurnRequest


class SubagentRunner:
    def __init__(self, runtime: AgentRuntime, work: TurnRequest, here: TurnScope) -> None:
        self._runtime = runtime
        self._of = work
        self._here = here
        self._aside = make_bridge(runtime.site.store)

    async def run(self, worker: AgentDefinition, mission: str, *, left: bool) -> TurnResult:
        of = self._of
        theirs = replace(
            of,
            agent=replace(worker, limits=of.budget.limits_for_worker(worker.limits, of.agent.limits)),
            budget=Budget(of.budget),
            signal=CancelSignal(of.signal),
            goal=mission,
            parent=self._here.turn_id,
            depth=of.depth + 1,
            max_depth=of.deepest,
        )
        before = await self._left(worker, mission) if left else None
        if before is None:
            return (await self._runtime.run_turn(theirs)).ended
        if before.open:
            return (await self._runtime.run_turn(replace(theirs, goal=None), before.id)).ended
        return await self._report(before)

    async def _left(self, worker: AgentDefinition, mission: str) -> StoredTurn | None:
        """The turn in which a worker was at this mission when the program ended."""
        conversations = self._runtime.conversations
        for turn in await self._aside(conversations.child_turns, self._here):
            if turn.agent_id == worker.name:
                said = await self._aside(conversations.turn_messages, turn.id)
                if said and said[0].content == mission:
                    return turn
        return None

    async def _report(self, turn: StoredTurn) -> TurnResult:
        """What a worker reported who had finished, before anybody heard it."""
        before = restore(await self._aside(self._runtime.conversations.turn_messages, turn.id))
        text = next(
            (one.text for one in reversed(before.messages) if isinstance(one, Reply | UserText) and one.text), ""
        )
        reason, _, why = (turn.end_reason or "").partition(": ")
        known = Reason(reason) if reason in list(Reason) else Reason.ERROR
        spent = before.spent
        return TurnResult(known, why or "it was ended", text, spent.iterations, spent.continuations, before.usage, ())

    async def start_todo(self, todo_id: str) -> None:
        plans = self._runtime.plans
        try:
            await self._aside(plans.start, self._here, todo_id, reason="delegate")
        except (IllegalTransition, Conflict):
            # One at a time is in progress. What is delegated besides, or again, is worked on all the same.
            plan = await self._aside(plans.list, self._here)
            if todo_id not in [todo.id for todo in plan.items] or todo_id in plan.waits:
                raise

    async def record_failure(self, todo_id: str, error: str) -> str:
        try:
            failed = await self._aside(self._runtime.plans.fail, self._here, todo_id, error)
        except PunchlistError as problem:
            return str(problem)
        if failed.retry:
            return "The task is back on the list: try it once more, with another mission or by yourself."
        return "That was the second attempt: the task is skipped. Go on with the rest."
