"""Pure checks of mission todos: scope, content, capacity (M2), and whether the completion check has passed (M16)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel import text
from punchlist.kernel.events import canonical_json
from punchlist.missions.model import Capacity, MissionScope, MissionTodo, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.verification.validation import parse_check as parse_file_check

MAX_TITLE_LENGTH: Final = 500
MAX_BLOCK_LENGTH: Final = 20_000
MAX_NAME_LENGTH: Final = 200
MAX_REASON_LENGTH: Final = 2_000
MAX_NAMES: Final = 100
MAX_COMMAND_WORDS: Final = 100
MAX_DETAIL_LENGTH: Final = 5_000
MAX_LABELS: Final = 20
MAX_LABEL_LENGTH: Final = 50
MAX_LIMIT: Final = 1e308
"""Of a metric in a check."""

UPDATES: Final = {
    action.value: action
    for action in (
        TodoAction.PROMOTE,
        TodoAction.DEMOTE,
        TodoAction.START,
        TodoAction.CANCEL,
        TodoAction.EXTEND,
        TodoAction.REPRIORITIZE,
        TodoAction.RESUME,
    )
}
TARGETS: Final = {"pending": TodoStatus.PENDING, "backlog": TodoStatus.BACKLOG}
PRIORITIES: Final = {priority.value: priority for priority in TodoPriority}


# --- scope ------------------------------------------------------------------------------------------------


def check_mission(scope: MissionScope, slug: str) -> None:
    if scope.mission_slug not in (None, slug):
        raise NotAllowed(f"You act in mission {scope.mission_slug!r} only, not in {text.excerpt(slug)!r}.")


def check_pillar(scope: MissionScope, slug: str) -> None:
    if scope.pillar_slug not in (None, slug):
        raise NotAllowed(f"You act in pillar {scope.pillar_slug!r} only, not in {text.excerpt(slug)!r}.")


# --- content ----------------------------------------------------------------------------------------------


def content_problems(new: NewMissionTodo) -> list[str]:
    """The problems of a new todo that did not come through the tools."""
    lines: dict[str, tuple[str | None, int]] = {
        "title": (new.title, MAX_TITLE_LENGTH),
        "assignedAgent": (new.assigned_agent, MAX_NAME_LENGTH),
        "requestId": (new.request_id, MAX_NAME_LENGTH),
    }
    blocks = {
        "description": new.description,
        "justification": new.justification,
        "completionCriteria": new.completion_criteria,
    }
    problems = [
        f"{name}: {problem}"
        for name, (value, max_length) in lines.items()
        if value is not None and (problem := text.line_problem(value, max_length=max_length))
    ]
    problems += [
        f"{name}: {problem}"
        for name, value in blocks.items()
        if (problem := text.block_problem(value, max_length=MAX_BLOCK_LENGTH))
    ]
    if new.target not in TARGETS.values():
        problems.append(f"targetStatus: must be one of {', '.join(TARGETS)}, got {text.display_value(new.target)}")
    if new.check is not None:
        parse_check(new.check, "check", problems)
    return problems + label_problems(new.labels)


def label_problems(labels: Sequence[object]) -> list[str]:
    if len(set(map(str, labels))) > MAX_LABELS:
        return [f"labels: at most {MAX_LABELS}, got {len(labels)}"]
    return [
        f"labels[{index}]: {problem}"
        for index, label in enumerate(labels)
        if (problem := text.line_problem(label, max_length=MAX_LABEL_LENGTH) or _label_problem(str(label)))
    ]


def _label_problem(label: str) -> str | None:
    if label.strip().startswith("-"):
        return "must not start with a dash, which removes a label"
    return None if not set(label) & set('",\\') else 'must not contain a comma, a quote (") or a backslash'


def labels_json(labels: Sequence[str]) -> str | None:
    """Labels as they are stored: each once, in the order given; None without labels."""
    names = list(dict.fromkeys(label.strip() for label in labels))
    return json.dumps(names, ensure_ascii=False) if names else None


def mismatched_fields(
    action: str, given: Collection[str], fields: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> list[str]:
    """The fields that an action lacks, or does not take. `fields` are the required and the optional ones by action."""
    required, optional = fields[action]
    problems = [f"{name}: is required to {action}" for name in required if name not in given]
    for name in given:
        if name not in (*required, *optional):
            owners = [other for other, (needs, takes) in fields.items() if name in (*needs, *takes)]
            problems.append(f"{name}: is only for {' and '.join(owners)}; leave it out to {action}")
    return problems


def parse_block(field: str, raw: object, max_length: int = MAX_BLOCK_LENGTH) -> str:
    if problem := text.block_problem(raw, max_length=max_length, min_length=1):
        raise InvalidInput(f"{field}: {problem}")
    return str(raw).strip()


_LINE: Final = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH}
_WORD: Final = {"type": "string", "maxLength": MAX_REASON_LENGTH}
_WORDS: Final = {"type": "array", "items": _WORD, "minItems": 1, "maxItems": MAX_COMMAND_WORDS}
_CHECKS: Final[Sequence[tuple[dict[str, Any], list[str]]]] = (
    ({"name": _LINE}, ["name"]),
    ({"metric": _LINE, "atMost": {"type": "number"}}, ["metric", "atMost"]),
    ({"metric": _LINE, "atLeast": {"type": "number"}}, ["metric", "atLeast"]),
    ({"file": {"type": "string", "minLength": 1}, "contains": {"type": "string"}}, ["file"]),
    ({"command": _WORDS}, ["command"]),
)
CHECK_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        for properties, required in _CHECKS
    ]
}
"""What `parse_check` accepts."""


def parse_check(raw: Any, where: str, problems: list[str]) -> dict[str, Any] | None:
    """A completion check: the name of one in mission.json, a limit for a metric, a file, or a command."""
    if raw is None:
        return None
    before = len(problems)
    match raw:
        case {"name": name, **rest} if not rest:
            if problem := text.line_problem(name, max_length=MAX_NAME_LENGTH):
                problems.append(f"{where}.name: {problem}")
        case {"metric": metric, **rest} if len(rest) == 1 and rest.keys() <= {"atMost", "atLeast"}:
            if problem := text.line_problem(metric, max_length=MAX_NAME_LENGTH):
                problems.append(f"{where}.metric: {problem}")
            ((bound, limit),) = rest.items()
            number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if not (number and -MAX_LIMIT <= cast("float", limit) <= MAX_LIMIT):
                problems.append(f"{where}.{bound}: must be a number, got {text.display_value(limit)}")
        case {"file": _, **rest} if rest.keys() <= {"contains"}:
            parse_file_check(raw, where, problems)
        case {"command": command, **rest} if not rest:
            _check_command(command, f"{where}.command", problems)
        case _:
            problems.append(
                f'{where}: must be {{"name": a check of the mission}}, {{"metric": its slug, "atMost" or "atLeast": '
                f'a number}} or {{"file": path, "contains": text}}, got {text.json_type(raw)}'
            )
    return dict(raw) if len(problems) == before else None


def _check_command(command: Any, where: str, problems: list[str]) -> None:
    if not isinstance(command, list | tuple) or not 1 <= len(command) <= MAX_COMMAND_WORDS:
        problems.append(f"{where}: must be an array of 1 to {MAX_COMMAND_WORDS} words, the program first")
        return
    for index, word in enumerate(command):
        if problem := text.block_problem(word, max_length=MAX_REASON_LENGTH, min_length=0 if index else 1):
            problems.append(f"{where}[{index}]: {problem}")


def unknown_field(name: object, known: Collection[str]) -> str:
    """The message for a field that does not exist, with the closest known name."""
    hint = text.did_you_mean(name, known) or f" Known fields: {', '.join(known)}."
    return f"{text.excerpt(str(name))}: there is no such field.{hint}"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """The known name closest to a wrong one, and the first ten known names."""
    known = list(known)
    listed = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
    return f"{text.did_you_mean(name, known)} Available: {listed or 'none'}."


def missing_name(mission_slug: str, what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that a mission does not define."""
    return f"mission {mission_slug!r} has no {what} {text.excerpt(name)!r}.{suggest_name(name, known)}"


# --- capacity: limits apply to the whole mission; the caller has locked it and counted in its transaction ---


def choose_list(requested: TodoAction, capacity: Capacity) -> tuple[TodoAction, str | None]:
    """Whether a new todo is created as pending or in the backlog, and a warning when that was not requested."""
    warning = None
    if requested is TodoAction.CREATE:
        if capacity.active < capacity.active_limit:
            return TodoAction.CREATE, None
        warning = f"{_active_limit_reached(capacity)} Created in backlog instead."
    _check_backlog_room(capacity)
    return TodoAction.SHELVE, warning


def check_room(action: TodoAction, capacity: Capacity) -> None:
    """Raises when the list that a todo would move to is full."""
    if action is TodoAction.PROMOTE and capacity.active >= capacity.active_limit:
        raise IllegalTransition(f"{_active_limit_reached(capacity)} Complete, cancel or demote an item first.")
    if action is TodoAction.DEMOTE:
        _check_backlog_room(capacity)


def is_backlog_full(capacity: Capacity) -> bool:
    return capacity.backlog >= capacity.backlog_limit


def _active_limit_reached(capacity: Capacity) -> str:
    return f"Active TODO limit ({capacity.active_limit}) reached."


def _check_backlog_room(capacity: Capacity) -> None:
    if is_backlog_full(capacity):
        raise IllegalTransition(
            f"Backlog limit ({capacity.backlog_limit}) reached. Cancel or complete existing items first."
        )


# --- completion check -------------------------------------------------------------------------------------


def check_result_json(passed: bool, detail: str, at: str) -> str:
    """The stored result of a check. `detail` may be program output: escaped and cut."""
    return canonical_json({"passed": passed, "detail": text.visible_block(detail)[:MAX_DETAIL_LENGTH], "at": at})


def check_result(todo: MissionTodo) -> dict[str, Any] | None:
    result: dict[str, Any] | None = json.loads(todo.check_result) if todo.check_result else None
    return result


def passed_since_work(todo: MissionTodo) -> bool:
    """Whether the check passed after the last work on the todo; True without a check."""
    if todo.completion_check is None:
        return True
    result = check_result(todo)
    since = max(todo.worked_at or "", todo.started_at or "")
    return result is not None and result.get("passed") is True and str(result.get("at", "")) >= since


def failed_check_text(todo: MissionTodo) -> str:
    """That the last run of the check failed, and why; empty if it did not fail."""
    result = check_result(todo)
    if todo.completion_check is None or result is None or result.get("passed"):
        return ""
    return f"Its check failed: {_check_detail(result)}."


def _check_detail(result: Mapping[str, Any]) -> str:
    return text.excerpt(str(result.get("detail") or "no detail"), 500).rstrip(".")


def check_not_passed(todo: MissionTodo) -> IllegalTransition:
    result = check_result(todo)
    if result is None:
        problem = "its check has not been run"
    elif not result.get("passed"):
        problem = f"its check failed at {result.get('at')}: {_check_detail(result)}"
    else:
        problem = f"it was worked on after its check passed at {result.get('at')}"
    return IllegalTransition(
        f"“{text.visible(todo.title)}” cannot be completed: {problem}. Send the work back, or run the check again once "
        "the problem is fixed. To complete it anyway, give a reason (overrideReason, --override); the reason is "
        "recorded."
    )
