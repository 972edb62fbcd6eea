"""The plan of an import, made before anything is written: new items, existing items, and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from punchlist.checklist.validation import MAX_ITEMS
from punchlist.import_export.format_limits import fit_items
from punchlist.import_export.formats import ExchangeFormat
from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
from punchlist.import_export.targets import ImportedItem, ImportTarget, is_stable_id
from punchlist.plan.validation import normalized_title


@dataclass(frozen=True, slots=True)
class ImportPlan:
    new: list[ExchangeItem]
    skipped: list[ExchangeItem]
    known: dict[str, str]
    """Our ids of the skipped items, by source id."""
    lost: list[Loss]
    remarks: list[str]

    def execute(self, target: ImportTarget) -> tuple[list[ImportedItem], list[str]]:
        return target.write(self.new, self.known) if self.new else ([], [])


def fits_checklist(items: Sequence[ExchangeItem]) -> bool:
    """Whether there are few enough items, and none has a field that only a plan can hold."""
    return len(items) <= MAX_ITEMS and not any(
        item.parent or item.blocked_by or item.details or item.acceptance for item in items
    )


def plan_import(parsed: ParsedFile, format: ExchangeFormat, target: ImportTarget) -> ImportPlan:
    new, skipped, known = _split_known(parsed.items, format, target)
    lost: list[Loss] = []
    if "details" in target.limits.fields:
        new, nested = _name_parents(new, {item.id: item.title for item in parsed.items})
        lost += [Loss("parent (named in the details)", nested)] if nested else []
    if target.name == "plan" and format.stable_ids and (count := sum(1 for item in new if is_stable_id(item.id))):
        lost.append(Loss("id", count))
    fitted = fit_items(target.limits, new)
    new, remarks = target.adjust(fitted.items)
    target.check(new)
    return ImportPlan(new, skipped, known, [*fitted.lost, *lost], [*parsed.remarks, *remarks])


def _name_parents(items: Sequence[ExchangeItem], titles: Mapping[str, str]) -> tuple[list[ExchangeItem], int]:
    named = [
        replace(item, parent="", details=f"Part of: {titles[item.parent]}\n\n{item.details}".strip())
        if item.parent
        else item
        for item in items
    ]
    return named, sum(1 for item in items if item.parent)


def _split_known(
    items: Sequence[ExchangeItem], format: ExchangeFormat, target: ImportTarget
) -> tuple[list[ExchangeItem], list[ExchangeItem], dict[str, str]]:
    """Split items into new and existing ones: matched by stable id, else by title, each existing item once."""
    existing = target.existing()
    known = {
        item.id: existing.ids[item.id]
        for item in items
        if format.stable_ids and is_stable_id(item.id) and item.id in existing.ids
    }
    by_id = frozenset(known)
    taken = set(known.values())
    titles = {title: [id for id in ids if id not in taken] for title, ids in existing.titles.items()}
    new, skipped = [], []
    for item in items:
        title = normalized_title(item.title)
        if item.id in by_id:
            skipped.append(item)
        elif titles.get(title):
            id = titles[title].pop(0)
            skipped.append(item)
            if item.id:
                known[item.id] = id
        else:
            new.append(item if format.stable_ids or target.name == "plan" else replace(item, id=""))
    return new, skipped, known
