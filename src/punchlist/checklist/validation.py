"""What a checklist may look like, and what a replacement does to it. Pure."""

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
    """An item as the caller wrote it; it may have no id yet."""

    content: str
    active_form: str
    status: ChecklistStatus
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One item's part in a replacement."""

    id: str
    action: str
    from_status: ChecklistStatus | None
    to_status: ChecklistStatus | None
    content: str


def parse_todos(todos: Any) -> list[NewChecklistItem]:
    """The caller's JSON as items, or every problem it has, each naming the item and the rule."""
    if not isinstance(todos, list):
        raise InvalidInput(f"todos: must be an array of items, got {text.json_type(todos)}")
    if len(todos) > MAX_ITEMS:
        raise InvalidInput(f"todos: at most {MAX_ITEMS} items are allowed, got {len(todos)}")
    problems: list[str] = []
    wanted = [_parse_item(raw, f"todos[{index}]", problems) for index, raw in enumerate(todos)]
    if problems:
        raise InvalidInput(problems)
    items = [item for item in wanted if item is not None]
    check_list(items)
    return items


def _parse_item(raw: Any, where: str, problems: list[str]) -> NewChecklistItem | None:
    if not isinstance(raw, dict):
        problems.append(f"{where}: must be an object with content, status and activeForm, got {text.json_type(raw)}")
        return None
    found = len(problems)
    for key in ("content", "activeForm"):
        if key not in raw:
            problems.append(f"{where}.{key}: is required")
        elif problem := text.line_problem(raw[key], max_length=MAX_TEXT_LENGTH):
            problems.append(f"{where}.{key}: {problem}")
    status = _parse_status(raw.get("status"), where, problems)
    item_id = raw.get("id")
    if item_id is not None and (problem := text.line_problem(item_id, max_length=MAX_ID_LENGTH)):
        problems.append(f"{where}.id: {problem}")
    if len(problems) > found or status is None:
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
    """The rules that look at the list as a whole."""
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
    wanted: Sequence[NewChecklistItem], before: Sequence[ChecklistItem], fresh_id: Callable[[], str]
) -> tuple[ChecklistItem, ...]:
    """Give every item its id: the one it names, else that of the same content before, else a new one."""
    named = {item.id for item in wanted if item.id}
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
        new = fresh_id()
        while new in used:
            new = fresh_id()
        used.add(new)
        return new

    return tuple(ChecklistItem(id_for(item), item.content, item.active_form, item.status) for item in wanted)


def match_items(
    before: Sequence[ChecklistItem], after: Sequence[ChecklistItem]
) -> list[tuple[ChecklistItem | None, ChecklistItem | None]]:
    """What became of each item: the same one by its id, else by its content; None for new and gone."""
    left = {item.id: item for item in before}
    found = {item.id: left.pop(item.id) for item in after if item.id in left}
    by_content: dict[str, list[ChecklistItem]] = {}
    for item in left.values():
        by_content.setdefault(item.content, []).append(item)
    for item in after:
        if item.id not in found and by_content.get(item.content):
            found[item.id] = by_content[item.content].pop(0)
    gone = [item for same in by_content.values() for item in same]
    return [*((found.get(item.id), item) for item in after), *((item, None) for item in gone)]


def dropped_items(before: Sequence[ChecklistItem], after: Sequence[ChecklistItem]) -> tuple[ChecklistItem, ...]:
    """Unfinished items that a replacement leaves out."""
    gone = {was.id for was, now in match_items(before, after) if was and now is None}
    return tuple(item for item in before if item.is_open and item.id in gone)


def find_item(items: Sequence[ChecklistItem], reference: str) -> ChecklistItem:
    """The item a person means: its number in the box, or its id."""
    number = int(reference) if reference.isdecimal() and len(reference) < 10 else 0
    if 1 <= number <= len(items):
        return items[number - 1]
    for item in items:
        if item.id == reference:
            return item
    known = f"1 to {len(items)}" if items else "none, the list is empty"
    raise NotFound(f"There is no item {text.excerpt(reference)!r} in the list. Numbers: {known}.")


def item_changes(before: Sequence[ChecklistItem], after: Sequence[ChecklistItem]) -> list[ItemChange]:
    """What a replacement did, item by item."""
    return [step for was, now in match_items(before, after) if (step := _step(was, now))]


def _step(was: ChecklistItem | None, now: ChecklistItem | None) -> ItemChange | None:
    if now is None:
        return ItemChange(was.id, "remove", was.status, None, was.content) if was else None
    if was is None:
        return ItemChange(now.id, ChecklistAction.ADD, None, now.status, now.content)
    if was.status is not now.status:
        return ItemChange(now.id, action_between(was.status, now.status), was.status, now.status, now.content)
    return ItemChange(now.id, "edit", now.status, now.status, now.content) if was != now else None
