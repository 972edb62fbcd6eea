"""What all places to put entries have in common: what such a place must be able to do, and what it can be told.

Everything is checked before anything is written; the lists themselves are in `into_checklist.py`, `into_plan.py`
and `into_mission.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan.validation import normalized_title

REASON: Final = "import"
_NUMBER: Final = re.compile(r"[0-9.]*")


@dataclass(frozen=True, slots=True)
class ExistingItems:
    """What a list has already."""

    ids: Mapping[str, str] = field(default_factory=dict)
    """Our ids, by what an entry's id would be."""
    titles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Our ids, by title."""


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

    def adjust(self, entries: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[str]]:
        """Entries as the list can take them beside what it has, and what is to be said of that."""

    def check(self, entries: Sequence[ExchangeItem]) -> None:
        """Raises when they cannot be written."""

    def write(self, entries: Sequence[ExchangeItem], known: Mapping[str, str]) -> tuple[list[ImportedItem], list[str]]:
        """Write them. `known` are our ids of entries that were there, by their ids."""


def is_stable_id(id: str) -> bool:
    """Whether an id can be an item's in another place; a number says where it stood, no more."""
    return _NUMBER.fullmatch(id) is None


def limit_in_progress(entries: Sequence[ExchangeItem], busy: bool) -> tuple[list[ExchangeItem], list[str]]:
    """One at a time is in progress."""
    kept, waiting = [], 0
    for entry in entries:
        begun = entry.status is TodoStatus.IN_PROGRESS
        kept.append(replace(entry, status=TodoStatus.PENDING) if begun and busy else entry)
        waiting += begun and busy
        busy = busy or begun
    told = f"one item at a time is in progress; {waiting} that were are pending"
    return kept, [told] if waiting else []


def ids_by_title(items: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for id, title in items:
        found.setdefault(normalized_title(title), []).append(id)
    return found
