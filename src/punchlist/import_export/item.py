"""The item that all formats and lists convert from and to.

States and priorities are those of mission todos, the list that has most of them. The order of items is
their order in the sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

MAX_ITEMS: Final = 10_000
"""Items per file: the size limit of a plan."""

Wait = tuple[str, str]
"""A condition other than another item: `person`, `time` or `event`, and its subject."""


@dataclass(frozen=True, slots=True)
class ExchangeItem:
    title: str
    id: str = ""
    """The id in the source; empty if it has none."""
    details: str = ""
    status: TodoStatus = TodoStatus.PENDING
    priority: TodoPriority | None = None
    blocked_by: tuple[str, ...] = ()
    parent: str = ""
    acceptance: str = ""
    active_form: str = ""
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
    """Fields of the source that have no equivalent here."""


FIELDS: Final = tuple(each.name for each in fields(ExchangeItem))


@dataclass(frozen=True, slots=True)
class ParsedFile:
    items: list[ExchangeItem]
    remarks: list[str]


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a format or list cannot hold, and the number of items affected."""

    what: str
    count: int
    left_out: bool = False
    """The whole item is left out because of its status."""

    def __str__(self) -> str:
        items = "item" if self.count == 1 else "items"
        if self.left_out:
            return f"{self.count} {self.what} {items}, left out"
        return f"{self.what} of {self.count} {items}"

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "items": self.count, **({"leftOut": True} if self.left_out else {})}


def describe_losses(losses: Sequence[Loss]) -> str:
    return "; ".join(map(str, losses))
