"""`Agent`: a turn inside of somebody's own program.

    agent = Agent("anthropic:NAME", tools=[weather])
    result = await agent.run("Compare the weather in Oslo and Rome.")     # or agent.run_sync(…)
    async for news in agent.events("And now Paris."): …

The same loop, scheduler and storage as `punchlist run`; no more than that is here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from punchlist.agent.continuation import Limits, Reason
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.events import AgentEvent, EventListener, NoteAdded
from punchlist.agent.list_state import ListItem
from punchlist.agent.model_resolver import ModelResolver
from punchlist.agent.resume import resume_session
from punchlist.agent.runtime import AgentRuntime, Interaction, TurnOutcome
from punchlist.app import App
from punchlist.config import current_user, load
from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.kernel.ids import new_id
from punchlist.models.model import Model, Usage
from punchlist.toolcalls.listeners import AskPerson
from punchlist.toolcalls.policy import Mode, Rule, Verdict
from punchlist.toolcalls.tool import AgentTool

Start = Callable[[AgentRuntime, CancelSignal], Coroutine[Any, Any, TurnOutcome]]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a turn."""

    reason: Reason
    why: str
    text: str
    todos: tuple[ListItem, ...]
    iterations: int
    continuations: int
    usage: Usage
    conversation_id: str
    turn_id: str


class Agent:
    """An agent with a session of its own. Turns follow each other; for several at once, make several agents."""

    def __init__(
        self,
        model: str | Model,
        *,
        tools: Sequence[AgentTool] = (),
        instructions: str | None = None,
        agent: str = "supervisor",
        mode: Mode | str = Mode.DEFAULT,
        ask: AskPerson | None = None,
        limits: Limits | None = None,
        continues: bool | None = None,
        workspace: str | Path = ".",
        database: str | None = None,
        session: str | None = None,
    ) -> None:
        """`tools` are called without asking, since they are yours; what else may run is up to `mode` and the policy of
        the settings. `ask` puts a question to a person; without it, a call that needs approval makes the turn wait,
        and `resume` goes on after `punchlist approvals approve`. `instructions` take the place of the agent's own
        prompt. A `session` that is named can be gone on with by another process."""
        self._folder = Path(workspace).resolve()
        settings = load({"database": database, "session": session or f"agent-{new_id()}"}, cwd=self._folder)
        self._house = App(settings)
        self._model = model
        self._tools = tuple(tools)
        self._mode = Mode(mode)
        self._ask = ask
        chosen = self._house.agents.get(agent)
        self._agent = replace(
            chosen,
            prompt=chosen.prompt if instructions is None else instructions,
            limits=chosen.limits if limits is None else limits,
            todo_driven=chosen.todo_driven if continues is None else continues,
        )
        self._signal: CancelSignal | None = None

    @property
    def session(self) -> str:
        return self._house.settings.session

    # --- working ------------------------------------------------------------------------------------------

    async def run(self, goal: str) -> RunResult:
        """One turn, from its goal to its end. It always ends, with a reason; it raises only before it has begun."""
        return await self._see_through(self._working(goal), None)

    async def resume(self) -> RunResult:
        """Go on with what the session was at: after a crash, after an answer."""
        return await self._see_through(self._going_on, None)

    def run_sync(self, goal: str) -> RunResult:
        """As `run`, for programs without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(goal))
        raise InvalidInput("run_sync was called inside of an event loop. There, `await agent.run(goal)`.")

    async def events(self, goal: str | None = None) -> AsyncIterator[AgentEvent]:
        """What happens, as it happens; the last is `TurnEnded`. Without a goal, as `resume`. Whoever stops listening
        ends the turn."""
        news: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        start = self._going_on if goal is None else self._working(goal)
        working = asyncio.ensure_future(self._see_through(start, news.put_nowait))
        working.add_done_callback(lambda _: news.put_nowait(None))
        try:
            while (one := await news.get()) is not None:
                yield one
            # What kept it from beginning is for whoever listens.
            await working
        finally:
            if not working.done():
                self.cancel("nobody listens any more")
                await asyncio.wait([working])

    def cancel(self, reason: str = "cancelled") -> None:
        """End the turn that runs, in good order. From the event loop's thread."""
        if self._signal is not None:
            self._signal.set(reason)

    def close(self) -> None:
        self._house.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- how ----------------------------------------------------------------------------------------------

    def _working(self, goal: str) -> Start:
        if not goal.strip():
            raise InvalidInput("goal: must not be empty")
        return lambda runtime, signal: runtime.run(self._agent, goal, signal)

    def _going_on(self, runtime: AgentRuntime, signal: CancelSignal) -> Coroutine[Any, Any, TurnOutcome]:
        return resume_session(runtime, lambda _: self._agent, signal)

    async def _see_through(self, start: Start, tell: EventListener | None) -> RunResult:
        if self._signal is not None:
            raise InvalidInput("The agent is at work already; its turns follow each other.")
        runtime, self._signal = self._runtime(tell), CancelSignal()
        try:
            outcome = await start(runtime, self._signal)
        finally:
            self._signal = None
        return self._result(outcome)

    def _runtime(self, tell: EventListener | None) -> AgentRuntime:
        house = self._house
        scope = Scope(self.session, Actor(Role.PERSON, current_user()))
        site = house.site(scope, self._folder)
        theirs = tuple(Rule(Verdict.ALLOW, tool.name, source="given by the program") for tool in self._tools)
        policy = replace(site.settings.policy, rules=(*site.settings.policy.rules, *theirs))
        return AgentRuntime(
            replace(site, settings=replace(site.settings, policy=policy)),
            house.conversations,
            house.plans,
            house.checklists,
            self._speaks(tell),
            self._mode,
            Interaction(self._ask, tell),
            house.agents.definitions,
            self._tools,
        )

    def _speaks(self, tell: EventListener | None) -> Callable[[AgentDefinition], Model]:
        model = self._model
        if not isinstance(model, str):
            return lambda _: model
        told = None if tell is None else lambda text: tell(NoteAdded(self._agent.name, "", text))
        return ModelResolver(model, os.environ, told)

    def _result(self, outcome: TurnOutcome) -> RunResult:
        ended = outcome.ended
        return RunResult(
            ended.reason,
            ended.why,
            ended.text,
            ended.items,
            ended.iterations,
            ended.continuations,
            ended.usage,
            self.session,
            outcome.turn_id,
        )
