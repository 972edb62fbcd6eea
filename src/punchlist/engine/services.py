"""The application services that a worker needs; `punchlist.app.Services` provides them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from punchlist.agent.agents_config import AgentsConfig
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.missions.metrics.collectors import MetricCollection
from punchlist.missions.planning.prompt_data import PromptData
from punchlist.missions.service import Missions
from punchlist.missions.todos.checks import CompletionChecks
from punchlist.missions.todos.service import MissionTodos
from punchlist.plan.service import Plans
from punchlist.runs.service import Runs
from punchlist.storage.store import Store
from punchlist.tools.tool_session import ToolSite


class WorkerServices(Protocol):
    @property
    def store(self) -> Store: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def plans(self) -> Plans: ...

    @property
    def checklists(self) -> Checklists: ...

    @property
    def missions(self) -> Missions: ...

    @property
    def mission_todos(self) -> MissionTodos: ...

    @property
    def briefing(self) -> PromptData: ...

    @property
    def checks(self) -> CompletionChecks: ...

    @property
    def collecting(self) -> MetricCollection: ...

    @property
    def runs(self) -> Runs: ...

    @property
    def agents(self) -> AgentsConfig: ...

    @property
    def workspace(self) -> Path: ...

    def site(self, scope: Scope, workspace: Path, turn_id: str | None = None) -> ToolSite: ...
