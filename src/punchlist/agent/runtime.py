"""Runs turns: from an agent definition and a goal to the result of the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from punchlist.agent.context import ModelContext, recent_messages
from punchlist.agent.continuation import Reason
from punchlist.agent.definitions import BUILT_IN, TOP_LEVEL_AGENTS, AgentDefinition
from punchlist.agent.delegation import AsyncDelegation, DelegateTool, SubagentRunner
from punchlist.agent.events import CallChanged, EventListener, ToolOutput, TurnStarted
from punchlist.agent.list_state import TurnLists
from punchlist.agent.loop import run_loop
from punchlist.agent.prompts import system_prompt
from punchlist.agent.resume import restore
from punchlist.agent.tool_execution import ToolExecution
from punchlist.agent.transcript import TurnLog, from_stored, single_line
from punchlist.agent.turn import Turn, TurnDeps, TurnRequest, TurnResult
from punchlist.checklist.service import Checklists
from punchlist.checklist.tools import checklist_tools
from punchlist.conversations.model import Scope, StoredTurn, TurnScope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations
from punchlist.conversations.turn_writer import TurnAlreadyEnded, TurnWriter
from punchlist.errors import ConfigError, InvalidInput, PunchlistError, StoreBusy, StoreUnavailable
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.processes import current_process
from punchlist.kernel.text import raw_problem
from punchlist.models.model import Message, Model, ToolOffer, Usage
from punchlist.plan.service import Plans
from punchlist.plan.tools import plan_tools
from punchlist.storage.async_bridge import AsyncBridge, make_bridge
from punchlist.toolcalls.listeners import AskPerson, Listeners
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool, list_tool
from punchlist.tools.tool_session import ToolSession, ToolSite, open_tool_session

DATABASE_OUTAGES: Final = (StoreUnavailable, StoreBusy)
"""Errors after which the database may come back."""


@dataclass(frozen=True, slots=True)
class AgentRuntime:
    """The services that agents of one session work with."""

    site: ToolSite
    conversations: Conversations
    plans: Plans
    checklists: Checklists
    model_for: Callable[[AgentDefinition], Model]
    mode: Mode | None = None
    agents: Mapping[str, AgentDefinition] = field(default_factory=lambda: BUILT_IN)
    ask: AskPerson | None = None
    """Asks a person for approval. Without it, a call that needs approval suspends the turn."""
    wait_for_approval: bool = False
    """Wait for approvals that are answered elsewhere, instead of suspending the turn."""
    on_event: EventListener | None = None
    tools: Sequence[AgentTool] = ()
    """Additional tools that every agent may call."""
    top_level_tools: Callable[[TurnScope], Sequence[AgentTool]] | None = None
    """Additional tools for agents that are not workers, filtered by their definitions."""
    async_delegation: AsyncDelegation | None = None
    extra_state: Callable[[], str] | None = None
    """Text that follows the lists in the state of each model request."""
    ordered_calls: bool = True
    """The calls of a reply take effect in their order; otherwise they run concurrently."""
    shared_conversation: bool = False
    """Several agents take turns in the conversation; each sees only its own earlier turns."""

    async def run(self, agent: AgentDefinition, goal: str, signal: CancelSignal) -> TurnResult:
        """Run a new turn."""
        return await self.run_turn(TurnRequest(agent, signal, goal))

    async def resume(self, agent: AgentDefinition, turn_id: str, signal: CancelSignal) -> TurnResult:
        """Resume a turn that was interrupted or suspended."""
        return await self.run_turn(TurnRequest(agent, signal, None), turn_id)

    async def run_stored(self, agent: AgentDefinition, turn: StoredTurn, signal: CancelSignal) -> TurnResult:
        """Run a turn that this process owns already and whose request is stored."""
        return await self.run_turn(TurnRequest(agent, signal, None), turn)

    async def run_turn(self, request: TurnRequest, turn: str | StoredTurn | None = None) -> TurnResult:
        """Run `request` in a new turn, or in `turn`: an id is taken over, a stored turn is owned already."""
        # Checked first: a wrong name or goal must neither leave a turn behind nor end the current one.
        model = self.model_for(request.agent)
        if request.goal is not None and (problem := raw_problem(request.goal, max_length=MAX_MESSAGE_LENGTH)):
            raise InvalidInput(f"goal: {problem}")
        if request.agent.limits.cost is not None and model.info.cost(Usage()) is None:
            raise ConfigError(
                f"The price of {model.name} is unknown, so a cost limit cannot be enforced. Limit tokens instead."
            )
        stored = turn if isinstance(turn, StoredTurn) else await self._open_turn(request, turn)
        scope, resumed = TurnScope(stored.conversation_id, request.actor, stored.id), isinstance(turn, str)
        writer = TurnWriter(self.site.store, scope, current_process())
        if self.on_event is not None:
            agent = request.agent
            limit = agent.limits.continuations if agent.todo_driven else None
            self.on_event(TurnStarted(agent.name, stored.id, model.name, request.parent, resumed, limit))
        try:
            async with self._tool_session(request, scope) as session:
                deps = await self._deps(request, stored, scope, model, session, writer)
                if resumed:
                    request.budget.restore(await self._workers_usage(scope), 0.0)
                running = Turn(deps)
                for note in session.notes:
                    running.note(note)
                return await _run_to_end(running, request)
        except Exception as error:
            if request.left_open_on_outage and isinstance(error, DATABASE_OUTAGES):
                raise
            # A turn that no process works on must not look as if it were running.
            with suppress(PunchlistError):
                await make_bridge(self.site.store)(writer.end, [], single_line(f"{Reason.ERROR}: {error}"))
            raise

    async def _deps(
        self,
        request: TurnRequest,
        stored: StoredTurn,
        scope: TurnScope,
        model: Model,
        session: ToolSession,
        writer: TurnWriter,
    ) -> TurnDeps:
        store, tools = self.site.store, session.tools
        call = make_bridge(store)
        waits = self.wait_for_approval or self.ask is not None
        lists = TurnLists(
            store,
            scope,
            plan="create_todo" in tools,
            checklist="TodoWrite" in tools,
            since=None if request.goal else stored.started_at,
            extra_state=self.extra_state,
        )
        return TurnDeps(
            stored.id,
            request,
            model,
            list(tools),
            ToolExecution(session, call, waits=waits),
            lists,
            TurnLog(writer, session.writer, call, store.clock),
            await self._context(request, list(tools.values()), scope, call),
            call,
            self.on_event,
        )

    async def _open_turn(self, request: TurnRequest, turn_id: str | None) -> StoredTurn:
        call, owner = make_bridge(self.site.store), current_process()
        scope = replace(self.site.scope, actor=request.actor)
        if turn_id is not None:
            take = self.conversations.take_turn
            return await call(take, scope, turn_id, owner, abandoned=request.owner_is_dead, fence=request.fence)
        reason, begin = "a new request" if request.parent is None else "delegated", self.conversations.begin_turn
        return await call(begin, scope, reason=reason, parent=request.parent, owner=owner, fence=request.fence)

    async def _workers_usage(self, scope: TurnScope) -> Usage:
        """Tokens used by the turn's workers, and by theirs, before the program ended. Their cost is not stored."""
        call, used = make_bridge(self.site.store), Usage()
        for child in await call(self.conversations.child_turns, scope):
            used += restore(await call(self.conversations.turn_messages, child.id)).usage
            used += await self._workers_usage(replace(scope, turn_id=child.id))
        return used

    # --- tools --------------------------------------------------------------------------------------------

    def _tool_session(self, request: TurnRequest, scope: TurnScope) -> AbstractAsyncContextManager[ToolSession]:
        always = {tool.name for tool in self.tools}
        site = replace(
            self.site,
            scope=Scope(scope.conversation_id, scope.actor),
            turn_id=scope.turn_id,
            abandoned=request.owner_is_dead,
        )
        return open_tool_session(
            site,
            mode=self.mode,
            ask=self.ask,
            listeners=self._listeners(request.agent.name, scope.turn_id),
            extra=[*self.tools, *self._list_tools(request, scope)],
            allowed=lambda name: name in always or request.agent.may_call(name),
            ordered=self.ordered_calls,
        )

    def _listeners(self, agent: str, turn_id: str) -> Listeners | None:
        emit = self.on_event
        if emit is None:
            return None
        return Listeners(
            on_transition=lambda step: emit(CallChanged(agent, turn_id, step.call)),
            on_output=lambda call_id, text: emit(ToolOutput(agent, turn_id, call_id, text)),
        )

    def _list_tools(self, request: TurnRequest, scope: TurnScope) -> list[AgentTool]:
        """The list tools that the role may use, and `delegate` if the agent has workers."""
        role, call = scope.actor.role, make_bridge(self.site.store)
        specs = [*plan_tools(lambda: self.plans)]
        tools: list[AgentTool] = [list_tool(spec, scope, call) for spec in specs if role in spec.roles]
        if request.parent is None:
            # The checklist belongs to the session: a worker would overwrite its supervisor's.
            checklist = checklist_tools(lambda: self.checklists)
            tools += [list_tool(spec, scope, call) for spec in checklist if role in spec.roles]
            if self.top_level_tools is not None:
                tools += self.top_level_tools(scope)
        if workers := self._workers(request):
            queue = self.async_delegation if request.parent is None else None
            tools.append(DelegateTool(workers, SubagentRunner(self, request, scope), queue))
        return tools

    def _workers(self, request: TurnRequest) -> dict[str, AgentDefinition]:
        if not request.agent.delegates or request.depth >= request.depth_limit:
            return {}
        excluded = (request.agent.name, *TOP_LEVEL_AGENTS)
        return {name: agent for name, agent in self.agents.items() if name not in excluded}

    # --- context ------------------------------------------------------------------------------------------

    def lists(self, scope: TurnScope, since: str) -> TurnLists:
        """Both lists of a top-level turn that started at `since`."""
        return TurnLists(self.site.store, scope, plan=True, checklist=True, since=since)

    async def _context(
        self, request: TurnRequest, tools: Sequence[AgentTool], scope: TurnScope, call: AsyncBridge
    ) -> ModelContext:
        agent = request.agent
        workers = {name: worker.description for name, worker in self._workers(request).items()}
        names = [tool.name for tool in tools]
        system = system_prompt(agent.prompt, names, workspace=str(self.site.root), workers=workers)
        offers = [ToolOffer(tool.name, tool.description, tool.input_schema) for tool in tools]
        earlier: list[Message] = []
        if request.parent is None and agent.history:
            recent, whose = self.conversations.recent, agent.name if self.shared_conversation else None
            rows = await call(recent, scope.conversation_id, agent.history, except_turn=scope.turn_id, agent=whose)
            messages = [message for row in rows if (message := from_stored(row)) is not None]
            earlier = recent_messages(messages, agent.history)
        turns = await call(self.conversations.turns, scope.conversation_id, 2)
        return ModelContext(system, offers, earlier, agent.compact_after, len(turns) < 2)


async def _run_to_end(turn: Turn, request: TurnRequest) -> TurnResult:
    """Run the loop so that the turn always ends with a named reason (C13), unless the caller resumes it."""
    outages = DATABASE_OUTAGES if request.left_open_on_outage else ()
    try:
        return await run_loop(turn, request.goal)
    except outages:
        raise
    except asyncio.CancelledError:
        if not request.left_open_on_outage:
            await turn.fail(Reason.CANCELLED, "the calling program cancelled it")
        raise
    except TurnAlreadyEnded as over:
        return await turn.fail(Reason.CANCELLED, str(over))
    except PunchlistError as error:
        return await turn.fail(Reason.ERROR, str(error))
    except Exception as error:
        await turn.fail(Reason.ERROR, f"{type(error).__name__}: {error}")
        raise
