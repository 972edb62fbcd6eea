"""What each format and each list can hold, and what is left of entries that are put into it. Pure.

`fit` is the only place where something is left out: what it returns goes through a format and comes
back the same. What was left out is counted, and told to whoever asked.
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
    one.name: one.default for one in fields(ExchangeItem) if one.default is not MISSING and one.name != "title"
}
_NAMES: Final = {
    "id": "id",
    "parent": "place under another",
    "blocked_by": "dependencies",
    "acceptance": "acceptance criteria",
    "active_form": "active form",
    "waits": "wait for a person, a time or an event",
    "also_affects": "other pillars",
    "created_at": "time of creation",
    "started_at": "time of start",
    "ended_at": "time of end",
}

Trim = Callable[[list[ExchangeItem]], tuple[list[ExchangeItem], list[Loss]]]


@dataclass(frozen=True, slots=True)
class FormatLimits:
    """What something can hold of an entry."""

    name: str
    fields: AbstractSet[str]
    states: Mapping[TodoStatus, TodoStatus | None] = field(default_factory=dict)
    """What becomes of a state that there is not: another, or None when the item is left out."""
    priorities: Mapping[TodoPriority, TodoPriority] = field(default_factory=dict)
    needs_priority: bool = False
    needs_active_form: bool = False
    dated: bool = False
    """Each item has the time of its creation and, when it is completed, that of its end."""
    tree: bool = False
    """Parts stand after what they are parts of."""
    deepest: int | None = None
    """How many levels of parts there are."""
    id_form: Callable[[str, str], bool] | None = None
    """Whether an id can be kept, given that of its parent; when one cannot, all are numbered anew."""
    by_number: bool = False
    """Whether nothing but their ids says in which order items are."""
    numbered: Callable[[int, str], str] = lambda number, _: str(number)
    """An id, from a number among its siblings and the parent's id."""
    id_lost: str = "id (they are numbered anew)"
    trim: Trim | None = None
    """What else has to be left out."""


@dataclass(frozen=True, slots=True)
class FittedItems:
    items: list[ExchangeItem]
    lost: list[Loss]


def fit_items(shape: FormatLimits, entries: Sequence[ExchangeItem], now: str = "") -> FittedItems:
    """Entries as the shape can hold them, and what it cannot. `now` is for what needs a time and has none."""
    kept, lost = _in_states(shape, entries)
    lost += _unheld(shape, kept)
    kept = [_held(shape, entry, now) for entry in kept]
    if shape.deepest is not None:
        kept, flattened = _flattened(kept, shape.deepest)
        lost += _counted("place so many levels down", flattened)
    if shape.tree:
        kept = _in_depth(kept)
    if "id" in shape.fields and shape.id_form is not None:
        kept, numbered = _numbered(shape, kept)
        lost += _counted(shape.id_lost, numbered)
    if shape.trim is not None:
        kept, more = shape.trim(kept)
        lost += more
    return FittedItems(kept, lost)


def _counted(what: str, count: int) -> list[Loss]:
    return [Loss(what, count)] if count else []


def _in_states(shape: FormatLimits, entries: Sequence[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    kept, gone = [], set()
    for entry in entries:
        status = shape.states.get(entry.status, entry.status)
        if status is None:
            gone.add(entry.id)
        else:
            kept.append(replace(entry, status=status))
    lost = []
    for before, after in shape.states.items():
        if count := sum(1 for entry in entries if entry.status is before):
            what = f"state ({before} becomes {after})" if after else before.value
            lost.append(Loss(what, count, left_out=after is None))
    parents = {entry.id: entry.parent for entry in entries if entry.id}
    if gone := gone - {""}:
        kept = [
            replace(
                entry,
                blocked_by=tuple(one for one in entry.blocked_by if one not in gone),
                parent=_parent_left(entry.parent, gone, parents),
            )
            for entry in kept
        ]
    return kept, lost


def _parent_left(parent: str, gone: AbstractSet[str], parents: Mapping[str, str]) -> str:
    while parent in gone:
        parent = parents.get(parent, "")
    return parent


def _unheld(shape: FormatLimits, entries: Sequence[ExchangeItem]) -> list[Loss]:
    lost = []
    for name in FIELDS:
        if name == "extra" or name in shape.fields or name in ("title", "status"):
            continue
        lost += _counted(_NAMES.get(name, name), sum(1 for entry in entries if _says(entry, name)))
    if "priority" in shape.fields:
        for before, after in shape.priorities.items():
            count = sum(1 for entry in entries if entry.priority is before)
            lost += _counted(f"priority ({before} becomes {after})", count)
    if "extra" not in shape.fields:
        keys: dict[str, int] = {}
        for entry in entries:
            for key in entry.extra:
                keys[key] = keys.get(key, 0) + 1
        lost += [Loss(key, count) for key, count in keys.items()]
    return lost


def _says(entry: ExchangeItem, name: str) -> bool:
    value = getattr(entry, name)
    if name == "active_form":
        # Where there is none, it is what is to be done.
        return value not in ("", entry.title)
    return bool(value != _DEFAULTS[name])


def _held(shape: FormatLimits, entry: ExchangeItem, now: str) -> ExchangeItem:
    changes: dict[str, Any] = {
        name: value for name, value in _DEFAULTS.items() if name not in shape.fields and name != "status"
    }
    if "extra" not in shape.fields:
        changes["extra"] = {}
    if "priority" in shape.fields:
        priority = entry.priority or (TodoPriority.MEDIUM if shape.needs_priority else None)
        changes["priority"] = shape.priorities.get(priority, priority) if priority else None
    if shape.needs_active_form:
        changes["active_form"] = entry.active_form or entry.title
    if shape.dated:
        changes["created_at"] = entry.created_at or now
        changes["ended_at"] = (entry.ended_at or now) if entry.status is TodoStatus.COMPLETED else ""
    return replace(entry, **changes)


def nesting_levels(entries: Sequence[ExchangeItem]) -> dict[str, int]:
    """By id, how many levels down each entry is. Parents are known and in no circle."""
    parents = {entry.id: entry.parent for entry in entries if entry.id}
    found: dict[str, int] = {"": -1}
    for id in parents:
        way = [id]
        while way[-1] not in found:
            way.append(parents.get(way[-1], ""))
        for one in reversed(way[:-1]):
            found[one] = found[parents.get(one, "")] + 1
    return found


def _flattened(entries: list[ExchangeItem], deepest: int) -> tuple[list[ExchangeItem], int]:
    parents = {entry.id: entry.parent for entry in entries if entry.id}
    found, count, kept = nesting_levels(entries), 0, []
    for entry in entries:
        parent = entry.parent
        while parent and found[parent] >= deepest:
            parent = parents[parent]
        count += parent != entry.parent
        kept.append(replace(entry, parent=parent))
    return kept, count


def _in_depth(entries: Sequence[ExchangeItem]) -> list[ExchangeItem]:
    """Each entry, then its parts."""
    parts: dict[str, list[ExchangeItem]] = {}
    for entry in entries:
        parts.setdefault(entry.parent, []).append(entry)
    kept: list[ExchangeItem] = []
    waiting = parts.get("", [])[::-1]
    while waiting:
        entry = waiting.pop()
        kept.append(entry)
        if entry.id:
            waiting += parts.get(entry.id, [])[::-1]
    return kept


def _numbered(shape: FormatLimits, entries: list[ExchangeItem]) -> tuple[list[ExchangeItem], int]:
    """Ids that the format can hold: those that there are if all fit, else numbers."""
    ids = [entry.id for entry in entries]
    if _fine(shape, entries, ids):
        return entries, 0
    parents = {entry.id: entry.parent for entry in entries if entry.id}
    new: dict[str, str] = {"": ""}
    counts: dict[str, int] = {}
    made: list[str] = []

    def give(id: str, parent: str) -> str:
        under = new[parent]
        counts[under] = counts.get(under, 0) + 1
        fresh = shape.numbered(counts[under], under)
        if id:
            new[id] = fresh
        return fresh

    for entry in entries:
        if entry.id and entry.id in new:
            made.append(new[entry.id])
            continue
        way = [entry.parent]
        while way[-1] not in new:
            way.append(parents[way[-1]])
        for one in reversed(way[:-1]):
            give(one, parents[one])
        made.append(give(entry.id, entry.parent))
    kept = [
        replace(entry, id=id, parent=new[entry.parent], blocked_by=tuple(new[one] for one in entry.blocked_by))
        for entry, id in zip(entries, made, strict=True)
    ]
    return kept, sum(1 for before, after in zip(ids, made, strict=True) if before not in ("", after))


def _fine(shape: FormatLimits, entries: Sequence[ExchangeItem], ids: Sequence[str]) -> bool:
    assert shape.id_form is not None
    # A disk may not tell small letters from large ones.
    if len({id.lower() for id in ids}) < len(ids):
        return False
    if not all(shape.id_form(entry.id, entry.parent) for entry in entries):
        return False
    return not shape.by_number or sorted(ids, key=int) == ids


def id_pattern(pattern: str) -> Callable[[str, str], bool]:
    """Ids that look like this, whatever their parents' are."""
    compiled = re.compile(pattern, re.ASCII)
    return lambda given, _: compiled.fullmatch(given) is not None
