"""Entries into a checklist: in one transaction, after what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.model import item_json
from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem
from punchlist.import_export.targets import (
    REASON,
    ExistingItems,
    ImportedItem,
    ids_by_title,
    is_stable_id,
    limit_in_progress,
)
from punchlist.missions.todos.lifecycle import TodoStatus

if TYPE_CHECKING:
    from punchlist.checklist.service import Checklists
    from punchlist.conversations.model import Scope


class ChecklistTarget:
    name = "checklist"
    limits = FormatLimits(
        "the checklist",
        frozenset({"id", "title", "status", "active_form"}),
        states={TodoStatus.CANCELLED: None, TodoStatus.BACKLOG: TodoStatus.PENDING},
    )

    def __init__(self, checklists: Checklists, scope: Scope) -> None:
        self._checklists = checklists
        self._scope = scope
        self._before = checklists.get(scope.conversation_id)

    def existing(self) -> ExistingItems:
        items = self._before.items
        return ExistingItems(
            {item.id: item.id for item in items}, ids_by_title([(item.id, item.content) for item in items])
        )

    def adjust(self, entries: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[str]]:
        return limit_in_progress(entries, self._before.in_progress is not None)

    def check(self, entries: Sequence[ExchangeItem]) -> None:
        there, more = len(self._before.items), len(entries)
        if there + more > checklist_validation.MAX_ITEMS:
            raise InvalidInput(
                f"The checklist holds {checklist_validation.MAX_ITEMS} items; it has {there}, "
                f"and {more} more were to be added. Nothing was imported. `--into plan` takes more."
            )
        checklist_validation.parse_todos(self._todos(entries))

    def write(self, entries: Sequence[ExchangeItem], known: Mapping[str, str]) -> tuple[list[ImportedItem], list[str]]:
        del known
        done = self._checklists.rewrite(
            self._scope, self._todos(entries), reason=REASON, revision=self._before.revision
        )
        new = done.checklist.items[len(self._before.items) :]
        return [ImportedItem(item.id, item.content, item.status) for item in new], []

    def _todos(self, entries: Sequence[ExchangeItem]) -> list[dict[str, Any]]:
        new = [
            {
                "content": entry.title,
                "activeForm": entry.active_form or entry.title,
                "status": entry.status.value,
                **({"id": entry.id} if is_stable_id(entry.id) else {}),
            }
            for entry in entries
        ]
        return [*(dict(item_json(item)) for item in self._before.items), *new]
