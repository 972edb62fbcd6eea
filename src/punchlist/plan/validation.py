"""Parsing of plan tool arguments, resolution of references between todos, and positions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel import text
from punchlist.plan.lifecycle import OPEN, ConditionKind, PlanAction, PlanStatus
from punchlist.plan.model import NewCondition, NewTodo, TurnTodo
from punchlist.verification.validation import parse_check

MAX_BATCH: Final = 1_000
MAX_PLAN: Final = 10_000
DEFAULT_PAGE: Final = 200
"""Todos in one result of `list_todo`."""
MAX_TITLE_LENGTH: Final = 500
MAX_BLOCK_LENGTH: Final = 20_000
MAX_AGENT_TYPE_LENGTH: Final = 100
MAX_ID_LENGTH: Final = 100
MAX_CONDITIONS: Final = 20
"""Conditions, and resources, of one todo."""
MAX_CONFLICTS: Final = 20
"""Conflicts explained in one result."""
MAX_SUBJECT_LENGTH: Final = {
    ConditionKind.PERSON: 1_000,
    ConditionKind.TIME: 100,
    ConditionKind.EVENT: 200,
    ConditionKind.TODO: 500,
    ConditionKind.RESOURCE: 500,
}

# Names that other tools use for the end of an item (W11).
END_ACTIONS: Final = {
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
CONDITION_KEYS: Final = {kind.value: kind for kind in ConditionKind if kind is not ConditionKind.RESOURCE}


def parse_items(raw: Any) -> list[NewTodo]:
    """Parse the items of `create_todo`, or raise with every problem, each naming its item and the rule."""
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
    before = len(problems)
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
        problems.append(f"{where}.order: must be a position counted from 1, got {text.display_value(order)}")
    blocked_by = _parse_conditions(raw.get("blockedBy"), f"{where}.blockedBy", problems)
    resources = _parse_resources(raw.get("resources"), f"{where}.resources", problems)
    check = None if raw.get("check") is None else parse_check(raw["check"], f"{where}.check", problems)
    if len(problems) > before:
        return None
    return NewTodo(
        title=raw["title"].strip(),
        context=(raw.get("context") or "").strip(),
        completion_criteria=(raw.get("completionCriteria") or "").strip(),
        agent_type=agent_type.strip() if agent_type else None,
        order=order,
        blocked_by=blocked_by,
        resources=resources,
        check=check,
    )


def parse_status_filter(raw: Any) -> frozenset[PlanStatus] | None:
    """The requested states; None for the default, the open ones."""
    if raw is None:
        return None
    if isinstance(raw, str) and raw in FILTERS:
        return FILTERS[raw]
    raise InvalidInput(f"status: must be one of {', '.join(FILTERS)}, got {text.display_value(raw)}")


def parse_limit(raw: Any) -> int:
    if raw is None:
        return DEFAULT_PAGE
    if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= MAX_PLAN:
        raise InvalidInput(f"limit: must be a whole number from 1 to {MAX_PLAN:,}, got {text.display_value(raw)}")
    return raw


def parse_cursor(raw: Any) -> str | None:
    if raw is None:
        return None
    if problem := text.line_problem(raw, max_length=MAX_ID_LENGTH):
        raise InvalidInput(f"cursor: {problem}")
    return str(raw).strip()


def parse_end_action(raw: Any) -> PlanAction:
    if raw is None:
        return PlanAction.COMPLETE
    if isinstance(raw, str) and raw.strip().lower() in END_ACTIONS:
        return END_ACTIONS[raw.strip().lower()]
    raise InvalidInput(f"status: must be completed, cancelled or failed, got {text.display_value(raw)}")


def parse_id(raw: Any) -> str:
    """A reference to a todo; models write its number as a number, too."""
    if problem := id_problem(raw):
        raise InvalidInput(f"todoId: {problem}")
    return str(raw).strip()


def id_problem(raw: Any) -> str | None:
    return text.line_problem(_number_as_text(raw), max_length=MAX_ID_LENGTH)


def _number_as_text(raw: Any) -> Any:
    return str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw


def parse_outcome(raw: Any) -> str:
    if raw is None:
        raise InvalidInput("outcome: is required; say what was done, or why it was cancelled")
    return _parse_block(raw, "outcome", min_length=1)


def parse_answer(raw: Any) -> str:
    return _parse_block(raw, "answer", min_length=1)


def parse_note(raw: Any) -> str:
    return _parse_block(raw, "note", min_length=0)


def _parse_block(raw: Any, name: str, *, min_length: int) -> str:
    if problem := text.block_problem(raw, max_length=MAX_BLOCK_LENGTH, min_length=min_length):
        raise InvalidInput(f"{name}: {problem}")
    return str(raw).strip()


def storable_text(content: str, empty: str) -> str:
    """A text of a tool or worker, escaped and cut where it could not be stored as it is; `empty` if it has none."""
    content = content.strip() or empty
    if text.block_problem(content, max_length=MAX_BLOCK_LENGTH) is None:
        return content
    return text.visible_block(content)[:MAX_BLOCK_LENGTH]


def parse_condition(raw: Any, where: str) -> NewCondition:
    problems: list[str] = []
    condition = _parse_condition(raw, where, problems)
    if condition is None:
        raise InvalidInput(problems)
    return condition


def _parse_conditions(raw: Any, where: str, problems: list[str]) -> tuple[NewCondition, ...]:
    if raw is None:
        return ()
    entries = enumerate(_parse_array(raw, where, problems))
    conditions = [_parse_condition(entry, f"{where}[{index}]", problems) for index, entry in entries]
    return tuple(condition for condition in conditions if condition is not None)


def _parse_resources(raw: Any, where: str, problems: list[str]) -> tuple[str, ...]:
    if raw is None:
        return ()
    resources = []
    for index, entry in enumerate(_parse_array(raw, where, problems)):
        if problem := text.line_problem(entry, max_length=MAX_SUBJECT_LENGTH[ConditionKind.RESOURCE]):
            problems.append(f"{where}[{index}]: {problem}")
        else:
            resources.append(entry.strip())
    return tuple(dict.fromkeys(resources))


def _parse_array(raw: Any, where: str, problems: list[str]) -> list[Any]:
    if not isinstance(raw, list):
        problems.append(f"{where}: must be an array, got {text.json_type(raw)}")
    elif len(raw) > MAX_CONDITIONS:
        problems.append(f"{where}: at most {MAX_CONDITIONS} entries, got {len(raw)}")
    else:
        return raw
    return []


def _parse_condition(raw: Any, where: str, problems: list[str]) -> NewCondition | None:
    raw = _number_as_text(raw)
    if isinstance(raw, dict) and len(raw) == 1 and next(iter(raw)) in CONDITION_KEYS:
        ((key, subject),) = raw.items()
        kind, where = CONDITION_KEYS[key], f"{where}.{key}"
        subject = _number_as_text(subject) if kind is ConditionKind.TODO else subject
    elif isinstance(raw, str):
        kind, subject = ConditionKind.TODO, raw
    else:
        got = f"an object with {len(raw)} keys" if isinstance(raw, dict) and len(raw) != 1 else text.json_type(raw)
        keys = ", ".join(CONDITION_KEYS)
        problems.append(
            f"{where}: must be a todo's number, id or title, or an object with one of {keys}, such as "
            f'{{"person": "Which one?"}}, got {got}'
        )
        return None
    if problem := text.line_problem(subject, max_length=MAX_SUBJECT_LENGTH[kind]):
        problems.append(f"{where}: {problem}")
        return None
    subject = subject.strip()
    if kind is ConditionKind.TIME:
        time = _to_utc(subject)
        if time is None:
            problems.append(
                f"{where}: must be a time with its zone, such as 2026-11-20T09:00:00Z, got {text.excerpt(subject)!r}"
            )
            return None
        subject = time
    return NewCondition(kind, subject)


def _to_utc(time: str) -> str | None:
    """The time in UTC in its stored form; None if it cannot be parsed or has no zone."""
    try:
        parsed = datetime.fromisoformat(time)
        if parsed.tzinfo is None:
            return None
        return parsed.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=2048)
def normalized_title(title: str) -> str:
    """Two titles with the same normalized form are duplicates: case and spacing do not matter."""
    return " ".join(str(title).casefold().split())


def open_ids_by_title(existing: Iterable[Sequence[Any]], new: Sequence[TurnTodo]) -> dict[str, list[str]]:
    """The ids of open todos that share their normalized title with a new one.

    `existing` has id, status and title of the todos that were there before.
    """
    found: dict[str, list[str]] = {normalized_title(todo.title): [] for todo in new}
    for todo_id, status, title in existing:
        group = found.get(normalized_title(title))
        if group is not None and status in OPEN:
            group.append(todo_id)
    return found


def duplicate_titles(open_ids: Callable[[str], Sequence[str]], new: Sequence[TurnTodo]) -> list[str]:
    """Messages about new todos that share their title with another open todo.

    `open_ids` returns the todos that were there before, by their normalized title.
    """
    groups: dict[str, list[str]] = {}
    for todo in new:
        title = normalized_title(todo.title)
        if title not in groups:
            groups[title] = list(open_ids(title))
        groups[title].append(todo.id)
    if all(len(ids) == 1 for ids in groups.values()):
        return []
    messages = []
    for todo in new:
        ids = groups.pop(normalized_title(todo.title), ())
        if len(ids) > 1:
            others = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
            messages.append(
                f"{len(ids)} open todos are called “{text.visible(todo.title)}”: ids {', '.join(map(_short, ids[:5]))}"
                f"{others}. All "
                "are kept; cancel those that describe the same work."
            )
    return messages


def _short(id: str) -> str:
    """The end of an id, by which the todo can be named."""
    return id[-6:]


def limit_conflicts(messages: list[str]) -> list[str]:
    if len(messages) <= MAX_CONFLICTS:
        return messages
    return [*messages[:MAX_CONFLICTS], f"… and {len(messages) - MAX_CONFLICTS} more conflicts"]


@dataclass(frozen=True, slots=True)
class Shift:
    """Todos at positions `start` to `end` (exclusive) move back by `by` places."""

    start: int
    end: int
    by: int


def assign_positions(existing: int, items: Sequence[NewTodo]) -> tuple[list[int], list[Shift]]:
    """The 0-indexed position of each new item, and the shifts of existing items that make room.

    Items are inserted one after the other; a position past the end means the end. Shifts are sorted
    from the last position to the first, so that no item is shifted twice.
    """
    if all(item.order is None for item in items):
        return list(range(existing, existing + len(items))), []
    line = list(range(existing))
    for index, item in enumerate(items):
        line.insert(len(line) if item.order is None else min(item.order - 1, len(line)), existing + index)
    positions = [0] * len(items)
    shifts: list[Shift] = []
    for position, number in enumerate(line):
        if number >= existing:
            positions[number - existing] = position
        elif position > number:
            by = position - number
            if shifts and shifts[-1].end == number and shifts[-1].by == by:
                shifts[-1] = Shift(shifts[-1].start, number + 1, by)
            else:
                shifts.append(Shift(number, number + 1, by))
    return positions, shifts[::-1]
