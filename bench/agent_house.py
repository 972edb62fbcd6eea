"""An agent whose model takes no time: all that passes between two of its requests is the loop's own work."""

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
from punchlist.agent.turn import TurnResult
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.cancellation import CancelSignal
from punchlist.models.model import FinishReason, ModelInfo, ModelRequest, Reply, RequestedCall, TextListener, Usage
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.policy_config import PolicySettings
from punchlist.tools.function_tool import tool
from punchlist.tools.settings import ToolSettings
from punchlist.tools.tool_session import ToolSite

TASKS: Final = 5
USAGE: Final = Usage(1_000, 20)


@tool
async def nothing(n: int) -> int:
    """Give back what was sent."""
    return n


class Instant:
    """Plans with its first reply, then calls `nothing` with a number that it has not sent before, for ever."""

    name = "instant"
    info = ModelInfo()

    def __init__(self, tasks: int = TASKS, thinking: Callable[[], float] | None = None) -> None:
        """`thinking` says how many seconds a reply takes, for what is not to be instant."""
        self._tasks = tasks
        self._thinking = thinking
        self.requests = 0
        self.last: ModelRequest | None = None
        self.entered: list[float] = []
        self.returned: list[float] = []

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        del on_text
        self.entered.append(perf_counter())
        self.last = request
        self.requests += 1
        if self._thinking is not None:
            await asyncio.sleep(self._thinking())
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
        """Seconds of the loop's own work after each reply, up to the next request: the first is iteration 1's."""
        return [entered - returned for returned, entered in zip(self.returned, self.entered[1:], strict=False)]


def titles(tasks: int) -> Sequence[str]:
    return [f"Look into part {number} of the request and write down what is there" for number in range(1, tasks + 1)]


def scope(session: str) -> Scope:
    return Scope(session, Actor(Role.SUPERVISOR, "supervisor"))


def agent(iterations: int) -> AgentDefinition:
    """The supervisor as it is, but for how long it may go on, and with one more tool."""
    built_in = BUILT_IN["supervisor"]
    limits = replace(Limits(), base_iterations=iterations, max_iterations=iterations)
    return replace(built_in, tools=(*built_in.tools, nothing.name), limits=limits)


def runtime(store: Store, session: str, workspace: Path, model: Instant) -> AgentRuntime:
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


async def turn(store: Store, session: str, workspace: Path, iterations: int, model: Instant | None = None) -> Instant:
    """One turn of so many iterations, which the limit ends; its model has the times."""
    model = model or Instant()
    outcome = await runtime(store, session, workspace, model).run(agent(iterations), "Do it.", CancelSignal())
    _check(outcome, iterations)
    return model


def _check(outcome: TurnResult, iterations: int) -> None:
    """A loop that went another way than was meant would be timed for nothing."""
    ended = outcome
    if ended.reason is not Reason.CAPPED or ended.iterations != iterations:
        raise RuntimeError(f"The turn ended as {ended.reason} ({ended.why}) after {ended.iterations} iterations.")
