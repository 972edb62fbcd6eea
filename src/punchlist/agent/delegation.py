"""`delegate`: a worker is given a mission, works in a turn of its own, and its report comes back (T12, T13)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.turn import Ended
from punchlist.kernel.text import line_problem, raw_problem, visible_block
from punchlist.toolcalls.tool import NOTHING, Arguments, Effect, Resources, Running, Schema, ToolFailure

NAME: Final = "delegate"
LONGEST_MISSION: Final = 50_000
TIME_LIMIT: Final = 24 * 3_600.0
"""A worker keeps to limits of its own."""

Start = Callable[[str], None]
Work = Callable[[AgentDefinition, str], Awaitable[Ended]]


class Delegate:
    """A tool of the supervisor's. `start` marks a task of the plan as in progress."""

    name = NAME
    effect = Effect.LIST
    server: str | None = None
    time_limit: float | None = TIME_LIMIT

    def __init__(self, workers: Mapping[str, AgentDefinition], work: Work, start: Start | None = None) -> None:
        self._workers = workers
        self._work = work
        self._start = start
        self.description = (
            "Give a mission to a worker and wait for its report. The worker knows nothing but the mission: say what to "
            f"do, what matters, and what to report. Types: {', '.join(workers)}."
        )

    @property
    def input_schema(self) -> Schema:
        return {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": list(self._workers)},
                "mission": {"type": "string", "minLength": 1},
                "rationale": {"type": "string", "description": "Why this worker"},
                "todoId": {"type": "string", "description": "The task of the plan that this is about"},
            },
            "required": ["type", "mission"],
        }

    def problems(self, arguments: Arguments) -> Sequence[str]:
        found = []
        if arguments.get("type") not in self._workers:
            found.append(f"type: must be one of {', '.join(self._workers)}")
        if problem := raw_problem(arguments.get("mission"), longest=LONGEST_MISSION):
            found.append(f"mission: {problem}")
        elif not str(arguments["mission"]).strip():
            found.append("mission: must not be empty")
        todo = arguments.get("todoId")
        if todo is not None and (problem := line_problem(todo, longest=100)):
            found.append(f"todoId: {problem}")
        if arguments.get("async"):
            found.append("async: is for missions; here a worker is waited for")
        return found

    def resources(self, arguments: Arguments) -> Resources:  # noqa: ARG002
        return NOTHING

    def preview(self, arguments: Arguments) -> str:
        return visible_block(json.dumps(dict(arguments), indent=2, ensure_ascii=False))

    def command(self, arguments: Arguments) -> str | None:  # noqa: ARG002
        return None

    async def run(self, arguments: Arguments, running: Running) -> Any:
        worker = self._workers[arguments["type"]]
        if self._start is not None and arguments.get("todoId"):
            self._start(arguments["todoId"])
        running.output(f"{worker.name} begins\n")
        ended = await self._work(worker, arguments["mission"])
        running.output(f"{worker.name} ended: {ended.reason}\n")
        if ended.reason is not Reason.COMPLETED:
            raise ToolFailure(_without_success(worker.name, ended))
        return ended.text or "The worker said nothing."


def _without_success(name: str, ended: Ended) -> str:
    left = "".join(f"\n- {item.title}" for item in ended.open)
    told = f"\n\nIt said last: {ended.text}" if ended.text else ""
    return f"The {name} ended as {ended.reason}: {ended.why}.{f' Left open:{left}' if left else ''}{told}"
