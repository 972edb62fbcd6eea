"""From settings to objects: the only place that builds them, and the program's entry."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

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


class House:
    """The `Desk` that surfaces work at. Parts are built on first use: a command pays for what it needs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._store: Store | None = None
        self._opening = Lock()

    @property
    def store(self) -> Store:
        # Whoever comes while another thread opens the database waits for that.
        with self._opening:
            if self._store is None:
                from punchlist.storage.opening import open_store

                self._store = open_store(self.settings.database, synchronous=self.settings.synchronous)
            return self._store

    @cached_property
    def conversations(self) -> Conversations:
        from punchlist.conversations.service import Conversations

        return Conversations(self.store)

    @cached_property
    def checklists(self) -> Checklists:
        from punchlist.checklist.service import Checklists

        return Checklists(self.store, self.conversations)

    @cached_property
    def plans(self) -> Plans:
        from punchlist.plan.service import Plans

        return Plans(self.store)

    @cached_property
    def approvals(self) -> Approvals:
        from punchlist.kernel.secrets import Redactor
        from punchlist.toolcalls.questions import Approvals

        return Approvals(self.store, Redactor(os.environ))

    @cached_property
    def agents(self) -> Agents:
        from punchlist.agent.agents_file import agents

        return agents(self.settings, self.trust)

    @cached_property
    def trust(self) -> Trust:
        from punchlist.trust import Trust

        return Trust.of_user(os.environ)

    @cached_property
    def tool_settings(self) -> ToolSettings:
        from punchlist.tools.settings import tool_settings

        return tool_settings(self.settings, self.trust)

    def site(self, scope: Scope, workspace: Path, turn_id: str | None = None) -> Site:
        from punchlist.toolcalls.ledger import Place
        from punchlist.tools.workbench import Site

        place = Place(scope, str(workspace), turn_id)
        outputs = self.settings.outputs(os.environ)
        return Site(self.store, place, self.tool_settings, outputs, os.environ, self.trust.seal)


def main() -> None:
    from punchlist.surfaces.cli.main import start

    start(House)
