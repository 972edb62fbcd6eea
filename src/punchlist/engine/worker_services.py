"""What runs work with: the services, and agents for a chat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from punchlist.agent.definitions import COMPLETE_TOOL, AgentDefinition
from punchlist.agent.runtime import AgentRuntime, Interaction
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.engine.async_delegation import QueuedDelegation
from punchlist.kernel.actors import SYSTEM, Actor
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.metrics.collection import MetricCollection
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.model import Mission, MissionScope, Pillar
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.planning.prompt_data import PromptData
from punchlist.missions.service import Missions
from punchlist.missions.todos.checks import CompletionChecks
from punchlist.missions.todos.service import MissionTodos
from punchlist.missions.todos.tools import mission_tools
from punchlist.models.model import Model
from punchlist.plan.service import Plans
from punchlist.runs.service import Runs
from punchlist.storage.async_bridge import bridge, in_thread
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool
from punchlist.tools.list_tools import list_tool
from punchlist.tools.tool_session import ToolSite


@dataclass(frozen=True, slots=True)
class AgentPosition:
    """Where in a mission an agent stands."""

    conversation_id: str
    mission: Mission | None = None
    pillar: Pillar | None = None
    todo_id: str | None = None
    """Of the mission, that the work is for."""


@dataclass(frozen=True, slots=True)
class WorkerServices:
    store: Store
    conversations: Conversations
    plans: Plans
    checklists: Checklists
    missions: Missions
    todos: MissionTodos
    metrics: Metrics
    escalations: Escalations
    deadlines: OverdueService
    briefing: PromptData
    checks: CompletionChecks
    collecting: MetricCollection
    runs: Runs
    agents: Mapping[str, AgentDefinition]
    model_for: Callable[[AgentDefinition], Model]
    site: Callable[[Scope, Path], ToolSite]
    workspace: Path
    mode: Mode | None = None

    def runtime(
        self, post: AgentPosition, agent: AgentDefinition, remark: Callable[[], str] | None = None
    ) -> AgentRuntime:
        scope = Scope(post.conversation_id, Actor(agent.role, agent.name))
        return AgentRuntime(
            self.site(scope, self.workspace),
            self.conversations,
            self.plans,
            self.checklists,
            self.model_for,
            self.mode,
            Interaction(),
            self.agents,
            top_level_tools=lambda here: self._mission_tools(post, here),
            # Who works for nobody's mission has nobody who would pick up what it leaves.
            async_delegation=QueuedDelegation(self.store, self.conversations, post, scope)
            if post.mission is not None
            else None,
            extra_state=remark,
            shared_conversation=post.mission is not None,
        )

    def _mission_tools(self, post: AgentPosition, here: TurnScope) -> list[AgentTool]:
        """Those of its role, bound to its mission, an owner's to its pillar."""
        if post.mission is None:
            return []
        pillar = post.pillar.slug if post.pillar is not None else None
        scope = MissionScope(here.conversation_id, here.actor, post.mission.slug, pillar)
        aside = bridge(self.store)
        offered = mission_tools(lambda: self.todos, lambda: self.checks)
        # Completing may have to run a check first, which takes its time.
        return [
            list_tool(tool, scope, in_thread if tool.name == COMPLETE_TOOL else aside)
            for tool in offered
            if here.actor.role in tool.roles
        ]

    def system(self, conversation_id: str) -> MissionScope:
        return MissionScope(conversation_id, SYSTEM)
