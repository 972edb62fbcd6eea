"""Import plans and targets: the interface of a target, helpers that they share, and the checklist.

An import changes everything or nothing: a target checks while it writes, in one transaction. A dry run does the
same and rolls back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from punchlist.checklist import validation as checklist_validation
from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits, fit_items
from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
from punchlist.kernel.text import excerpt
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan.validation import normalized_title

if TYPE_CHECKING:
    from punchlist.checklist.service import Checklists
    from punchlist.conversations.model import Scope
    from punchlist.import_export.formats import ExchangeFormat
    from punchlist.storage.store import Store, Transaction

REASON: Final = "import"
CHECK_LOST: Final = "check (only checks of files are imported)"
_NUMBER: Final = re.compile(r"[0-9.]*")


@dataclass(frozen=True, slots=True)
class ExistingItems:
    """The items of a list before the import, by source id and by normalized title."""

    ids: Mapping[str, str]
    titles: Mapping[str, Sequence[str]]

    @classmethod
    def create(cls, titles: Sequence[tuple[str, str]], ids: Mapping[str, str] | None = None) -> ExistingItems:
        """From ids and titles; `ids` maps source ids to ours, if they are not the same."""
        found: dict[str, list[str]] = {}
        for id, title in titles:
            found.setdefault(normalized_title(title), []).append(id)
        return cls({id: id for id, _ in titles} if ids is None else ids, found)


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

    @property
    def busy(self) -> bool:
        """Whether an item of the list is in progress."""

    def existing(self) -> ExistingItems: ...

    def write(
        self, items: Sequence[ExchangeItem], known: Mapping[str, str], *, dry_run: bool = False
    ) -> tuple[list[ImportedItem], list[str]]:
        """Write the items; returns them with remarks. `known` maps source ids of existing items to our ids."""


class _RollBack(Exception):
    pass


@contextmanager
def import_transaction(store: Store, *, dry_run: bool) -> Iterator[Transaction]:
    with suppress(_RollBack), store.write() as tx:
        yield tx
        if dry_run:
            raise _RollBack


def is_stable_id(id: str) -> bool:
    """Whether an id identifies the item elsewhere; a number is only a position."""
    return _NUMBER.fullmatch(id) is None


def _limit_in_progress(items: Sequence[ExchangeItem], busy: bool) -> tuple[list[ExchangeItem], list[str]]:
    """Keep at most one item in progress, none if the list is `busy` with one already."""
    kept, changed = [], 0
    for item in items:
        running = item.status is TodoStatus.IN_PROGRESS
        kept.append(replace(item, status=TodoStatus.PENDING) if running and busy else item)
        changed += running and busy
        busy = busy or running
    remark = f"only one item can be in progress; {changed} more changed to pending"
    return kept, [remark] if changed else []


def keep_file_check(item: ExchangeItem) -> ExchangeItem:
    """A file from elsewhere must not run commands."""
    return item if item.check is None or "file" in item.check else replace(item, check=None)


def _drop_outcome(item: ExchangeItem) -> ExchangeItem:
    return item if item.status is TodoStatus.CANCELLED else replace(item, outcome="")


class ChecklistTarget:
    """Appends items to the checklist in one transaction."""

    name = "checklist"
    limits = FormatLimits(
        "the checklist",
        frozenset({"id", "title", "status", "active_form", "outcome", "check"}),
        states={TodoStatus.BACKLOG: TodoStatus.PENDING},
        trims={"outcome (only cancelled items have a reason)": _drop_outcome, CHECK_LOST: keep_file_check},
    )

    def __init__(self, checklists: Checklists, scope: Scope) -> None:
        self._checklists = checklists
        self._scope = scope
        self._before = checklists.get(scope.conversation_id)

    @property
    def busy(self) -> bool:
        return self._before.in_progress is not None

    def existing(self) -> ExistingItems:
        return ExistingItems.create([(item.id, item.content) for item in self._before.items])

    def write(
        self, items: Sequence[ExchangeItem], known: Mapping[str, str], *, dry_run: bool = False
    ) -> tuple[list[ImportedItem], list[str]]:
        del known
        existing, new = len(self._before.items) - len(self._before.dropped), len(items)
        if existing + new > checklist_validation.MAX_ITEMS:
            raise InvalidInput(
                f"The checklist holds at most {checklist_validation.MAX_ITEMS} items; it has {existing}, and the "
                f"import adds {new}. Nothing was imported. Use `--into plan` for longer lists."
            )
        todos, revision = self._todos(items), self._before.revision
        if dry_run:
            checklist_validation.parse_todos(todos)
            return [], []
        change = self._checklists.append(self._scope, todos, reason=REASON, revision=revision)
        added = change.checklist.items[existing : existing + new]
        return [ImportedItem(item.id, item.content, item.status) for item in added], []

    def _todos(self, items: Sequence[ExchangeItem]) -> list[dict[str, Any]]:
        return [
            {
                "content": item.title,
                "activeForm": item.active_form or item.title,
                "status": item.status.value,
                # A reason is one line, and a cancelled item needs one.
                "reason": excerpt(" ".join(item.outcome.split()), checklist_validation.MAX_TEXT_LENGTH)
                or "Imported as cancelled.",
                "check": item.check,
                **({"id": item.id} if is_stable_id(item.id) else {}),
            }
            for item in items
        ]


# --- planning ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """New items, existing items, and losses."""

    new: list[ExchangeItem]
    skipped: list[ExchangeItem]
    known: dict[str, str]
    """Our ids of the skipped items, by source id."""
    lost: list[Loss]
    remarks: list[str]

    def execute(self, target: ImportTarget, *, dry_run: bool = False) -> tuple[list[ImportedItem], list[str]]:
        return target.write(self.new, self.known, dry_run=dry_run) if self.new else ([], [])


def fits_checklist(items: Sequence[ExchangeItem]) -> bool:
    """Whether there are few enough items, and none has a field that only a plan can hold."""
    return len(items) <= checklist_validation.MAX_ITEMS and not any(
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
    new, remarks = _limit_in_progress(fitted.items, target.busy)
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
