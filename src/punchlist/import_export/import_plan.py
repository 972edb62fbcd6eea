"""An import, decided before anything is written: what is new, what is there already, and what cannot be kept."""

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
    """Our ids of those that are skipped, by theirs."""
    lost: list[Loss]
    remarks: list[str]

    def execute(self, target: ImportTarget) -> tuple[list[ImportedItem], list[str]]:
        return target.write(self.new, self.known) if self.new else ([], [])


def fits_checklist(entries: Sequence[ExchangeItem]) -> bool:
    """Few enough, and nothing about any of them that only a plan could hold."""
    return len(entries) <= MAX_ITEMS and not any(
        entry.parent or entry.blocked_by or entry.details or entry.acceptance for entry in entries
    )


def plan_import(found: ParsedFile, format: ExchangeFormat, target: ImportTarget) -> ImportPlan:
    new, skipped, known = _sorted_out(found.items, format, target)
    lost: list[Loss] = []
    if "details" in target.limits.fields:
        new, nested = _named_parents(new, {entry.id: entry.title for entry in found.items})
        lost += [Loss("place under another (its details name it)", nested)] if nested else []
    if target.name == "plan" and format.stable_ids and (count := sum(1 for one in new if is_stable_id(one.id))):
        lost.append(Loss("id", count))
    fitted = fit_items(target.limits, new)
    new, said = target.adjust(fitted.items)
    target.check(new)
    return ImportPlan(new, skipped, known, [*fitted.lost, *lost], [*found.remarks, *said])


def _named_parents(entries: Sequence[ExchangeItem], titles: Mapping[str, str]) -> tuple[list[ExchangeItem], int]:
    named = [
        replace(entry, parent="", details=f"Part of: {titles[entry.parent]}\n\n{entry.details}".strip())
        if entry.parent
        else entry
        for entry in entries
    ]
    return named, sum(1 for entry in entries if entry.parent)


def _sorted_out(
    entries: Sequence[ExchangeItem], format: ExchangeFormat, target: ImportTarget
) -> tuple[list[ExchangeItem], list[ExchangeItem], dict[str, str]]:
    """What is new and what is there: by its id, if that means something here, else by its title, as often as that is
    there."""
    there = target.existing()
    by_id = {entry.id: there.ids[entry.id] for entry in entries if _is_there(entry, format, there.ids)}
    taken = set(by_id.values())
    titles = {title: [id for id in ids if id not in taken] for title, ids in there.titles.items()}
    new, skipped, known = [], [], dict(by_id)
    for entry in entries:
        if entry.id in by_id and entry.id:
            skipped.append(entry)
        elif titles.get(normalized_title(entry.title)):
            id = titles[normalized_title(entry.title)].pop(0)
            skipped.append(entry)
            if entry.id:
                known[entry.id] = id
        else:
            new.append(entry if format.stable_ids or target.name == "plan" else replace(entry, id=""))
    return new, skipped, known


def _is_there(entry: ExchangeItem, format: ExchangeFormat, ids: Mapping[str, str]) -> bool:
    return format.stable_ids and is_stable_id(entry.id) and entry.id in ids
