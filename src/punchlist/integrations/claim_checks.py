"""Checks of what a client completes through our tools, as far as they can be run at once (V2).

What cannot be run now stays claimed; the stop hook tries again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from punchlist.checklist import render
from punchlist.checklist.model import item_json
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import CheckFailed
from punchlist.integrations import messages
from punchlist.integrations.host_checks import MAX_SECONDS, HostChecks
from punchlist.integrations.item_checks import CheckedItem, ItemChecks
from punchlist.integrations.session_state import UncheckedItem, unchecked_items, unchecked_todos
from punchlist.kernel.text import without_tags
from punchlist.kernel.tool import ToolResult
from punchlist.plan.service import Plans
from punchlist.storage.store import Store
from punchlist.verification.model import CheckOutcome


class ClaimChecks:
    def __init__(self, store: Store, conversations: Conversations, checks: HostChecks) -> None:
        self._plans = Plans(store)
        self._checklists = Checklists(store, conversations)
        self._items = ItemChecks(store, conversations, checks)

    def completed(self, scope: TurnScope, result: ToolResult) -> ToolResult:
        """After `complete_todo`. Raises if the check fails: the todo is open again."""
        todo = self._plans.find(scope, result.data["id"])
        checked = self._run(scope, list(unchecked_todos([todo])))
        if failures := _failures(checked):
            raise CheckFailed(f"{failures}\n\nFix what is wrong, then complete it again.")
        if not checked:
            return result
        data = {**result.data, "mark": self._plans.find(scope, todo.id).verified().mark.value}
        return ToolResult(json.dumps(data, ensure_ascii=False, separators=(",", ":")), data)

    def written(self, scope: Scope, result: ToolResult) -> ToolResult:
        """After `TodoWrite`. Items whose checks fail are open again, and the result says so."""
        before = self._checklists.get(scope.conversation_id)
        checked = self._run(scope, list(unchecked_items(before.items)))
        if not checked:
            return result
        after = self._checklists.get(scope.conversation_id)
        data = {**result.data, "todos": [item_json(item) for item in after.items], "progress": after.progress}
        failures = _failures(checked)
        if not failures:
            return ToolResult(result.text, data)
        return ToolResult(f"{render.render_for_model(after)}\n\n{failures}", data)

    def _run(self, scope: Scope, items: Sequence[UncheckedItem]) -> list[CheckedItem]:
        return self._items.run(scope, items, time.monotonic() + MAX_SECONDS, keep_not_run=False)


def _failures(checked: Sequence[CheckedItem]) -> str:
    failed = [item for item in checked if item.result.outcome is CheckOutcome.FAILED]
    return without_tags(messages.checks_failed(failed)) if failed else ""
