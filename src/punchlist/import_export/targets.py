"""Import targets: the interface, helpers that they share, and the checklist.

An import checks everything before it writes anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.model import item_json
from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan.validation import normalized_title

if TYPE_CHECKING:
    from punchlist.checklist.service import Checklists
    from punchlist.conversations.model import Scope

REASON: Final = "import"
_NUMBER: Final = re.compile(r"[0-9.]*")


@dataclass(frozen=True, slots=True)
class ExistingItems:
    """The items of a list before the import, by source id and by normalized title."""

    ids: Mapping[str, str] = field(default_factory=dict)
    titles: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedItem:
    id: str
    title: str
    status: str


class ImportTarget(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> FormatLimits: ...

    def existing(self) -> ExistingItems: ...

    def adjust(self, items: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[str]]:
        """Adapt items to what the list already has; returns them with remarks about the changes."""

    def check(self, items: Sequence[ExchangeItem]) -> None:
        """Raise if the items cannot be written."""

    def write(self, items: Sequence[ExchangeItem], known: Mapping[str, str]) -> tuple[list[ImportedItem], list[str]]:
        """Write the items; returns them with remarks. `known` maps source ids of existing items to our ids."""


def is_stable_id(id: str) -> bool:
    """Whether an id identifies the item elsewhere; a number is only a position."""
    return _NUMBER.fullmatch(id) is None


def limit_in_progress(items: Sequence[ExchangeItem], busy: bool) -> tuple[list[ExchangeItem], list[str]]:
    """Keep at most one item in progress, none if the list is `busy` with one already."""
    kept, changed = [], 0
    for item in items:
        running = item.status is TodoStatus.IN_PROGRESS
        kept.append(replace(item, status=TodoStatus.PENDING) if running and busy else item)
        changed += running and busy
        busy = busy or running
    remark = f"only one item can be in progress; {changed} more changed to pending"
    return kept, [remark] if changed else []


def ids_by_title(titles: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for id, title in titles:
        found.setdefault(normalized_title(title), []).append(id)
    return found


class ChecklistTarget:
    """Appends items to the checklist in one transaction."""

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
        titles = ids_by_title([(item.id, item.content) for item in items])
        return ExistingItems({item.id: item.id for item in items}, titles)

    def adjust(self, items: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[str]]:
        return limit_in_progress(items, self._before.in_progress is not None)

    def check(self, items: Sequence[ExchangeItem]) -> None:
        existing, new = len(self._before.items), len(items)
        if existing + new > checklist_validation.MAX_ITEMS:
            raise InvalidInput(
                f"The checklist holds at most {checklist_validation.MAX_ITEMS} items; it has {existing}, and the "
                f"import adds {new}. Nothing was imported. Use `--into plan` for longer lists."
            )
        checklist_validation.parse_todos(self._todos(items))

    def write(self, items: Sequence[ExchangeItem], known: Mapping[str, str]) -> tuple[list[ImportedItem], list[str]]:
        del known
        todos, revision = self._todos(items), self._before.revision
        change = self._checklists.rewrite(self._scope, todos, reason=REASON, revision=revision)
        new = change.checklist.items[len(self._before.items) :]
        return [ImportedItem(item.id, item.content, item.status) for item in new], []

    def _todos(self, items: Sequence[ExchangeItem]) -> list[dict[str, Any]]:
        new = [
            {
                "content": item.title,
                "activeForm": item.active_form or item.title,
                "status": item.status.value,
                **({"id": item.id} if is_stable_id(item.id) else {}),
            }
            for item in items
        ]
        return [*(dict(item_json(item)) for item in self._before.items), *new]
