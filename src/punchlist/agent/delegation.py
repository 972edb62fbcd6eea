"""The `delegate` tool: a worker gets a mission, works in a turn of its own, and its report is the result (T12, T13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from punchlist.agent.budget import Budget
from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.resume import RestoredTurn, restore
from punchlist.agent.turn_model import TurnResult
from punchlist.agent.work_log import NO_WORK, WorkLog
from punchlist.conversations.model import StoredTurn, TurnScope
from punchlist.errors import Conflict, IllegalTransition, NotFound, PunchlistError
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.text import raw_problem, visible_block, without_tags
from punchlist.models.model import Reply, UserText
from punchlist.plan.validation import id_problem, parse_id
from punchlist.storage.async_bridge import make_bridge
from punchlist.toolcalls.lifecycle import UnfinishedCode
from punchlist.toolcalls.tool import Arguments, BaseTool, Effect, Schema, ToolContext, ToolFailure
from punchlist.verification.model import EvidenceCall

if TYPE_CHECKING:
    from punchlist.agent.item_task import ItemTask
    from punchlist.agent.runtime import AgentRuntime
    from punchlist.agent.turn_model import TurnRequest

NAME: Final = "delegate"
MAX_MISSION_LENGTH: Final = 50_000
MAX_CALLS_SHOWN: Final = 20
TIME_LIMIT: Final = 24 * 3_600.0
"""Seconds. Workers have limits of their own."""


class WorkerWaiting(ToolFailure):
    """The worker's turn is suspended, so the delegating turn waits as well."""

    code = UnfinishedCode.SUSPENDED


class AsyncDelegation(Protocol):
    """A queue for delegations that the caller does not wait for (M9)."""

    async def submit(self, id: str, worker: str, mission: str, todo_id: str | None) -> str:
        """Returns a text for the model. Submitting the same id again has no effect."""


class DelegateTool(BaseTool):
    name = NAME
    effect = Effect.LIST
    time_limit = TIME_LIMIT

    def __init__(
        self,
        workers: Mapping[str, AgentDefinition],
        runner: SubagentRunner,
        queue: AsyncDelegation | None = None,
        *,
        has_plan: bool = True,
    ) -> None:
        """Without a plan, no mission is for an item of it."""
        self._workers = workers
        self._has_plan = has_plan
        self._runner = runner
        self._queue = queue
        self._interrupted: dict[tuple[str, str], str] = {}
        """Ids of interrupted calls, by worker and mission."""
        self.description = (
            "Give a mission to a worker and wait for its report. The worker knows only the mission text: state the "
            "task, what matters, and what to report. Delegations of one reply run one after the other. "
        )
        if has_plan:
            self.description += "With todoId, the task is pending again with the report: check it, then complete it. "
        self.description += f"Types: {', '.join(workers)}."
        if queue is not None:
            self.description += " With async, the call returns at once and the result is posted to the chat later."

    @property
    def input_schema(self) -> Schema:
        item = {"type": ["string", "integer"], "description": "The plan task that this mission is for: number or id"}
        later = {"async": {"type": "boolean", "description": "Do not wait for the result"}} if self._queue else {}
        return {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": list(self._workers)},
                "mission": {"type": "string", "minLength": 1},
                "rationale": {"type": "string", "description": "Why this worker"},
                **({"todoId": item} if self._has_plan else {}),
                **later,
            },
            "required": ["type", "mission"],
        }

    def problems(self, arguments: Arguments) -> Sequence[str]:
        found = []
        if arguments.get("type") not in self._workers:
            found.append(f"type: must be one of {', '.join(self._workers)}")
        if problem := raw_problem(arguments.get("mission"), max_length=MAX_MISSION_LENGTH):
            found.append(f"mission: {problem}")
        elif not str(arguments["mission"]).strip():
            found.append("mission: must not be empty")
        todo = arguments.get("todoId")
        if todo is not None and not self._has_plan:
            found.append("todoId: there is no plan here; leave it out")
        elif todo is not None and (problem := id_problem(todo)):
            found.append(f"todoId: {problem}")
        if arguments.get("async") not in (None, True, False):
            found.append("async: must be true or false")
        elif arguments.get("async") and self._queue is None:
            found.append("async: not available here, since no worker process would run it; leave it out")
        return found

    def resume_call(self, arguments: Arguments, call_id: str) -> None:
        self._interrupted[arguments["type"], arguments["mission"]] = call_id

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:
        worker, mission = self._workers[arguments["type"]], arguments["mission"]
        todo_id = None if arguments.get("todoId") is None else parse_id(arguments["todoId"])
        interrupted = self._interrupted.pop((worker.name, mission), None)
        if arguments.get("async") and self._queue is not None:
            return await self._queue.submit(interrupted or running.call_id, worker.name, mission, todo_id)
        if todo_id:
            await self._runner.start_todo(todo_id)
            mission = await self._runner.with_item(mission, todo_id)
        resumed = interrupted is not None
        running.output(f"{worker.name} {'resumed' if resumed else 'started'}\n")
        result = await self._runner.run(worker, mission, resumed=resumed)
        running.output(f"{worker.name} ended: {result.reason}\n")
        match result.reason:
            case Reason.COMPLETED:
                report = with_work(result)
                if todo_id:
                    await self._runner.record_report(todo_id, report)
                return report
            case Reason.WAITING:
                raise WorkerWaiting(f"{worker.name}: {result.why}")
        message = f"The {worker.name} did not finish. {without_tags(result.text)}"
        if todo_id and result.reason is not Reason.CANCELLED:
            message = f"{message}\n\n{await self._runner.record_failure(todo_id, f'{result.reason}: {result.why}')}"
        raise ToolFailure(message)


def _field(text: str) -> str:
    """A text of the plan in a mission: further lines are indented, so that none looks like another field."""
    return without_tags(visible_block(text)).replace("\n", "\n    ")


def with_work(result: TurnResult) -> str:
    """The report of a worker, and what it did."""
    report = without_tags(result.text) or "The worker's report is empty."
    if not result.work:
        return f"{report}\n\n{NO_WORK}"
    calls = "\n".join(f"- {call.tool}: {without_tags(call.summary)}" for call in result.work[-MAX_CALLS_SHOWN:])
    return f"{report}\n\nWhat it did ({len(result.work)} successful calls):\n{calls}"


class SubagentRunner:
    """Runs the workers of one turn, and records on the plan what they start and fail."""

    def __init__(self, runtime: AgentRuntime, request: TurnRequest, scope: TurnScope) -> None:
        self._runtime = runtime
        self._request = request
        self._scope = scope
        self._call = make_bridge(runtime.site.store)

    async def run(
        self, worker: AgentDefinition, mission: str, *, resumed: bool, item: ItemTask | None = None
    ) -> TurnResult:
        """`resumed`: an interrupted call of this mission is run again."""
        parent = self._request
        request = replace(
            parent,
            agent=replace(worker, limits=parent.budget.limits_for_worker(worker.limits, parent.agent.limits)),
            budget=Budget(parent.budget),
            signal=CancelSignal(parent.signal),
            goal=mission,
            parent=self._scope.turn_id,
            depth=parent.depth + 1,
            max_depth=parent.depth_limit,
            item=item,
            driven=None,
            take_over=None,
            until=None,
        )
        turn = await self._interrupted_turn(worker, mission) if resumed else None
        if turn is None:
            return await self._runtime.run_turn(request)
        if turn.open:
            return await self._runtime.run_turn(replace(request, goal=None), turn.id)
        return await self._stored_result(turn, item)

    async def _interrupted_turn(self, worker: AgentDefinition, mission: str) -> StoredTurn | None:
        conversations = self._runtime.conversations
        for turn in await self._call(conversations.child_turns, self._scope):
            if turn.agent_id == worker.name:
                messages = await self._call(conversations.turn_messages, turn.id)
                if messages and messages[0].content == mission:
                    return turn
        return None

    async def _stored_result(self, turn: StoredTurn, item: ItemTask | None) -> TurnResult:
        """The result of a worker that had finished before the program ended."""
        before = restore(await self._call(self._runtime.conversations.turn_messages, turn.id))
        if item is not None:
            item.restore(before.messages)
        texts = (m.text for m in reversed(before.messages) if isinstance(m, Reply | UserText) and m.text)
        reason, _, why = (turn.end_reason or "").partition(": ")
        return TurnResult(
            turn.id,
            Reason(reason) if reason in list(Reason) else Reason.ERROR,
            why or "it was ended",
            next(texts, ""),
            before.counters.iterations,
            before.counters.continuations,
            before.usage,
            (),
            work=_work_of(before),
        )

    async def with_item(self, mission: str, todo_id: str) -> str:
        """The mission with the context, criteria and check of its item (T12)."""
        todo = await self._call(self._runtime.plans.find, self._scope, todo_id)
        check = todo.verified().check
        fields = {
            "Item": todo.title,
            "Context": todo.context,
            "Done when": todo.completion_criteria,
            "Check": check.description if check else "",
        }
        lines = [f"{name}: {_field(text)}" for name, text in fields.items() if text]
        return "\n".join([mission, "", *lines])

    async def start_todo(self, todo_id: str) -> None:
        plans = self._runtime.plans
        try:
            await self._call(plans.start, self._scope, todo_id, reason="delegate")
        except (IllegalTransition, Conflict):
            # Only one task is in progress at a time; a second one, or a repeated one, is worked on all the same.
            plan = await self._call(plans.list, self._scope)
            found = await self._call(plans.find, self._scope, todo_id)
            if found.id not in [todo.id for todo in plan.items] or found.id in plan.waits:
                raise

    async def record_report(self, todo_id: str, report: str) -> None:
        """Return the task to pending with the report, so that another one can be in progress."""
        # A person can have ended the task meanwhile; the model gets the report in any case.
        with suppress(IllegalTransition, NotFound):
            await self._call(self._runtime.plans.report, self._scope, todo_id, report)

    async def record_failure(self, todo_id: str, error: str) -> str:
        """Mark the task as failed. Returns what the model should do next."""
        try:
            failed = await self._call(self._runtime.plans.fail, self._scope, todo_id, error)
        except PunchlistError as problem:
            return str(problem)
        if failed.retry:
            return "The task is pending again: try it once more, with another mission or yourself."
        return "This was the second attempt, so the task is skipped. Continue with the rest."


def _work_of(before: RestoredTurn) -> tuple[EvidenceCall, ...]:
    log = WorkLog()
    log.restore(before.messages)
    return log.all_work
