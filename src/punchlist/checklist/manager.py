"""`TodoManager`: the checklist of one session, for other programs (W5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from punchlist.checklist.model import ItemJson, Progress, item_json
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope


class TodoManager:
    """Every call reads or writes the store; returned lists are copies."""

    def __init__(self, checklists: Checklists, scope: Scope) -> None:
        self._checklists = checklists
        self._scope = scope

    def set_todos(self, todos: Sequence[Any]) -> list[ItemJson]:
        """Replace the list; returns the items with their ids."""
        self._checklists.rewrite(self._scope, list(todos), reason="set_todos")
        return self.get_todos()

    def get_todos(self) -> list[ItemJson]:
        return [item_json(item) for item in self._checklists.get(self._scope.conversation_id).items]

    def get_in_progress(self) -> ItemJson | None:
        item = self._checklists.get(self._scope.conversation_id).in_progress
        return item_json(item) if item else None

    def get_progress(self) -> Progress:
        return self._checklists.get(self._scope.conversation_id).progress

    def clear(self) -> None:
        self._checklists.clear(self._scope, reason="clear")
