"""From settings to objects: the only place that builds them, and the program's entry."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchlist.checklist.service import Checklists
    from punchlist.config import Settings
    from punchlist.conversations.service import Conversations
    from punchlist.plan.service import Plans
    from punchlist.storage.store import Store


class House:
    """The `Desk` that surfaces work at. Parts are built on first use: a command pays for what it needs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def store(self) -> Store:
        from punchlist.storage.opening import open_store

        return open_store(self.settings.database, synchronous=self.settings.synchronous)

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


def main() -> None:
    from punchlist.surfaces.cli.main import run

    run(House)
