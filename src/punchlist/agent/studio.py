"""Where agents work: from a definition and a goal to a turn that has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from punchlist.agent import loop
from punchlist.agent.context import Context, last_of
from punchlist.agent.definitions import BUILT_IN, AgentDefinition
from punchlist.agent.delegation import Delegate
from punchlist.agent.lists import TurnLists
from punchlist.agent.prompts import system_prompt
from punchlist.agent.record import StoredRecord
from punchlist.agent.transcript import from_row
from punchlist.agent.turn import Ended, Means, Turn
from punchlist.checklist.service import Checklists
from punchlist.checklist.tools import checklist_tools
from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.signals import CancelSignal
from punchlist.models.model import Hear, Message, Model, Offered
from punchlist.plan.service import Plans
from punchlist.plan.tools import plan_tools
from punchlist.storage.bridge import bridge
from punchlist.toolcalls.journal import Ask
from punchlist.toolcalls.listeners import Listeners
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool
from punchlist.tools.lists import ListTool
from punchlist.tools.workbench import Site, workbench

DEEPEST = 1
"""How deep delegation goes: a worker of the supervisor's has no workers."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Who watches and answers."""

    ask: Ask | None = None
    listeners: Listeners | None = None
    hear: Hear | None = None
    told: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    turn_id: str
    ended: Ended


@dataclass(frozen=True, slots=True)
class Studio:
    site: Site
    conversations: Conversations
    plans: Plans
    checklists: Checklists
    model_for: Callable[[AgentDefinition], Model]
    mode: Mode | None = None
    audience: Audience = field(default_factory=Audience)
    agents: Mapping[str, AgentDefinition] = field(default_factory=lambda: BUILT_IN)

    async def work(
        self,
        agent: AgentDefinition,
        goal: str,
        signal: CancelSignal,
        *,
        parent: str | None = None,
        depth: int = 0,
    ) -> Outcome:
        """One turn of an agent, from its goal to its end."""
        role = Role.SUPERVISOR if parent is None else Role.WORKER
        scope = replace(self.site.place.scope, actor=Actor(role, agent.name))
        aside = bridge(self.site.store)
        turn = await aside(
            self.conversations.begin_turn,
            scope,
            reason="a new request" if parent is None else "delegated",
            parent=parent,
        )
        here = TurnScope(scope.conversation_id, scope.actor, turn.id)
        site = replace(self.site, place=replace(self.site.place, scope=scope, turn_id=turn.id))
        extra = self._own_tools(agent, here, signal, depth)
        async with AsyncExitStack() as stack:
            bench = await stack.enter_async_context(
                workbench(
                    site,
                    mode=self.mode,
                    ask=self.audience.ask,
                    listeners=self.audience.listeners,
                    extra=extra,
                    allowed=agent.may_call,
                )
            )
            tools = list(bench.tools.values())
            means = Means(
                self.model_for(agent),
                bench.scheduler,
                self._lists(here, [tool.name for tool in tools]),
                StoredRecord(self.conversations, here, aside),
                aside,
                asks=self.audience.ask is not None,
                hear=self.audience.hear,
                told=self.audience.told,
            )
            context = await self._context(agent, tools, here, parent)
            ended = await loop.run(Turn(agent, goal, context, means, signal))
        return Outcome(turn.id, ended)

    def _own_tools(self, agent: AgentDefinition, here: TurnScope, signal: CancelSignal, depth: int) -> list[AgentTool]:
        """The lists' tools that its role may use, and workers, if it has any."""
        role, aside = here.actor.role, bridge(self.site.store)
        tools: list[AgentTool] = [
            *(ListTool(tool, here, aside) for tool in plan_tools(lambda: self.plans) if role in tool.roles),
            *(ListTool(tool, here, aside) for tool in checklist_tools(lambda: self.checklists) if role in tool.roles),
        ]
        workers = {name: one for name, one in self.agents.items() if not one.delegates and one is not agent}
        if agent.delegates and depth < DEEPEST and workers:

            async def work(worker: AgentDefinition, mission: str) -> Ended:
                inside = CancelSignal(signal)
                outcome = await self.work(worker, mission, inside, parent=here.turn_id, depth=depth + 1)
                return outcome.ended

            tools.append(Delegate(workers, work, lambda todo_id: self._start(here, todo_id)))
        return tools

    def _start(self, here: TurnScope, todo_id: str) -> None:
        running = [todo.id for todo in self.plans.list(here).items if todo.status == "in_progress"]
        if todo_id not in running:
            self.plans.start(here, todo_id, reason="delegate")

    def _lists(self, here: TurnScope, tools: Sequence[str]) -> TurnLists:
        plans = self.plans if "create_todo" in tools else None
        # The checklist is the session's: a worker may keep it, but does not answer for it.
        checklists = self.checklists if "TodoWrite" in tools and here.actor.role is Role.SUPERVISOR else None
        return TurnLists(here, plans, checklists)

    async def _context(
        self, agent: AgentDefinition, tools: Sequence[AgentTool], here: TurnScope, parent: str | None
    ) -> Context:
        names = [tool.name for tool in tools]
        workers = [one.name for one in self.agents.values() if not one.delegates]
        system = system_prompt(agent.prompt, names, workspace=self.site.place.workspace, workers=workers)
        offered = [Offered(tool.name, tool.description, tool.input_schema) for tool in tools]
        earlier: list[Message] = []
        if parent is None:
            recent, id = self.conversations.recent, here.conversation_id
            stored = await bridge(self.site.store)(recent, id, agent.history, but_of=here.turn_id)
            said = [message for row in stored if (message := from_row(row)) is not None]
            earlier = last_of(said, agent.history)
        return Context(system, offered, earlier, agent.compact_after)
