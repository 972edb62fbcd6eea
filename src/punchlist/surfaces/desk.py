"""What a surface is handed: the services, built when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from punchlist.checklist.service import Checklists
    from punchlist.config import Settings
    from punchlist.conversations.service import Conversations
    from punchlist.plan.service import Plans
    from punchlist.storage.store import Store


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
