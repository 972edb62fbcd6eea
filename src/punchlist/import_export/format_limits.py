"""What each format and list can hold, and the reduction of items to that. Pure.

`fit_items` is the only place where something is left out: its result survives a round trip through the
format unchanged. It counts and reports everything that it leaves out. Our lists have no parents, so no writer
has them; an imported item is described by its parent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Final

from punchlist.import_export.item import FIELDS, ExchangeItem, Loss
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus

_DEFAULTS: Final[dict[str, Any]] = {
    each.name: each.default for each in fields(ExchangeItem) if each.default is not MISSING and each.name != "title"
}
_FIELD_NAMES: Final = {
    "blocked_by": "dependencies",
    "acceptance": "acceptance criteria",
    "active_form": "active form",
    "waits": "wait for a person, a time or an event",
    "also_affects": "other pillars",
    "created_at": "time of creation",
    "started_at": "time of start",
    "ended_at": "time of end",
}

COMMON_FIELDS: Final = frozenset({"id", "title", "details", "status", "acceptance"})

Trim = Callable[[ExchangeItem], ExchangeItem]


@dataclass(frozen=True, slots=True)
class FormatLimits:
    """What a format or list can hold of an item."""

    name: str
    fields: AbstractSet[str]
    states: Mapping[TodoStatus, TodoStatus | None] = field(default_factory=dict)
    """Replacements of unsupported states; None leaves the item out."""
    priorities: Mapping[TodoPriority, TodoPriority] = field(default_factory=dict)
    needs_priority: bool = False
    needs_active_form: bool = False
    dated: bool = False
    """Every item has a time of creation and, if completed, a time of end."""
    id_form: str | None = None
    """A pattern of ids; if one does not match, all items are renumbered."""
    by_number: bool = False
    """The ids alone define the order."""
    numbered: str = "{}"
    """An id made from a number."""
    id_lost: str = "id (items are renumbered)"
    trims: Mapping[str, Trim] = field(default_factory=dict)
    """Further reductions by what is lost; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class FittedItems:
    items: list[ExchangeItem]
    lost: list[Loss]


def fit_items(limits: FormatLimits, items: Sequence[ExchangeItem], now: str = "") -> FittedItems:
    """Reduce items to what the format can hold. `now` replaces required times that are missing."""
    kept, lost = _fit_states(limits, items)
    lost += _field_losses(limits, kept)
    kept = [_fit_fields(limits, item, now) for item in kept]
    if limits.id_form is not None:
        kept, renumbered = _renumber(limits, kept)
        lost += _loss(limits.id_lost, renumbered)
    for what, trim in limits.trims.items():
        trimmed = [trim(item) for item in kept]
        changed = sum(1 for before, after in zip(kept, trimmed, strict=True) if before != after)
        lost += _loss(what, changed) if what else []
        kept = trimmed
    return FittedItems(kept, lost)


def _loss(what: str, count: int) -> list[Loss]:
    return [Loss(what, count)] if count else []


def _fit_states(limits: FormatLimits, items: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    kept: list[ExchangeItem] = []
    removed: set[str] = set()
    for item in items:
        status = limits.states.get(item.status, item.status)
        if status is None:
            removed.add(item.id)
        else:
            kept.append(replace(item, status=status))
    lost = []
    for before, after in limits.states.items():
        if count := sum(1 for item in items if item.status is before):
            what = f"state ({before} becomes {after})" if after else before.value
            lost.append(Loss(what, count, left_out=after is None))
    return [
        replace(item, blocked_by=tuple(other for other in item.blocked_by if other not in removed)) for item in kept
    ], lost


def _field_losses(limits: FormatLimits, items: Sequence[ExchangeItem]) -> list[Loss]:
    lost = []
    for name in FIELDS:
        if name not in limits.fields and name not in ("extra", "title", "status"):
            lost += _loss(_FIELD_NAMES.get(name, name), sum(1 for item in items if _has_value(item, name)))
    if "priority" in limits.fields:
        for before, after in limits.priorities.items():
            count = sum(1 for item in items if item.priority is before)
            lost += _loss(f"priority ({before} becomes {after})", count)
    if "extra" not in limits.fields:
        keys: dict[str, int] = {}
        for item in items:
            for key in item.extra:
                keys[key] = keys.get(key, 0) + 1
        lost += [Loss(key, count) for key, count in keys.items()]
    return lost


def _has_value(item: ExchangeItem, name: str) -> bool:
    value = getattr(item, name)
    if name == "active_form":
        # The title is the default active form.
        return value not in ("", item.title)
    return bool(value != _DEFAULTS[name])


def _fit_fields(limits: FormatLimits, item: ExchangeItem, now: str) -> ExchangeItem:
    changes: dict[str, Any] = {
        name: value for name, value in _DEFAULTS.items() if name not in limits.fields and name != "status"
    }
    if "extra" not in limits.fields:
        changes["extra"] = {}
    if "priority" in limits.fields:
        priority = item.priority or (TodoPriority.MEDIUM if limits.needs_priority else None)
        changes["priority"] = limits.priorities.get(priority, priority) if priority else None
    if limits.needs_active_form:
        changes["active_form"] = item.active_form or item.title
    if limits.dated:
        changes["created_at"] = item.created_at or now
        changes["ended_at"] = (item.ended_at or now) if item.status is TodoStatus.COMPLETED else ""
    return replace(item, **changes)


def _renumber(limits: FormatLimits, items: list[ExchangeItem]) -> tuple[list[ExchangeItem], int]:
    """Keep the ids if the format can hold all of them, otherwise number all items."""
    if _ids_valid(limits, items):
        return items, 0
    new = {item.id: limits.numbered.format(number) for number, item in enumerate(items, start=1) if item.id}
    kept = [
        replace(item, id=limits.numbered.format(number), blocked_by=tuple(new[other] for other in item.blocked_by))
        for number, item in enumerate(items, start=1)
    ]
    return kept, sum(1 for before, after in new.items() if before != after)


def _ids_valid(limits: FormatLimits, items: Sequence[ExchangeItem]) -> bool:
    ids = [item.id for item in items]
    # File systems may ignore case.
    if len({id.lower() for id in ids}) < len(ids):
        return False
    if not all(re.fullmatch(limits.id_form or "", id, re.ASCII) for id in ids):
        return False
    return not limits.by_number or sorted(ids, key=int) == ids
