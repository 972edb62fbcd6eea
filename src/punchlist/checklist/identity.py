"""Which items of a replacement are which items of the list before it (W3). Pure.

An item is the same as before if it has the same id, else the same content, else if it was reworded (`similarity.py`).
An agent that leaves out an unfinished item has not finished it, so a text that ends an item must say what it said,
also under the id of the item: “Say hello” does not complete “Refactor the module”.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from punchlist.checklist.lifecycle import OPEN, ChecklistAction, ChecklistStatus, action_between
from punchlist.checklist.model import ChecklistItem
from punchlist.checklist.similarity import SIMILAR, similarity
from punchlist.checklist.validation import NewChecklistItem
from punchlist.errors import InvalidInput
from punchlist.kernel.references import matching_ids, position
from punchlist.kernel.text import excerpt, visible
from punchlist.verification.model import NO_VERIFICATION, Check, CheckOutcome, CheckResult, Verification

SIMILAR_AT_SAME_POSITION: Final = 0.4


@dataclass(frozen=True, slots=True)
class ItemChange:
    """The change of one item in a replacement."""

    id: str
    action: str
    from_status: ChecklistStatus | None
    to_status: ChecklistStatus | None
    content: str


def replace_items(
    sent: Sequence[NewChecklistItem],
    before: Sequence[ChecklistItem],
    new_id: Callable[[], str],
    *,
    by_person: bool = False,
) -> tuple[ChecklistItem, ...]:
    """The list after a replacement. Unfinished items that were not sent are kept at its end, as dropped."""
    items = assign_ids(sent, before, new_id, by_person=by_person)
    removed = [old for old, new in match_items(before, items) if old and new is None and old.is_open]
    kept = {old.id for old in removed}
    dropped = (replace(old, status=ChecklistStatus.DROPPED) for old in before if old.id in kept)
    return (*items, *dropped)


def assign_ids(
    sent: Sequence[NewChecklistItem],
    before: Sequence[ChecklistItem],
    new_id: Callable[[], str],
    *,
    by_person: bool = False,
) -> tuple[ChecklistItem, ...]:
    """Give every item an id: its own, else that of the same item before, else a new one."""
    same = _same_items(sent, before, by_person=by_person)
    known = {old.id for old in before}
    used = {item.id for item in sent if item.id} | {old.id for old in before}
    items = []
    for index, (old, item) in enumerate(zip(same, sent, strict=True)):
        # The id of another item stays with that item.
        own = item.id if item.id not in known else None
        if old is not None and (own is None or item.content != old.content):
            id = old.id
        else:
            id = own or _unused(new_id, used)
        used.add(id)
        verification = _verification(old, item, f"todos[{index}]", by_person=by_person)
        items.append(ChecklistItem(id, item.content, item.active_form, item.status, item.reason, verification))
    return tuple(items)


def _same_items(
    sent: Sequence[NewChecklistItem], before: Sequence[ChecklistItem], *, by_person: bool
) -> list[ChecklistItem | None]:
    """For each item that was sent, the same item before: by id, else by content, else by similar words."""
    by_id = {old.id: old for old in before}
    same = [by_id.get(item.id) if item.id else None for item in sent]
    if not by_person:
        same = [old if old and _may_be(old, item) else None for old, item in zip(same, sent, strict=True)]
    # Agents may send an item with an id of their own for it: those without an id come first.
    for with_id in (False, True):
        _match_contents(same, sent, before, with_id=with_id)
    _match_references(same, sent, before)
    _match_reworded(same, sent, before)
    return same


def _match_contents(
    same: list[ChecklistItem | None],
    sent: Sequence[NewChecklistItem],
    before: Sequence[ChecklistItem],
    *,
    with_id: bool,
) -> None:
    free: dict[str, list[ChecklistItem]] = {}
    for old in _unmatched(before, same):
        free.setdefault(old.content, []).append(old)
    for index, item in enumerate(sent):
        if same[index] is None and (item.id is not None) is with_id and free.get(item.content):
            same[index] = free[item.content].pop(0)


def _match_references(
    same: list[ChecklistItem | None], sent: Sequence[NewChecklistItem], before: Sequence[ChecklistItem]
) -> None:
    """Match ids that are short references: the number of an item, or a part of its id."""
    ids = [old.id for old in before]
    for index, item in enumerate(sent):
        if same[index] is not None or item.id is None or len(found := matching_ids(ids, item.id)) != 1:
            continue
        (old,) = (old for old in before if old.id == found[0])
        # Agents number items of their own, too: a number means an item of the list only if the words are similar.
        similar = _similarity(old, item) >= SIMILAR_AT_SAME_POSITION if position(item.id) else _may_be(old, item)
        if similar and old not in same:
            same[index] = old


def _match_reworded(
    same: list[ChecklistItem | None], sent: Sequence[NewChecklistItem], before: Sequence[ChecklistItem]
) -> None:
    """Match what is left by the similarity of the words, the most similar first."""
    old_items = _unmatched(before, same)
    if not old_items:
        return
    places = {old.id: place for place, old in enumerate(before)}
    pairs = []
    for index, item in enumerate(sent):
        for old in old_items if same[index] is None else ():
            similarity = _similarity(old, item)
            moved = places[old.id] != index
            if similarity >= (SIMILAR if moved else SIMILAR_AT_SAME_POSITION):
                pairs.append((-similarity, moved, index, places[old.id]))
    for _, _, index, place in sorted(pairs):
        if same[index] is None and before[place] not in same:
            same[index] = before[place]


def _unmatched(before: Sequence[ChecklistItem], same: Sequence[ChecklistItem | None]) -> list[ChecklistItem]:
    taken = {old.id for old in same if old is not None}
    return [old for old in before if old.id not in taken]


def _may_be(old: ChecklistItem, item: NewChecklistItem) -> bool:
    """Whether an item that names another by its id is that: it may get any new text, but not to end it."""
    return not _ends(old, item) or old.content == item.content or _similarity(old, item) > 0


def _similarity(old: ChecklistItem, item: NewChecklistItem) -> float:
    return similarity(old.content, item.content, ends=_ends(old, item))


def _ends(old: ChecklistItem, item: NewChecklistItem) -> bool:
    return old.is_open and item.status not in OPEN


def _unused(new_id: Callable[[], str], used: set[str]) -> str:
    new = new_id()
    while new in used:
        new = new_id()
    return new


def _verification(old: ChecklistItem | None, item: NewChecklistItem, where: str, *, by_person: bool) -> Verification:
    check = None if item.check is None else replace(item.check, by_person=by_person)
    if old is None:
        return NO_VERIFICATION if check is None else Verification(check)
    kept = verification_after(old, item.status)
    if check is None or _same_check(check, kept.check):
        return kept
    if kept.check is not None and not by_person and (why := _check_stays(kept.check, kept.result, item.status)):
        raise InvalidInput(
            f"{where}.check: {why}, so the check of “{excerpt(visible(old.content))}” stays "
            f"({excerpt(visible(kept.check.description))}); leave check out. If it cannot pass, cancel the item with "
            "the reason."
        )
    return replace(kept, check=check, result=None)


def _check_stays(check: Check, result: CheckResult | None, status: ChecklistStatus) -> str | None:
    """Why an agent cannot change the check of its item; None if it can."""
    if check.by_person:
        return "a person set it"
    if result is not None and result.outcome is CheckOutcome.FAILED:
        return "it has failed"
    return "this call completes the item" if status is ChecklistStatus.COMPLETED else None


def _same_check(one: Check, other: Check | None) -> bool:
    return other is not None and replace(one, by_person=False) == replace(other, by_person=False)


def verification_after(item: ChecklistItem, status: ChecklistStatus) -> Verification:
    """The verification of an item after a change of its status. The work of a reopened item is verified anew."""
    reopened = item.status is ChecklistStatus.COMPLETED and status is not item.status
    return item.verification.reopened() if reopened else item.verification


def match_items(
    before: Sequence[ChecklistItem], after: Sequence[ChecklistItem]
) -> list[tuple[ChecklistItem | None, ChecklistItem | None]]:
    """Pairs of the same item before and after, matched by id, else by content; None for added and removed."""
    unmatched = {item.id: item for item in before}
    matched = {item.id: unmatched.pop(item.id) for item in after if item.id in unmatched}
    by_content: dict[str, list[ChecklistItem]] = {}
    for item in unmatched.values():
        by_content.setdefault(item.content, []).append(item)
    for item in after:
        if item.id not in matched and by_content.get(item.content):
            matched[item.id] = by_content[item.content].pop(0)
    removed = [item for items in by_content.values() for item in items]
    return [*((matched.get(item.id), item) for item in after), *((item, None) for item in removed)]


def dropped_items(before: Sequence[ChecklistItem], after: Sequence[ChecklistItem]) -> tuple[ChecklistItem, ...]:
    """Unfinished items that a change removes or marks as dropped."""
    found = {
        old.id
        for old, new in match_items(before, after)
        if old
        and old.is_open
        and (new is None or (new.status is ChecklistStatus.DROPPED and old.status is not new.status))
    }
    return tuple(item for item in before if item.id in found)


def item_changes(before: Sequence[ChecklistItem], after: Sequence[ChecklistItem]) -> list[ItemChange]:
    """The changes of a replacement, item by item."""
    return [change for old, new in match_items(before, after) if (change := _item_change(old, new))]


def _item_change(old: ChecklistItem | None, new: ChecklistItem | None) -> ItemChange | None:
    if new is None:
        return ItemChange(old.id, "remove", old.status, None, old.content) if old else None
    if old is None:
        return ItemChange(new.id, ChecklistAction.ADD, None, new.status, new.content)
    if old.status is not new.status:
        return ItemChange(new.id, action_between(old.status, new.status), old.status, new.status, new.content)
    return ItemChange(new.id, "edit", new.status, new.status, new.content) if old != new else None
