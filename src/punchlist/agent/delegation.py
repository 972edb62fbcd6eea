"""`delegate`: a worker is given a mission, works in a turn of its own, and its report comes back (T12, T13)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.result import TurnResult
from punchlist.agent.tool_execution import SUSPENDED
from punchlist.kernel.text import line_problem, raw_problem, visible_block
from punchlist.toolcalls.tool import NO_RESOURCES, Arguments, Effect, Resources, Schema, ToolContext, ToolFailure

NAME: Final = "delegate"
MAX_MISSION_LENGTH: Final = 50_000
TIME_LIMIT: Final = 24 * 3_600.0
"""A worker keeps to limits of its own."""


class WorkerWaiting(ToolFailure):
    """The worker cannot go on without somebody; whoever delegated waits with it."""

    code = SUSPENDED


class Subagents(Protocol):
    """Who does the work, and who keeps the plan."""

    async def run(self, worker: AgentDefinition, mission: str, *, left: bool) -> TurnResult:
        """`left`: a worker was at this mission before, and was left in the middle."""

    async def start_todo(self, todo_id: str) -> None:
        """Mark a task of the plan as in progress."""

    async def record_failure(self, todo_id: str, error: str) -> str:
        """A task's work has failed; what is to be done about it, in words."""


class AsyncDelegation(Protocol):
    """Where work is left that nobody waits for (M9)."""

    async def submit(self, id: str, worker: str, mission: str, todo_id: str | None) -> str:
        """In words, what becomes of it. The same id leaves it once."""


class DelegateTool:
    """A tool of whoever has workers."""

    name = NAME
    effect = Effect.LIST
    server: str | None = None
    time_limit: float | None = TIME_LIMIT

    def __init__(
        self, workers: Mapping[str, AgentDefinition], crew: Subagents, errands: AsyncDelegation | None = None
    ) -> None:
        self._workers = workers
        self._crew = crew
        self._errands = errands
        self._left: dict[tuple[str, str], str] = {}
        """What was left in the middle, with the ids of the calls."""
        self.description = (
            "Give a mission to a worker and wait for its report. The worker knows nothing but the mission: say what to "
            f"do, what matters, and what to report. Types: {', '.join(workers)}."
        )
        if errands is not None:
            self.description += " With async, go on at once: its result is posted to the chat when it is there."

    @property
    def input_schema(self) -> Schema:
        later = {"async": {"type": "boolean", "description": "Do not wait for it"}} if self._errands else {}
        return {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": list(self._workers)},
                "mission": {"type": "string", "minLength": 1},
                "rationale": {"type": "string", "description": "Why this worker"},
                "todoId": {"type": "string", "description": "The task of the plan that this is about"},
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
        if todo is not None and (problem := line_problem(todo, max_length=100)):
            found.append(f"todoId: {problem}")
        if arguments.get("async") not in (None, True, False):
            found.append("async: must be true or false")
        elif arguments.get("async") and self._errands is None:
            found.append("async: needs a worker process that goes on with it; here a worker is waited for")
        return found

    def resources(self, arguments: Arguments) -> Resources:  # noqa: ARG002
        return NO_RESOURCES

    def preview(self, arguments: Arguments) -> str:
        return visible_block(json.dumps(dict(arguments), indent=2, ensure_ascii=False))

    def command(self, arguments: Arguments) -> str | None:  # noqa: ARG002
        return None

    def resume_call(self, arguments: Arguments, call_id: str) -> None:
        self._left[arguments["type"], arguments["mission"]] = call_id

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:
        worker, mission, todo_id = self._workers[arguments["type"]], arguments["mission"], arguments.get("todoId")
        before = self._left.pop((worker.name, mission), None)
        if arguments.get("async") and self._errands is not None:
            return await self._errands.submit(before or running.call_id, worker.name, mission, todo_id)
        if todo_id:
            await self._crew.start_todo(todo_id)
        left = before is not None
        running.output(f"{worker.name} {'goes on' if left else 'begins'}\n")
        ended = await self._crew.run(worker, mission, left=left)
        running.output(f"{worker.name} ended: {ended.reason}\n")
        match ended.reason:
            case Reason.COMPLETED:
                return ended.text or "The worker said nothing."
            case Reason.WAITING:
                raise WorkerWaiting(f"{worker.name}: {ended.why}")
        told = f"The {worker.name} did not finish. {ended.text}"
        if todo_id and ended.reason is not Reason.CANCELLED:
            told = f"{told}\n\n{await self._crew.record_failure(todo_id, f'{ended.reason}: {ended.why}')}"
        raise ToolFailure(told)
