"""Runs turns: from an agent definition and a goal to the result of the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from punchlist.agent.chat_memory import ChatMemory
from punchlist.agent.checks import COMMAND_TOOL, CheckRunner, MetricCheck, PersonCheckTool, person_check
from punchlist.agent.completion import ClaimSource, CompletionGate
from punchlist.agent.context import ModelContext, tool_offers
from punchlist.agent.continuation import OpenItem, Reason, Wait
from punchlist.agent.definitions import BUILT_IN, CHECKLIST_TOOL, OWN_LIST_TOOLS, TOP_LEVEL_AGENTS, AgentDefinition
from punchlist.agent.delegation import AsyncDelegation, DelegateTool, SubagentRunner
from punchlist.agent.drive import run_drive
from punchlist.agent.earlier_turns import earlier_messages
from punchlist.agent.events import CallChanged, EventListener, ToolOutput
from punchlist.agent.goals import (
    GoalJudge,
    GoalVerdict,
    JudgeTask,
    VerdictKind,
    judge_agent,
    judge_request,
)
from punchlist.agent.item_runner import ItemRunner
from punchlist.agent.item_task import ItemClaims
from punchlist.agent.list_claims import ListClaims, VerifiedChecklists, VerifiedPlans
from punchlist.agent.list_state import TurnLists
from punchlist.agent.loop import run_loop
from punchlist.agent.message_kinds import GOAL, TEXT
from punchlist.agent.model_resolver import ModelWithWindow
from punchlist.agent.prompts import DRIVE_PLAN, plan_lines, system_prompt, trusted_section
from punchlist.agent.resume import ONE_BY_ONE, original_request, restore
from punchlist.agent.take_over import take_over_items
from punchlist.agent.tool_execution import ToolExecution
from punchlist.agent.transcript import TurnLog
from punchlist.agent.turn import Turn
from punchlist.agent.turn_model import TurnDeps, TurnRequest, TurnResult, keeps_own_list, plan_scope
from punchlist.agent.work_log import WorkLog
from punchlist.checklist.render import render_for_model
from punchlist.checklist.service import Checklists
from punchlist.checklist.tools import checklist_tools
from punchlist.conversations.interrupts import InterruptWatch
from punchlist.conversations.model import Scope, StoredTurn, TurnScope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations
from punchlist.conversations.turn_writer import TurnAlreadyEnded, TurnWriter
from punchlist.errors import ConfigError, InvalidInput, PunchlistError, StoreBusy, StoreUnavailable
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.processes import current_process
from punchlist.kernel.text import one_line, raw_problem
from punchlist.models.model import Message, Model, Usage
from punchlist.plan.lifecycle import OPEN
from punchlist.plan.service import Plans
from punchlist.plan.tools import plan_tools
from punchlist.storage.async_bridge import AsyncBridge, make_bridge
from punchlist.toolcalls.listeners import AskPerson, Listeners
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool, list_tool
from punchlist.tools.tool_session import ToolSession, ToolSite, open_tool_session
from punchlist.verification.goal import Goal, decode_goal

if TYPE_CHECKING:
    from punchlist.agent.telemetry import Telemetry

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
    metric_check: MetricCheck | None = None
    """Tells whether a metric of the mission meets its target, for checks."""
    telemetry: Telemetry | None = None
    """Gets the events by `on_event`, and the requests to models from here."""
    shared_conversation: bool = False
    """Several agents take turns in the conversation; each sees only its own earlier turns."""

    async def run(
        self,
        agent: AgentDefinition,
        goal: str,
        signal: CancelSignal,
        *,
        take_over: str | None = None,
        until: Goal | None = None,
        is_planned: bool = False,
    ) -> TurnResult:
        """Run a new turn, with copies of the open items of the turn `take_over`; completed only if `until` is met.

        `is_planned`: the goal is to finish what is open already.
        """
        request = TurnRequest(agent, signal, goal, take_over=take_over, until=until, is_planned=is_planned)
        return await self.run_turn(request)

    async def resume(self, agent: AgentDefinition, turn_id: str, signal: CancelSignal) -> TurnResult:
        """Resume a turn that was interrupted or suspended."""
        return await self.run_turn(TurnRequest(agent, signal, None), turn_id)

    async def run_stored(self, agent: AgentDefinition, turn: StoredTurn, signal: CancelSignal) -> TurnResult:
        """Run a turn that this process owns already and whose request is stored."""
        return await self.run_turn(TurnRequest(agent, signal, None), turn)

    async def run_turn(self, request: TurnRequest, turn: str | StoredTurn | None = None) -> TurnResult:
        """Run `request` in a new turn, or in `turn`: an id is taken over, a stored turn is owned already."""
        # Checked first: a wrong name or goal must neither leave a turn behind nor end the current one.
        model = self._checked_model(request)
        stored = turn if isinstance(turn, StoredTurn) else await self._open_turn(request, turn)
        scope, resumed = TurnScope(stored.conversation_id, request.actor, stored.id), isinstance(turn, str)
        writer = TurnWriter(self.site.store, scope, current_process())
        if self.telemetry is not None:
            model = self.telemetry.model(model, stored.id)
        if self.on_event is not None:
            mode = self.mode or self.site.settings.policy.mode or Mode.DEFAULT
            self.on_event(request.started(stored.id, model, mode, resumed=resumed))
        try:
            request = await self._prepared(request, scope)
            if request.goal is None and request.parent is None:
                request = replace(request, until=await self.stored_goal(stored.id))
            claims = self._claims(request, scope)
            watch = InterruptWatch(self.site.store, stored, request.signal)
            request = replace(request, signal=watch.signal)
            async with watch, self._tool_session(request, scope, claims) as session:
                deps = await self._deps(request, stored, scope, model, session, writer, claims)
                if resumed:
                    request.budget.restore(await self._workers_usage(scope), 0.0)
                running = Turn(deps)
                for note in session.notes:
                    running.note(note)
                items = (
                    self._item_runner(request, scope)
                    if request.driven is not None and not self.shared_conversation
                    else None
                )
                return await _run_to_end(running, request, items)
        except Exception as error:
            if request.left_open_on_outage and isinstance(error, DATABASE_OUTAGES):
                raise
            # A turn that no process works on must not look as if it were running.
            with suppress(PunchlistError):
                await make_bridge(self.site.store)(writer.end, [], one_line(f"{Reason.ERROR}: {error}"))
            raise
        finally:
            if self.telemetry is not None:
                self.telemetry.close(stored.id)

    def _checked_model(self, request: TurnRequest) -> Model:
        model = ModelWithWindow(self.model_for(request.agent), request.agent.context_window)
        if request.goal is not None and (problem := raw_problem(request.goal, max_length=MAX_MESSAGE_LENGTH)):
            raise InvalidInput(f"goal: {problem}")
        if request.agent.limits.cost is not None and model.info.cost(Usage()) is None:
            raise ConfigError(
                f"The price of {model.name} is unknown, so a cost limit cannot be enforced. Limit tokens instead."
            )
        return model

    async def _deps(
        self,
        request: TurnRequest,
        stored: StoredTurn,
        scope: TurnScope,
        model: Model,
        session: ToolSession,
        writer: TurnWriter,
        claims: ClaimSource | None,
    ) -> TurnDeps:
        store = self.site.store
        tools = {name: tool for name, tool in session.tools.items() if name not in _hidden_tools(request)}
        call = make_bridge(store)
        waits = self.wait_for_approval or self.ask is not None
        # Open items count, whether or not the agent has the tools to end them.
        top = request.parent is None and not self.shared_conversation
        lists = request.item or TurnLists(
            store,
            scope,
            plan=top or "create_todo" in tools,
            checklist="TodoWrite" in tools or request.driven is not None or request.open_checklist,
            extra_state=self.extra_state,
        )

        async def try_item(goal: str, item: OpenItem) -> str | Wait | None:
            return await self._item_runner(request, scope).try_once(goal, item)

        execution, work = ToolExecution(session, call, waits=waits), WorkLog()
        checks = CheckRunner(execution, self.site.root, store.clock, person_check(session), self.metric_check)
        return TurnDeps(
            stored.id,
            request,
            model,
            list(tools),
            CompletionGate(execution, work, claims, checks, request.passed),
            work,
            lists,
            TurnLog(writer, session.writer, call, store.clock),
            await self._context(request, model, list(tools.values()), scope, call),
            call,
            self.site.root,
            self.on_event,
            try_item if request.driven is None and top else None,
            self._judge(request, scope, checks),
        )

    async def stored_goal(self, turn_id: str) -> Goal | None:
        """The acceptance criteria of a turn that is resumed."""
        messages = await make_bridge(self.site.store)(self.conversations.turn_messages, turn_id)
        return next((decode_goal(message.content) for message in messages if message.kind == GOAL), None)

    def _judge(self, request: TurnRequest, scope: TurnScope, checks: CheckRunner) -> GoalJudge | None:
        goal = request.until
        if goal is None:
            return None
        runner = SubagentRunner(self, request, scope)

        async def ask_judge(answer: str) -> GoalVerdict:
            call, task = make_bridge(self.site.store), JudgeTask()
            stored = request.goal if request.goal is not None else await call(self._stored_request, scope.turn_id)
            items = await call(self._items_for_judge, scope)
            mission = judge_request(goal, original_request(stored), items, answer)
            result = await runner.run(judge_agent(request.driven or request.agent), mission, resumed=False, item=task)
            ended = Reason.BUDGET if result.reason is Reason.BUDGET else Reason.OPEN
            return task.verdict or GoalVerdict(VerdictKind.NONE, f"{result.reason}: {result.why}", ended)

        return GoalJudge(goal, checks, ask_judge if goal.criteria else None)

    def _stored_request(self, turn_id: str) -> str:
        """The request of a turn that is resumed."""
        messages = self.conversations.turn_messages(turn_id)
        return next((message.content for message in messages if message.kind == TEXT), "")

    def _items_for_judge(self, scope: TurnScope) -> str:
        """The plan with its outcomes, and the checklist."""
        checklist = self.checklists.get(scope.conversation_id)
        shown = render_for_model(checklist, count_dropped=True) if checklist.items else ""
        return "\n\n".join(filter(None, ("\n".join(plan_lines(self.plans.snapshot(scope).todos)), shown)))

    async def _open_turn(self, request: TurnRequest, turn_id: str | None) -> StoredTurn:
        call, owner = make_bridge(self.site.store), current_process()
        scope = replace(self.site.scope, actor=request.actor)
        begun = ONE_BY_ONE if request.agent.strategy == "drive" and request.parent is None else None
        if turn_id is not None:
            take = self.conversations.take_turn
            return await call(take, scope, turn_id, owner, abandoned=request.owner_is_dead, fence=request.fence)
        reason, begin = "a new request" if request.parent is None else "delegated", self.conversations.begin_turn
        return await call(
            begin, scope, reason=reason, begun=begun, parent=request.parent, owner=owner, fence=request.fence
        )

    async def _workers_usage(self, scope: TurnScope) -> Usage:
        """Tokens used by the turn's workers, and by theirs, before the program ended. Their cost is not stored."""
        call, used = make_bridge(self.site.store), Usage()
        for child in await call(self.conversations.child_turns, scope):
            used += restore(await call(self.conversations.turn_messages, child.id)).usage
            used += await self._workers_usage(replace(scope, turn_id=child.id))
        return used

    # --- tools --------------------------------------------------------------------------------------------

    def _item_runner(self, request: TurnRequest, scope: TurnScope) -> ItemRunner:
        """Works on items in fresh contexts. Workers have none: their own turn is such a context."""
        return ItemRunner(self, request, scope, request.driven or request.agent)

    def _claims(self, request: TurnRequest, scope: TurnScope) -> ClaimSource | None:
        if not request.agent.verify:
            return None
        if request.item is not None:
            return ItemClaims(request.item)
        planner, call = plan_scope(request, scope), make_bridge(self.site.store)
        return ListClaims(self.conversations, self.plans, self.checklists, planner, call)

    def _tool_session(
        self, request: TurnRequest, scope: TurnScope, claims: ClaimSource | None
    ) -> AbstractAsyncContextManager[ToolSession]:
        always = {tool.name for tool in self.tools} | _hidden_tools(request)
        if keeps_own_list(request):
            always |= set(OWN_LIST_TOOLS)
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
            extra=[*self.tools, *self._list_tools(request, scope, claims)],
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

    def _list_tools(self, request: TurnRequest, scope: TurnScope, claims: ClaimSource | None) -> list[AgentTool]:
        """The list tools that the role may use, and `delegate` if the agent has workers."""
        role, call, planner = scope.actor.role, make_bridge(self.site.store), plan_scope(request, scope)
        plans, checklists = self.plans, self.checklists
        tools: list[AgentTool] = []
        if claims is not None:
            tools.append(PersonCheckTool(self.site.command_tool(), self.site))
        if request.item is not None:
            return [*tools, *request.item.tools()]
        if isinstance(claims, ListClaims):
            plans, checklists = VerifiedPlans(plans, claims), VerifiedChecklists(checklists, claims)
        specs = plan_tools(lambda: plans)
        tools += [list_tool(spec, planner, call) for spec in specs if planner.actor.role in spec.roles]
        # The checklist belongs to the session: a worker would overwrite its supervisor's.
        if request.parent is None and request.agent.may_call(CHECKLIST_TOOL):
            checklist = checklist_tools(lambda: checklists)
            tools += [list_tool(spec, scope, call) for spec in checklist if role in spec.roles]
        if request.parent is None and self.top_level_tools is not None:
            tools += self.top_level_tools(scope)
        if workers := self._workers(request):
            queue = self.async_delegation if request.parent is None else None
            has_plan = request.agent.may_call("complete_todo")
            tools.append(DelegateTool(workers, SubagentRunner(self, request, scope), queue, has_plan=has_plan))
        return tools

    def _workers(self, request: TurnRequest) -> dict[str, AgentDefinition]:
        if not request.agent.delegates or request.driven is not None or request.depth >= request.depth_limit:
            return {}
        excluded = (request.agent.name, *TOP_LEVEL_AGENTS)
        return {name: agent for name, agent in self.agents.items() if name not in excluded}

    # --- context ------------------------------------------------------------------------------------------

    def lists(self, scope: TurnScope) -> TurnLists:
        """Both lists of a top-level turn."""
        return TurnLists(self.site.store, scope, plan=True, checklist=True)

    async def _prepared(self, request: TurnRequest, scope: TurnScope) -> TurnRequest:
        """Copy the open items of the turn that this one takes over, and offer the tools of every list that has any."""
        if request.agent.strategy == "drive" and request.parent is None:
            if request.take_over is not None:
                await make_bridge(self.site.store)(take_over_items, self.plans, request.take_over, scope)
            return replace(request, agent=_planner(request.agent), driven=request.agent)
        if request.parent is not None or self.shared_conversation:
            return request
        call, agent = make_bridge(self.site.store), request.agent
        if request.take_over is not None:
            await call(take_over_items, self.plans, request.take_over, scope)
        checklist = await call(self._has_open_checklist, scope)
        request = replace(request, open_checklist=checklist)
        if agent.lists == "both" or (agent.lists == "plan" and not checklist):
            return request
        plan = await call(self._has_open_plan, scope)
        if agent.lists == "plan":
            # A list that is there already is enough: new items can be added to it.
            return replace(request, agent=replace(agent, lists="both" if plan else "checklist"))
        # The plan tools are for agents that may delegate.
        return replace(request, agent=replace(agent, lists="both", delegates=True)) if plan else request

    def _has_open_checklist(self, scope: TurnScope) -> bool:
        return any(item.is_open for item in self.checklists.get(scope.conversation_id).items)

    def _has_open_plan(self, scope: TurnScope) -> bool:
        return any(todo.status in OPEN for todo in self.plans.snapshot(scope).todos)

    async def _context(
        self, request: TurnRequest, model: Model, tools: Sequence[AgentTool], scope: TurnScope, call: AsyncBridge
    ) -> ModelContext:
        agent = request.agent
        workers = {name: worker.description for name, worker in self._workers(request).items()}
        names = [tool.name for tool in tools]
        # The one that plans for others gets no instructions for working on a plan.
        described = () if request.driven is not None else names
        # In drive, small models would write the whole path, and leave out a part of it.
        is_drive = request.item is not None or request.driven is not None
        workspace = "" if is_drive else str(self.site.root)
        system = system_prompt(agent.prompt, described, workspace=workspace, workers=workers)
        if agent.project_instructions:
            section = await asyncio.to_thread(trusted_section, self.site.project or self.site.root, self.site.trust)
            system = "\n\n".join(filter(None, (system, section)))
        # A plan is made from the request and the files that it names, which are shown.
        offered = [tool for tool in tools if tool.name == "create_todo"] if request.driven is not None else tools
        offers = tool_offers(offered)
        earlier: list[Message] = []
        if request.parent is None and agent.history:
            earlier = await call(self._earlier, request, scope, model.info.context_window)
        turns = await call(self.conversations.turns, scope.conversation_id, 2)
        first, window = len(turns) < 2, model.info.context_window
        return ModelContext(system, offers, earlier, agent.compact_after, first, window, agent.compact_at)

    def _earlier(self, request: TurnRequest, scope: TurnScope, window: int | None) -> list[Message]:
        """The last turns of a session; of a chat that agents share, a running summary and the newest messages."""
        agent = request.agent
        if self.shared_conversation:
            return ChatMemory(self.conversations).messages(scope.conversation_id, agent.name, scope.turn_id, window)
        entries = self.conversations.earlier_texts(scope.conversation_id, agent.history, scope.turn_id)
        if not entries:
            return []
        current = request.goal if request.goal is not None else self._stored_request(scope.turn_id)
        return earlier_messages(entries, agent.history, window, current)


def _planner(agent: AgentDefinition) -> AgentDefinition:
    """The agent that writes the plan of a turn whose items are worked on one by one."""
    tools = ("create_todo", *(tool for tool in ("read_file",) if agent.may_call(tool)))
    return replace(agent, prompt=DRIVE_PLAN, tools=tools, lists="plan", delegates=True, remind_after=None)


def _hidden_tools(request: TurnRequest) -> set[str]:
    """Tools that run checks and that the model does not see."""
    runs_commands = request.driven is not None and request.driven.may_call(COMMAND_TOOL)
    return {PersonCheckTool.name, *([COMMAND_TOOL] if runs_commands else ())}


async def _run_to_end(turn: Turn, request: TurnRequest, items: ItemRunner | None) -> TurnResult:
    """Run the loop so that the turn always ends with a named reason (C13), unless the caller resumes it."""
    outages = DATABASE_OUTAGES if request.left_open_on_outage else ()
    try:
        if items is not None:
            return await run_drive(turn, request.goal, items)
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
