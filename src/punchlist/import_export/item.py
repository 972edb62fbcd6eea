"""An item as all formats and lists can tell it.

States and priorities are those of a mission's todos, which have them all. Where an item stands in a
sequence of entries is its order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

MAX_ITEMS: Final = 10_000
"""Items of one file: as many as a plan holds."""

Wait = tuple[str, str]
"""What must be so first, besides other items: `person`, `time` or `event`, and which."""


@dataclass(frozen=True, slots=True)
class ExchangeItem:
    title: str
    id: str = ""
    """As the source has it; empty where it has none."""
    details: str = ""
    status: TodoStatus = TodoStatus.PENDING
    priority: TodoPriority | None = None
    blocked_by: tuple[str, ...] = ()
    """Ids of other entries."""
    parent: str = ""
    """The id of the entry that it is a part of."""
    acceptance: str = ""
    active_form: str = ""
    labels: tuple[str, ...] = ()
    owner: str = ""
    outcome: str = ""
    justification: str = ""
    deadline: str = ""
    waits: tuple[Wait, ...] = ()
    resources: tuple[str, ...] = ()
    also_affects: tuple[str, ...] = ()
    check: Mapping[str, Any] | None = None
    created_at: str = ""
    started_at: str = ""
    ended_at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What the source says besides; nobody here knows what it means."""


FIELDS: Final = tuple(one.name for one in fields(ExchangeItem))


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a file has."""

    items: list[ExchangeItem]
    remarks: list[str]


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that cannot be kept, and of how many items."""

    what: str
    count: int
    left_out: bool = False
    """All of the item, since it is what it is."""

    def __str__(self) -> str:
        items = "item" if self.count == 1 else "items"
        if self.left_out:
            return f"{self.count} {self.what} {items}, left out"
        return f"{self.what} of {self.count} {items}"

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "items": self.count, **({"leftOut": True} if self.left_out else {})}


def describe_losses(losses: Sequence[Loss]) -> str:
    return "; ".join(map(str, losses))
