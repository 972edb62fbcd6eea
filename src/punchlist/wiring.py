"""From settings to objects: the only place that builds them, and the program's entry."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
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


def main() -> None:
    from punchlist.surfaces.cli.main import run

    run(House)
