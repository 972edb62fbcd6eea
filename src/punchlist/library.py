"""`Agent`: run turns from another Python program.

    agent = Agent("anthropic:NAME", tools=[weather])
    result = await agent.run("Compare the weather in Oslo and Rome.")     # or agent.run_sync(…)
    async for event in agent.events("And now Paris."): …

It uses the same loop, scheduler and storage as `punchlist run`.
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
from punchlist.agent.definitions import LISTS, STRATEGIES, AgentDefinition
from punchlist.agent.events import AgentEvent, EventListener, NoteAdded
from punchlist.agent.list_state import ListItem
from punchlist.agent.model_resolver import ModelResolver
from punchlist.agent.resume import resume_session
from punchlist.agent.runtime import AgentRuntime
from punchlist.agent.turn_model import TurnResult
from punchlist.app import Services
from punchlist.config import current_user, load
from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.ids import new_id
from punchlist.models.model import Model, Usage
from punchlist.toolcalls.listeners import AskPerson
from punchlist.toolcalls.policy import Mode, Rule, Verdict
from punchlist.toolcalls.tool import AgentTool

Start = Callable[[AgentRuntime, CancelSignal], Coroutine[Any, Any, TurnResult]]


@dataclass(frozen=True, slots=True)
class RunResult:
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
    """An agent with its own session. It runs one turn at a time; for concurrent turns, make several agents."""

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
        lists: str | None = None,
        strategy: str | None = None,
        ordered_calls: bool = True,
        workspace: str | Path = ".",
        database: str | None = None,
        session: str | None = None,
    ) -> None:
        """`tools` run without approval; other tools follow `mode` and the policy of the settings. `ask` asks a person
        for approval; without it, a call that needs approval suspends the turn, and `resume` continues it after
        `punchlist approvals approve`. `instructions` replace the agent's own prompt. `ordered_calls=False` runs the
        calls of a reply concurrently. `lists` is "plan", "checklist" or "both"; `strategy` is "loop" or
        "drive". Another process can resume a `session` by its name."""
        self._folder = Path(workspace).resolve()
        settings = load({"database": database, "session": session or f"agent-{new_id()}"}, cwd=self._folder)
        self._app = Services(settings)
        self._model = model
        self._tools = tuple(tools)
        self._mode = Mode(mode)
        self._ask = ask
        self._ordered_calls = ordered_calls
        definition = self._app.agents.get(agent)
        self._agent = replace(
            definition,
            prompt=definition.prompt if instructions is None else instructions,
            limits=definition.limits if limits is None else limits,
            todo_driven=definition.todo_driven if continues is None else continues,
            lists=_choice("lists", lists, LISTS) or definition.lists,
            strategy=_choice("strategy", strategy, STRATEGIES) or definition.strategy,
        )
        self._signal: CancelSignal | None = None

    @property
    def session(self) -> str:
        return self._app.settings.session

    async def run(self, goal: str) -> RunResult:
        """Run one turn. It always ends with a reason; exceptions are raised only before it starts."""
        return await self._run(self._start(goal), None)

    async def resume(self) -> RunResult:
        """Resume the last turn of the session, after a crash or an answer."""
        return await self._run(self._resume, None)

    def run_sync(self, goal: str) -> RunResult:
        """Like `run`, for programs without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(goal))
        raise InvalidInput("run_sync cannot be called inside an event loop. Use `await agent.run(goal)` there.")

    async def events(self, goal: str | None = None) -> AsyncIterator[AgentEvent]:
        """The events of a turn as they happen, ending with `TurnEnded`. Without a goal, like `resume`. Closing the
        iterator cancels the turn."""
        queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        start = self._resume if goal is None else self._start(goal)
        running = asyncio.ensure_future(self._run(start, queue.put_nowait))
        running.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            # Raises what kept the turn from starting.
            await running
        finally:
            if not running.done():
                self.cancel("the event iterator was closed")
                await asyncio.wait([running])

    def cancel(self, reason: str = "cancelled") -> None:
        """Cancel the running turn. Call it from the event loop's thread."""
        if self._signal is not None:
            self._signal.set(reason)

    def close(self) -> None:
        self._app.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- internals ----------------------------------------------------------------------------------------

    def _start(self, goal: str) -> Start:
        if not goal.strip():
            raise InvalidInput("goal: must not be empty")
        return lambda runtime, signal: runtime.run(self._agent, goal, signal)

    def _resume(self, runtime: AgentRuntime, signal: CancelSignal) -> Coroutine[Any, Any, TurnResult]:
        return resume_session(runtime, lambda _: self._agent, signal)

    async def _run(self, start: Start, on_event: EventListener | None) -> RunResult:
        if self._signal is not None:
            raise InvalidInput("The agent is already running a turn. Wait for it, or use another Agent.")
        runtime, self._signal = self._runtime(on_event), CancelSignal()
        try:
            result = await start(runtime, self._signal)
        finally:
            self._signal = None
        return RunResult(
            result.reason,
            result.why,
            result.text,
            result.items,
            result.iterations,
            result.continuations,
            result.usage,
            self.session,
            result.turn_id,
        )

    def _runtime(self, on_event: EventListener | None) -> AgentRuntime:
        app = self._app
        site = app.site(Scope(self.session, Actor(Role.PERSON, current_user())), self._folder)
        allowed = tuple(Rule(Verdict.ALLOW, tool.name, source="given by the program") for tool in self._tools)
        policy = replace(site.settings.policy, rules=(*site.settings.policy.rules, *allowed))
        return AgentRuntime(
            replace(site, settings=replace(site.settings, policy=policy)),
            app.conversations,
            app.plans,
            app.checklists,
            self._model_for(on_event),
            self._mode,
            app.agents.definitions,
            ask=self._ask,
            on_event=app.observed(on_event),
            telemetry=app.telemetry,
            tools=self._tools,
            ordered_calls=self._ordered_calls,
        )

    def _model_for(self, on_event: EventListener | None) -> Callable[[AgentDefinition], Model]:
        model = self._model
        if not isinstance(model, str):
            return lambda _: model
        on_note = None if on_event is None else lambda text: on_event(NoteAdded(self._agent.name, "", text))
        return ModelResolver(model, os.environ, on_note)


def _choice(name: str, value: str | None, names: Sequence[str]) -> str | None:
    if value is not None and value not in names:
        raise InvalidInput(f"{name}: must be one of {', '.join(names)}, got {value!r}")
    return value
