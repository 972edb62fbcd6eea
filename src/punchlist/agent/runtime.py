"""Where agents work: from a definition and a goal to a turn that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from punchlist.agent import loop
from punchlist.agent.budget import Budget
from punchlist.agent.context import ModelContext, recent_messages
from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN, TOP_LEVEL_AGENTS, AgentDefinition
from punchlist.agent.delegation import AsyncDelegation, DelegateTool
from punchlist.agent.events import CallChanged, EventListener, ToolOutput, TurnStarted
from punchlist.agent.list_state import TurnLists
from punchlist.agent.prompts import system_prompt
from punchlist.agent.restore import restore
from punchlist.agent.result import TurnResult
from punchlist.agent.subagents import SubagentRunner
from punchlist.agent.tool_execution import ToolExecution
from punchlist.agent.transcript import from_stored
from punchlist.agent.turn import Turn, TurnDeps
from punchlist.agent.turn_log import StoredTurnLog, trail_line
from punchlist.checklist.service import Checklists
from punchlist.checklist.tools import checklist_tools
from punchlist.conversations.model import Scope, StoredTurn, TurnScope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations, Fence
from punchlist.conversations.turn_writer import TurnAlreadyEnded, TurnWriter
from punchlist.errors import ConfigError, InvalidInput, PunchlistError, StoreBusy, StoreUnavailable
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.cancel_signal import CancelSignal
from punchlist.kernel.process_id import current_process
from punchlist.kernel.text import raw_problem
from punchlist.models.model import Message, Model, ToolOffer, Usage
from punchlist.plan.service import Plans
from punchlist.plan.tools import plan_tools
from punchlist.storage.async_bridge import make_bridge
from punchlist.toolcalls.listeners import AskPerson, Listeners
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool
from punchlist.tools.list_tools import list_tool
from punchlist.tools.tool_session import ToolSession, ToolSite, open_tool_session

DATABASE_OUTAGES: Final = (StoreUnavailable, StoreBusy)
"""A database that may come back."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """Who watches and answers."""

    ask: AskPerson | None = None
    on_event: EventListener | None = None
    wait_for_approval: bool = False
    """A call that needs approval is waited for, though it is answered elsewhere."""

    @property
    def waits(self) -> bool:
        return self.wait_for_approval or self.ask is not None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    turn_id: str
    ended: TurnResult


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn to be worked on: a new one with a goal, or one that was left."""

    agent: AgentDefinition
    signal: CancelSignal
    goal: str | None
    parent: str | None = None
    depth: int = 0
    max_depth: int | None = None
    """As the agent said with whom it began."""
    budget: Budget = field(default_factory=Budget)
    message: str | None = None
    """What somebody says to an agent that goes on with a turn."""
    owner_is_dead: bool = False
    """Whoever worked on it is known to be dead."""
    fence: Fence | None = None
    """Keeps one from a turn who was thought dead meanwhile."""
    left_open_on_outage: bool = False
    """Whoever runs it goes on with it when the database is there again; the turn is left open for that."""

    @property
    def actor(self) -> Actor:
        return Actor(self.agent.role if self.parent is None else Role.WORKER, self.agent.name)

    @property
    def deepest(self) -> int:
        return self.agent.delegation_depth if self.max_depth is None else self.max_depth


@dataclass(frozen=True, slots=True)
class AgentRuntime:
    site: ToolSite
    conversations: Conversations
    plans: Plans
    checklists: Checklists
    model_for: Callable[[AgentDefinition], Model]
    mode: Mode | None = None
    audience: Interaction = field(default_factory=Interaction)
    agents: Mapping[str, AgentDefinition] = field(default_factory=lambda: BUILT_IN)
    tools: Sequence[AgentTool] = ()
    """Those of whoever runs the agents; every agent may call them."""
    top_level_tools: Callable[[TurnScope], Sequence[AgentTool]] | None = None
    """Those that only an agent has that is nobody's worker, as far as its definition names them."""
    async_delegation: AsyncDelegation | None = None
    """Where work is left that nobody waits for."""
    extra_state: Callable[[], str] | None = None
    """What the model is told besides its lists, before each request."""
    shared_conversation: bool = False
    """Several agents work in the conversation, one after the other; each is told of what it did itself."""

    async def run(self, agent: AgentDefinition, goal: str, signal: CancelSignal) -> TurnOutcome:
        """One turn of an agent, from its goal to its end."""
        return await self.run_turn(TurnRequest(agent, signal, goal))

    async def resume(self, agent: AgentDefinition, turn_id: str, signal: CancelSignal) -> TurnOutcome:
        """Go on with a turn that was left: by a program that ended, or because it had to wait."""
        return await self.run_turn(TurnRequest(agent, signal, None), turn_id)

    async def run_stored(self, agent: AgentDefinition, turn: StoredTurn, signal: CancelSignal) -> TurnOutcome:
        """A turn that was begun for this process, with its request on record."""
        return await self.run_turn(TurnRequest(agent, signal, None), turn)

    async def run_turn(self, work: TurnRequest, turn: str | StoredTurn | None = None) -> TurnOutcome:
        # Before the turn is made: a wrong name or goal must not leave one behind, nor end the one before it.
        model = self.model_for(work.agent)
        if work.goal is not None and (problem := raw_problem(work.goal, max_length=MAX_MESSAGE_LENGTH)):
            raise InvalidInput(f"goal: {problem}")
        if work.agent.limits.cost is not None and model.info.cost(Usage()) is None:
            raise ConfigError(f"The price of {model.name} is not known, so that a limit of cost cannot be kept.")
        stored = turn if isinstance(turn, StoredTurn) else await self._turn(work, turn)
        here = TurnScope(stored.conversation_id, work.actor, stored.id)
        aside, tell = make_bridge(self.site.store), self.audience.on_event
        if tell is not None:
            most = work.agent.limits.continuations if work.agent.todo_driven else None
            tell(TurnStarted(work.agent.name, stored.id, model.name, work.parent, isinstance(turn, str), most))
        try:
            return TurnOutcome(stored.id, await self._at_the_bench(work, stored, here, model, isinstance(turn, str)))
        except Exception as error:
            if work.left_open_on_outage and isinstance(error, DATABASE_OUTAGES):
                raise
            # Such as a database that is gone: a turn that nobody works on must not look as if somebody did.
            with suppress(PunchlistError):
                await aside(
                    TurnWriter(self.site.store, here, current_process()).end, [], trail_line(f"{Reason.ERROR}: {error}")
                )
            raise

    async def _at_the_bench(
        self, work: TurnRequest, stored: StoredTurn, here: TurnScope, model: Model, resumed: bool
    ) -> TurnResult:
        aside = make_bridge(self.site.store)
        async with self._bench(work, here) as bench:
            means = TurnDeps(
                model,
                ToolExecution(bench.scheduler, bench.calls, bench.tools, aside, waits=self.audience.waits),
                self._lists_of(here, bench.tools, None if work.goal else stored.started_at),
                StoredTurnLog(
                    TurnWriter(self.site.store, here, current_process()), bench.writer, aside, self.site.store.clock
                ),
                aside,
                list(bench.tools),
                self.audience.on_event,
            )
            context = await self._context(work, list(bench.tools.values()), here)
            if resumed:
                work.budget.restore(*await self._workers_used(here))
            ours = Turn(work.agent, stored.id, context, means, work.signal, work.budget, work.message)
            for note in bench.notes:
                ours.note(note)
            return await _seen_through(ours, work.goal, DATABASE_OUTAGES if work.left_open_on_outage else ())

    async def _turn(self, work: TurnRequest, turn_id: str | None) -> StoredTurn:
        aside, owner = make_bridge(self.site.store), current_process()
        scope = replace(self.site.scope, actor=work.actor)
        if turn_id is not None:
            take = self.conversations.take_turn
            return await aside(take, scope, turn_id, owner, abandoned=work.owner_is_dead, fence=work.fence)
        reason, begin = "a new request" if work.parent is None else "delegated", self.conversations.begin_turn
        return await aside(begin, scope, reason=reason, parent=work.parent, owner=owner, fence=work.fence)

    async def _workers_used(self, here: TurnScope) -> tuple[Usage, float]:
        """Before the program ended; by those whom they delegated to as well. What it cost is not known any more."""
        aside, used = make_bridge(self.site.store), Usage()
        for child in await aside(self.conversations.child_turns, here):
            used += restore(await aside(self.conversations.turn_messages, child.id)).usage
            theirs, _ = await self._workers_used(TurnScope(here.conversation_id, here.actor, child.id))
            used += theirs
        return used, 0.0

    def _bench(self, work: TurnRequest, here: TurnScope) -> AbstractAsyncContextManager[ToolSession]:
        theirs = {tool.name for tool in self.tools}
        where = Scope(here.conversation_id, here.actor)
        return open_tool_session(
            replace(self.site, scope=where, turn_id=here.turn_id, abandoned=work.owner_is_dead),
            mode=self.mode,
            ask=self.audience.ask,
            listeners=self._listeners(work.agent.name, here.turn_id),
            extra=[*self.tools, *self._own_tools(work, here)],
            allowed=lambda name: name in theirs or work.agent.may_call(name),
        )

    def _listeners(self, agent: str, turn_id: str) -> Listeners | None:
        tell = self.audience.on_event
        if tell is None:
            return None
        return Listeners(
            on_transition=lambda step: tell(CallChanged(agent, turn_id, step.call)),
            on_output=lambda call_id, text: tell(ToolOutput(agent, turn_id, call_id, text)),
        )

    def _own_tools(self, work: TurnRequest, here: TurnScope) -> list[AgentTool]:
        """The lists' tools that its role may use, and workers, if it has any."""
        role, aside = here.actor.role, make_bridge(self.site.store)
        tools: list[AgentTool] = [
            *(list_tool(tool, here, aside) for tool in plan_tools(lambda: self.plans) if role in tool.roles),
        ]
        if work.parent is None:
            # The checklist is the session's, which people watch: a worker would write over its supervisor's.
            written = checklist_tools(lambda: self.checklists)
            tools += [list_tool(tool, here, aside) for tool in written if role in tool.roles]
            if self.top_level_tools is not None:
                tools += self.top_level_tools(here)
        if workers := self._workers(work):
            tools.append(
                DelegateTool(
                    workers, SubagentRunner(self, work, here), self.async_delegation if work.parent is None else None
                )
            )
        return tools

    def _workers(self, work: TurnRequest) -> dict[str, AgentDefinition]:
        if not work.agent.delegates or work.depth >= work.deepest:
            return {}
        return {
            name: one for name, one in self.agents.items() if name != work.agent.name and name not in TOP_LEVEL_AGENTS
        }

    def lists(self, here: TurnScope, since: str) -> TurnLists:
        """Everything that is to be done in a turn of a person's agent, which began at `since`."""
        return TurnLists(self.site.store, here, plan=True, checklist=True, since=since)

    def _lists_of(self, here: TurnScope, tools: Container[str], since: str | None) -> TurnLists:
        checklist = "TodoWrite" in tools
        return TurnLists(
            self.site.store,
            here,
            plan="create_todo" in tools,
            checklist=checklist,
            since=since,
            remark=self.extra_state,
        )

    async def _context(self, work: TurnRequest, tools: Sequence[AgentTool], here: TurnScope) -> ModelContext:
        agent = work.agent
        workers = {name: one.description for name, one in self._workers(work).items()}
        names = [tool.name for tool in tools]
        system = system_prompt(agent.prompt, names, workspace=str(self.site.root), workers=workers)
        offered = [ToolOffer(tool.name, tool.description, tool.input_schema) for tool in tools]
        earlier: list[Message] = []
        if work.parent is None and agent.history:
            recent, id = self.conversations.recent, here.conversation_id
            whose = agent.name if self.shared_conversation else None
            stored = await make_bridge(self.site.store)(recent, id, agent.history, but_of=here.turn_id, agent=whose)
            said = [message for row in stored if (message := from_stored(row)) is not None]
            earlier = recent_messages(said, agent.history)
        turns = await make_bridge(self.site.store)(self.conversations.turns, here.conversation_id, 2)
        return ModelContext(system, offered, earlier, agent.compact_after, len(turns) < 2)


async def _seen_through(turn: Turn, goal: str | None, but: tuple[type[Exception], ...] = ()) -> TurnResult:
    """A turn that always ends with a name, whatever happens in it (C13); `but` for what is not its end."""
    try:
        return await loop.run_loop(turn, goal)
    except but:
        raise
    except asyncio.CancelledError:
        if but:
            # Whoever runs it goes on with it.
            raise
        await turn.fail(Reason.CANCELLED, "whoever ran it has ended it")
        raise
    except TurnAlreadyEnded as over:
        return await turn.fail(Reason.CANCELLED, str(over))
    except PunchlistError as error:
        return await turn.fail(Reason.ERROR, str(error))
    except Exception as error:
        await turn.fail(Reason.ERROR, f"{type(error).__name__}: {error}")
        raise
