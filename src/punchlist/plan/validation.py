"""What a plan item may look like, and where it goes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel import text
from punchlist.plan.condition_input import parse_conditions, parse_resources
from punchlist.plan.lifecycle import PlanAction, PlanStatus
from punchlist.plan.model import NewTodo

MAX_BATCH: Final = 1_000
MAX_PLAN: Final = 10_000
MAX_TITLE_LENGTH: Final = 500
MAX_BLOCK_LENGTH: Final = 20_000
MAX_AGENT_TYPE_LENGTH: Final = 100
MAX_ID_LENGTH: Final = 100

# What other tools call the ways in which work on an item ends (W11).
ENDINGS: Final = {
    "completed": PlanAction.COMPLETE,
    "complete": PlanAction.COMPLETE,
    "done": PlanAction.COMPLETE,
    "cancelled": PlanAction.CANCEL,
    "canceled": PlanAction.CANCEL,
    "failed": PlanAction.RETRY,
    "failure": PlanAction.RETRY,
    "error": PlanAction.RETRY,
}
FILTERS: Final = {**{status.value: frozenset({status}) for status in PlanStatus}, "all": frozenset(PlanStatus)}


def parse_items(raw: Any) -> list[NewTodo]:
    """The caller's JSON as items, or every problem it has, each naming the item and the rule."""
    if not isinstance(raw, list):
        raise InvalidInput(f"items: must be an array of items, got {text.json_type(raw)}")
    if not raw:
        raise InvalidInput("items: must have at least one item")
    if len(raw) > MAX_BATCH:
        raise InvalidInput(f"items: at most {MAX_BATCH} items in one call, got {len(raw)}")
    problems: list[str] = []
    items = [_parse_item(item, f"items[{index}]", problems) for index, item in enumerate(raw)]
    if problems:
        raise InvalidInput(problems)
    return [item for item in items if item is not None]


def _parse_item(raw: Any, where: str, problems: list[str]) -> NewTodo | None:
    if not isinstance(raw, dict):
        problems.append(f"{where}: must be an object with a title, got {text.json_type(raw)}")
        return None
    found = len(problems)
    if "title" not in raw:
        problems.append(f"{where}.title: is required")
    elif problem := text.line_problem(raw["title"], max_length=MAX_TITLE_LENGTH):
        problems.append(f"{where}.title: {problem}")
    for key in ("context", "completionCriteria"):
        if raw.get(key) is not None and (problem := text.block_problem(raw[key], max_length=MAX_BLOCK_LENGTH)):
            problems.append(f"{where}.{key}: {problem}")
    agent_type = raw.get("agentType")
    if agent_type is not None and (problem := text.line_problem(agent_type, max_length=MAX_AGENT_TYPE_LENGTH)):
        problems.append(f"{where}.agentType: {problem}")
    order = raw.get("order")
    if order is not None and (not isinstance(order, int) or isinstance(order, bool) or order < 1):
        problems.append(f"{where}.order: must be a position counted from 1, got {_shown(order)}")
    blocked_by = parse_conditions(raw.get("blockedBy"), f"{where}.blockedBy", problems)
    resources = parse_resources(raw.get("resources"), f"{where}.resources", problems)
    if len(problems) > found:
        return None
    return NewTodo(
        title=raw["title"].strip(),
        context=(raw.get("context") or "").strip(),
        completion_criteria=(raw.get("completionCriteria") or "").strip(),
        agent_type=agent_type.strip() if agent_type else None,
        order=order,
        blocked_by=blocked_by,
        resources=resources,
    )


def parse_status_filter(raw: Any) -> frozenset[PlanStatus] | None:
    """The states asked for; None for the default, what remains."""
    if raw is None:
        return None
    if isinstance(raw, str) and raw in FILTERS:
        return FILTERS[raw]
    raise InvalidInput(f"status: must be one of {', '.join(FILTERS)}, got {_shown(raw)}")


def parse_end_action(raw: Any) -> PlanAction:
    if raw is None:
        return PlanAction.COMPLETE
    if isinstance(raw, str) and raw.strip().lower() in ENDINGS:
        return ENDINGS[raw.strip().lower()]
    raise InvalidInput(f"status: must be completed, cancelled or failed, got {_shown(raw)}")


def parse_id(raw: Any) -> str:
    if problem := text.line_problem(raw, max_length=MAX_ID_LENGTH):
        raise InvalidInput(f"todoId: {problem}")
    return str(raw).strip()


def parse_outcome(raw: Any) -> str:
    if raw is None:
        raise InvalidInput("outcome: is required; say what was done, or why it was cancelled")
    if problem := text.block_problem(raw, max_length=MAX_BLOCK_LENGTH, min_length=1):
        raise InvalidInput(f"outcome: {problem}")
    return str(raw).strip()


def parse_answer(raw: Any) -> str:
    if problem := text.block_problem(raw, max_length=MAX_BLOCK_LENGTH, min_length=1):
        raise InvalidInput(f"answer: {problem}")
    return str(raw).strip()


def parse_note(raw: Any) -> str:
    if problem := text.block_problem(raw, max_length=MAX_BLOCK_LENGTH):
        raise InvalidInput(f"note: {problem}")
    return str(raw).strip()


def storable_error(error: str) -> str:
    """An error as it can be kept, whatever a tool or a worker put into it."""
    told = error.strip() or "nothing was said about it"
    return (
        told
        if text.block_problem(told, max_length=MAX_BLOCK_LENGTH) is None
        else text.visible_block(told)[:MAX_BLOCK_LENGTH]
    )


@dataclass(frozen=True, slots=True)
class Shift:
    """Items at positions `start` up to, not including, `end` move `by` places back."""

    start: int
    end: int
    by: int


def assign_positions(already: int, items: Sequence[NewTodo]) -> tuple[list[int], list[Shift]]:
    """Where each new item ends up, counted from 0, and how the items before them make room.

    Items are put in one after the other; a position past the end means at the end. The shifts come
    last position first, so that applying them in turn never moves an item twice.
    """
    if all(item.order is None for item in items):
        return list(range(already, already + len(items))), []
    line = list(range(already))
    for index, item in enumerate(items):
        line.insert(len(line) if item.order is None else min(item.order - 1, len(line)), already + index)
    positions = [0] * len(items)
    shifts: list[Shift] = []
    for position, number in enumerate(line):
        if number >= already:
            positions[number - already] = position
        elif position > number:
            by = position - number
            if shifts and shifts[-1].end == number and shifts[-1].by == by:
                shifts[-1] = Shift(shifts[-1].start, number + 1, by)
            else:
                shifts.append(Shift(number, number + 1, by))
    return positions, shifts[::-1]


def _shown(value: Any) -> str:
    match value:
        case str():
            return repr(text.excerpt(value))
        case bool() | None | list() | dict():
            return text.json_type(value)
        case int() if abs(value) > 10**15:
            return "a very large number"
    return text.excerpt(str(value))
