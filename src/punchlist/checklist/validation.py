"""Parsing of TodoWrite arguments, rules for the whole list, and the changes of a replacement. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.checklist.lifecycle import ChecklistAction, ChecklistStatus, action_between, parse_status
from punchlist.checklist.model import ChecklistItem
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel import text

MAX_ITEMS: Final = 20
MAX_TEXT_LENGTH: Final = 500
MAX_ID_LENGTH: Final = 100
ONE_AT_A_TIME: Final = "Only one task can be in_progress at a time"


@dataclass(frozen=True, slots=True)
class NewChecklistItem:
    """A parsed item; it may have no id yet."""

    content: str
    active_form: str
    status: ChecklistStatus
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ItemChange:
    """The change of one item in a replacement."""

    id: str
    action: str
    from_status: ChecklistStatus | None
    to_status: ChecklistStatus | None
    content: str


def parse_todos(todos: Any) -> list[NewChecklistItem]:
    """Parse the items, or raise with every problem, each naming its item and the rule."""
    if not isinstance(todos, list):
        raise InvalidInput(f"todos: must be an array of items, got {text.json_type(todos)}")
    if len(todos) > MAX_ITEMS:
        raise InvalidInput(f"todos: at most {MAX_ITEMS} items are allowed, got {len(todos)}")
    problems: list[str] = []
    parsed = [_parse_item(raw, f"todos[{index}]", problems) for index, raw in enumerate(todos)]
    if problems:
        raise InvalidInput(problems)
    items = [item for item in parsed if item is not None]
    check_list(items)
    return items


def _parse_item(raw: Any, where: str, problems: list[str]) -> NewChecklistItem | None:
    if not isinstance(raw, dict):
        problems.append(f"{where}: must be an object with content, status and activeForm, got {text.json_type(raw)}")
        return None
    before = len(problems)
    for key in ("content", "activeForm"):
        if key not in raw:
            problems.append(f"{where}.{key}: is required")
        elif problem := text.line_problem(raw[key], max_length=MAX_TEXT_LENGTH):
            problems.append(f"{where}.{key}: {problem}")
    status = _parse_status(raw.get("status"), where, problems)
    item_id = raw.get("id")
    if item_id is not None and (problem := text.line_problem(item_id, max_length=MAX_ID_LENGTH)):
        problems.append(f"{where}.id: {problem}")
    if len(problems) > before or status is None:
        return None
    return NewChecklistItem(
        raw["content"].strip(), raw["activeForm"].strip(), status, item_id.strip() if item_id else None
    )


def _parse_status(raw: Any, where: str, problems: list[str]) -> ChecklistStatus | None:
    status = parse_status(raw) if isinstance(raw, str) else None
    if status is None:
        got = repr(text.excerpt(raw)) if isinstance(raw, str) else text.json_type(raw)
        problems.append(f"{where}.status: must be one of {', '.join(ChecklistStatus)}, got {got}")
    return status


def check_list(items: Sequence[NewChecklistItem | ChecklistItem]) -> None:
    """The rules for the list as a whole."""
    if len(items) > MAX_ITEMS:
        raise InvalidInput(f"todos: at most {MAX_ITEMS} items are allowed, got {len(items)}")
    running = [index for index, item in enumerate(items) if item.status is ChecklistStatus.IN_PROGRESS]
    if len(running) > 1:
        where = " and ".join(f"todos[{index}]" for index in running)
        raise InvalidInput(f"{ONE_AT_A_TIME} ({where} are)")
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        if item.id is None:
            continue
        if item.id in seen:
            raise InvalidInput(f"todos[{index}].id: {text.visible(item.id)!r} is the id of todos[{seen[item.id]}] too")
        seen[item.id] = index


def assign_ids(
    items: Sequence[NewChecklistItem], before: Sequence[ChecklistItem], new_id: Callable[[], str]
) -> tuple[ChecklistItem, ...]:
    """Give every item an id: its own, else that of the previous item with the same content, else a new one."""
    named = {item.id for item in items if item.id}
    reusable: dict[str, list[str]] = {}
    for old in before:
        if old.id not in named:
            reusable.setdefault(old.content, []).append(old.id)
    used = named | {old.id for old in before}

    def id_for(item: NewChecklistItem) -> str:
        if item.id:
            return item.id
        if reusable.get(item.content):
            return reusable[item.content].pop(0)
        new = new_id()
        while new in used:
            new = new_id()
        used.add(new)
        return new

    return tuple(ChecklistItem(id_for(item), item.content, item.active_form, item.status) for item in items)


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
    """Unfinished items that a replacement removes."""
    removed = {old.id for old, new in match_items(before, after) if old and new is None}
    return tuple(item for item in before if item.is_open and item.id in removed)


def find_item(items: Sequence[ChecklistItem], reference: str) -> ChecklistItem:
    """Find an item by its number in the box or by its id."""
    number = int(reference) if reference.isdecimal() and len(reference) < 10 else 0
    if 1 <= number <= len(items):
        return items[number - 1]
    for item in items:
        if item.id == reference:
            return item
    numbers = f"1 to {len(items)}" if items else "none, the list is empty"
    raise NotFound(f"There is no item {text.excerpt(reference)!r} in the list. Numbers: {numbers}.")


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
