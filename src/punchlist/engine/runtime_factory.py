"""Build the agent runtime for a turn of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from punchlist.agent.definitions import COMPLETE_TOOL, AgentDefinition
from punchlist.agent.runtime import AgentRuntime
from punchlist.conversations.model import NewMessage, Scope, TurnScope
from punchlist.engine.async_delegation import QueuedDelegation
from punchlist.engine.services import WorkerServices
from punchlist.kernel.actors import Actor
from punchlist.missions.model import Mission, MissionScope, Pillar
from punchlist.missions.todos.tools import mission_tools
from punchlist.models.model import Model
from punchlist.storage.async_bridge import make_bridge, run_in_thread
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool
from punchlist.tools.list_tools import list_tool


@dataclass(frozen=True, slots=True)
class TurnTask:
    """One turn that a run takes: which agent, with which request, in which chat."""

    key: str
    """Prefix of its step names in the durable engine."""
    agent: AgentDefinition
    request: NewMessage
    conversation_id: str
    mission: Mission | None = None
    pillar: Pillar | None = None
    todo_id: str | None = None
    remark: Callable[[], str] | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.conversation_id, Actor(self.agent.role, self.agent.name))


class RuntimeFactory:
    def __init__(
        self, services: WorkerServices, model_for: Callable[[AgentDefinition], Model], mode: Mode | None
    ) -> None:
        self._services = services
        self._model_for = model_for
        self._mode = mode

    def build(self, task: TurnTask) -> AgentRuntime:
        services = self._services
        in_mission = task.mission is not None
        return AgentRuntime(
            services.site(task.scope, services.workspace),
            services.conversations,
            services.plans,
            services.checklists,
            self._model_for,
            self._mode,
            services.agents.definitions,
            top_level_tools=lambda turn: self._mission_tools(task, turn),
            # Results of asynchronous delegations are posted to a mission's chat.
            async_delegation=QueuedDelegation(services.store, services.conversations, task) if in_mission else None,
            extra_state=task.remark,
            shared_conversation=in_mission,
        )

    def _mission_tools(self, task: TurnTask, turn: TurnScope) -> list[AgentTool]:
        """The mission tools of the agent's role, bound to its mission and, for an owner, to its pillar."""
        if task.mission is None:
            return []
        services, pillar = self._services, task.pillar.slug if task.pillar is not None else None
        scope = MissionScope(turn.conversation_id, turn.actor, task.mission.slug, pillar)
        on_bridge = make_bridge(services.store)
        tools = mission_tools(lambda: services.mission_todos, lambda: services.checks)
        # Completing a todo may run its check, which takes time: always in a thread.
        return [
            list_tool(tool, scope, run_in_thread if tool.name == COMPLETE_TOOL else on_bridge)
            for tool in tools
            if turn.actor.role in tool.roles
        ]
