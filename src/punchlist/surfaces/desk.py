"""What a surface is handed: the services, built when they are first asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from punchlist.agent.agents_file import Agents
    from punchlist.checklist.service import Checklists
    from punchlist.config import Settings
    from punchlist.conversations.model import Scope
    from punchlist.conversations.service import Conversations
    from punchlist.plan.service import Plans
    from punchlist.storage.store import Store
    from punchlist.toolcalls.questions import Approvals
    from punchlist.tools.settings import ToolSettings
    from punchlist.tools.workbench import Site
    from punchlist.trust import Trust


class Desk(Protocol):
    @property
    def settings(self) -> Settings: ...

    @property
    def store(self) -> Store: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def checklists(self) -> Checklists: ...

    @property
    def plans(self) -> Plans: ...

    @property
    def approvals(self) -> Approvals: ...

    @property
    def agents(self) -> Agents: ...

    @property
    def trust(self) -> Trust: ...

    @property
    def tool_settings(self) -> ToolSettings: ...

    def site(self, scope: Scope, workspace: Path, turn_id: str | None = None) -> Site: ...
