"""The services that a surface receives. `app.App` builds them on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from punchlist.agent.agents_config import AgentsConfig
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.checklist.service import Checklists
    from punchlist.config import Settings
    from punchlist.conversations.model import Scope
    from punchlist.conversations.service import Conversations
    from punchlist.engine.worker import Worker
    from punchlist.missions.escalations.service import Escalations
    from punchlist.missions.metrics.collectors import MetricCollection
    from punchlist.missions.metrics.service import Metrics
    from punchlist.missions.model import Mission
    from punchlist.missions.planning.prompt_data import PromptData
    from punchlist.missions.service import Missions
    from punchlist.missions.todos.checks import CompletionChecks
    from punchlist.missions.todos.service import MissionTodos
    from punchlist.models.model import Model
    from punchlist.plan.service import Plans
    from punchlist.runs.service import Runs
    from punchlist.storage.store import Store
    from punchlist.toolcalls.approval_store import Approvals
    from punchlist.toolcalls.policy import Mode
    from punchlist.tools.settings import ToolSettings
    from punchlist.tools.tool_session import ToolSite
    from punchlist.trust import Trust
    from punchlist.views.inbox import Inbox
    from punchlist.views.todos import SessionTodos


class Services(Protocol):
    @property
    def settings(self) -> Settings: ...

    @property
    def store(self) -> Store: ...

    def close(self) -> None: ...

    def current_session(self) -> str: ...

    def new_session(self) -> str: ...

    def use_session(self, session: str) -> None: ...

    @property
    def todos(self) -> SessionTodos: ...

    @property
    def inbox(self) -> Inbox: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def checklists(self) -> Checklists: ...

    @property
    def plans(self) -> Plans: ...

    @property
    def missions(self) -> Missions: ...

    @property
    def mission_todos(self) -> MissionTodos: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def escalations(self) -> Escalations: ...

    @property
    def briefing(self) -> PromptData: ...

    @property
    def collecting(self) -> MetricCollection: ...

    @property
    def checks(self) -> CompletionChecks: ...

    def trusts_mission(self, mission: Mission) -> bool: ...

    @property
    def runs(self) -> Runs: ...

    def worker(
        self,
        model_for: Callable[[AgentDefinition], Model],
        mode: Mode | None,
        *,
        slots: int,
        report: Callable[[str], None],
    ) -> Worker: ...

    @property
    def approvals(self) -> Approvals: ...

    @property
    def agents(self) -> AgentsConfig: ...

    @property
    def trust(self) -> Trust: ...

    @property
    def tool_settings(self) -> ToolSettings: ...

    def site(self, scope: Scope, workspace: Path, turn_id: str | None = None) -> ToolSite: ...
