"""An agent whose model replies at once: the time between two requests is the time of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Final

from punchlist.agent.continuation import Limits, Reason
from punchlist.agent.definitions import BUILT_IN, AgentDefinition
from punchlist.agent.runtime import AgentRuntime
from punchlist.agent.turn_model import TurnResult
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import FinishReason, ModelInfo, ModelRequest, Reply, RequestedCall, TextListener, Usage
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode
from punchlist.tools.function_tool import tool
from punchlist.tools.settings import PolicySettings, ToolSettings
from punchlist.tools.tool_session import ToolSite

TASKS: Final = 5
USAGE: Final = Usage(1_000, 20)


@tool
async def nothing(n: int) -> int:
    """Return the argument."""
    return n


class InstantModel:
    """Plans with its first reply, then calls `nothing` with a new number in every reply."""

    name = "instant"
    info = ModelInfo()

    def __init__(self, tasks: int = TASKS, delay: Callable[[], float] | None = None) -> None:
        """`delay` returns the seconds that a reply takes; default: none."""
        self._tasks = tasks
        self._delay = delay
        self.requests = 0
        self.last: ModelRequest | None = None
        self.entered: list[float] = []
        self.returned: list[float] = []

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        del on_text
        self.entered.append(perf_counter())
        self.last = request
        self.requests += 1
        if self._delay is not None:
            await asyncio.sleep(self._delay())
        reply = Reply("", (self._call(),), FinishReason.TOOL_CALLS, USAGE)
        self.returned.append(perf_counter())
        return reply

    def _call(self) -> RequestedCall:
        id = f"call-{self.requests}"
        if self.requests > 1 or not self._tasks:
            return RequestedCall(id, nothing.name, {"n": self.requests})
        return RequestedCall(id, "create_todo", {"items": [{"title": title} for title in titles(self._tasks)]})

    @property
    def gaps(self) -> list[float]:
        """Seconds between each reply and the next request, starting with iteration 1."""
        return [entered - returned for returned, entered in zip(self.returned, self.entered[1:], strict=False)]


def titles(tasks: int) -> Sequence[str]:
    return [f"Look into part {number} of the request and write down what is there" for number in range(1, tasks + 1)]


def scope(session: str) -> Scope:
    return Scope(session, Actor(Role.SUPERVISOR, "supervisor"))


def agent(iterations: int) -> AgentDefinition:
    """The supervisor with another iteration limit and one more tool."""
    built_in = BUILT_IN["supervisor"]
    limits = replace(Limits(), base_iterations=iterations, max_iterations=iterations)
    return replace(built_in, tools=(*built_in.tools, nothing.name), limits=limits)


def runtime(store: Store, session: str, workspace: Path, model: InstantModel) -> AgentRuntime:
    conversations = Conversations(store)
    return AgentRuntime(
        ToolSite(store, scope(session), workspace, ToolSettings(PolicySettings()), workspace / "outputs", {}),
        conversations,
        Plans(store),
        Checklists(store, conversations),
        lambda _: model,
        Mode.YOLO,
        tools=[nothing],
    )


async def turn(
    store: Store, session: str, workspace: Path, iterations: int, model: InstantModel | None = None
) -> InstantModel:
    """Runs one turn, which the iteration limit ends. The returned model has the times."""
    model = model or InstantModel()
    outcome = await runtime(store, session, workspace, model).run(agent(iterations), "Do it.", CancelSignal())
    _check(outcome, iterations)
    return model


def _check(outcome: TurnResult, iterations: int) -> None:
    """Raises if the turn ended in another way, since its times would mean nothing."""
    if outcome.reason is not Reason.CAPPED or outcome.iterations != iterations:
        raise RuntimeError(f"The turn ended as {outcome.reason} ({outcome.why}) after {outcome.iterations} iterations.")
