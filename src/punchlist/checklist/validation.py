"""Parsing of TodoWrite arguments, and rules for the whole list. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.checklist.lifecycle import SENDABLE, ChecklistStatus, parse_status
from punchlist.checklist.model import ChecklistItem
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.verification.model import Check
from punchlist.verification.validation import parse_check

MAX_ITEMS: Final = 20
MAX_DROPPED: Final = 100
"""Dropped items that a list holds besides its items."""
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
    reason: str = ""
    """Why it is cancelled."""
    check: Check | None = None


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
    reason = _parse_reason(raw.get("reason"), status, where, problems)
    check = parse_check(raw.get("check"), f"{where}.check", problems)
    if len(problems) > before or status is None:
        return None
    return NewChecklistItem(
        raw["content"].strip(), raw["activeForm"].strip(), status, item_id.strip() if item_id else None, reason, check
    )


def _parse_reason(raw: Any, status: ChecklistStatus | None, where: str, problems: list[str]) -> str:
    """Only a cancelled item has a reason; models send empty ones for other items, too."""
    if status is not ChecklistStatus.CANCELLED:
        return ""
    if raw is None:
        problems.append(f"{where}.reason: is required for a cancelled item; say why it will not be done")
        return ""
    if problem := text.line_problem(raw, max_length=MAX_TEXT_LENGTH):
        problems.append(f"{where}.reason: {problem}")
        return ""
    return str(raw).strip()


def parse_reason(raw: Any) -> str:
    if problem := text.line_problem(raw, max_length=MAX_TEXT_LENGTH):
        raise InvalidInput(f"reason: {problem}")
    return str(raw).strip()


def _parse_status(raw: Any, where: str, problems: list[str]) -> ChecklistStatus | None:
    status = parse_status(raw) if isinstance(raw, str) else None
    if status is None:
        got = repr(text.excerpt(raw)) if isinstance(raw, str) else text.json_type(raw)
        hint = ""
        if isinstance(raw, str) and raw.strip().lower() == ChecklistStatus.DROPPED:
            hint = "; send a dropped item as pending to do it, or as cancelled with a reason"
        problems.append(f"{where}.status: must be one of {', '.join(SENDABLE)}, got {got}{hint}")
    return status


def check_list(items: Sequence[NewChecklistItem | ChecklistItem]) -> None:
    """The rules for the list as a whole."""
    dropped = sum(1 for item in items if item.status is ChecklistStatus.DROPPED)
    if len(items) - dropped > MAX_ITEMS:
        raise InvalidInput(f"todos: at most {MAX_ITEMS} items are allowed, got {len(items) - dropped}")
    if dropped > MAX_DROPPED:
        raise InvalidInput(
            f"todos: more than {MAX_DROPPED} items are dropped. Send the unfinished items again, or cancel them with a "
            "reason."
        )
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
