"""What a caller may say of a mission's todo, as JSON. Pure: every problem is named with its field."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from punchlist.claims.validation import parse_fence
from punchlist.errors import InvalidInput, NotAllowed
from punchlist.kernel import text
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos import pagination
from punchlist.missions.todos.lifecycle import ACTIVE, OPEN, TodoAction, TodoPriority, TodoStatus

MAX_TITLE_LENGTH: Final = 500
MAX_BLOCK_LENGTH: Final = 20_000
MAX_NAME_LENGTH: Final = 200
MAX_REASON_LENGTH: Final = 2_000
MAX_NAMES: Final = 100
MAX_COMMAND_WORDS: Final = 100
"""Of a command."""

UPDATES: Final = {
    action.value: action
    for action in (
        TodoAction.PROMOTE,
        TodoAction.DEMOTE,
        TodoAction.START,
        TodoAction.CANCEL,
        TodoAction.EXTEND,
        TodoAction.REPRIORITIZE,
    )
}
TARGETS: Final = {"pending": TodoStatus.PENDING, "backlog": TodoStatus.BACKLOG}
PRIORITIES: Final = {priority.value: priority for priority in TodoPriority}
FILTERS: Final[dict[str, frozenset[TodoStatus]]] = {
    **{status.value: frozenset({status}) for status in TodoStatus},
    "active": ACTIVE,
    "open": OPEN,
    "all": frozenset(TodoStatus),
}

CREATE_FIELDS: Final = (
    "missionSlug",
    "pillarSlug",
    "title",
    "description",
    "justification",
    "completionCriteria",
    "deadline",
    "priority",
    "assignedAgent",
    "targetStatus",
    "alsoAffects",
    "check",
    "template",
    "requestId",
)
UPDATE_FIELDS: Final = ("missionSlug", "todoId", "action", "reason", "deadline", "priority")
COMPLETE_FIELDS: Final = ("missionSlug", "todoId", "outcome", "metricsImpacted", "overrideReason")
LIST_FIELDS: Final = ("missionSlug", "pillarSlug", "status", "archived", "limit", "cursor")
REPORT_FIELDS: Final = ("missionSlug", "todoId", "result", "fence")


@dataclass(frozen=True, slots=True)
class TodoUpdate:
    mission_slug: str
    todo_id: str
    action: TodoAction
    reason: str
    deadline: str | None
    priority: TodoPriority | None


@dataclass(frozen=True, slots=True)
class TodoCompletion:
    mission_slug: str
    todo_id: str
    outcome: str
    metrics_impacted: tuple[str, ...]
    override_reason: str | None


@dataclass(frozen=True, slots=True)
class TodoQuery:
    mission_slug: str
    pillar: str | None
    status: frozenset[TodoStatus] | None
    archived: bool
    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class OwnerReport:
    mission_slug: str
    todo_id: str
    result: str
    fence: int | None = None


class _FieldReader:
    """Reads fields one by one and collects what is wrong with them."""

    def __init__(self, args: Mapping[str, Any], known: Collection[str]) -> None:
        self._args = args
        self.problems: list[str] = []
        for name in args:
            if name not in known:
                self.problems.append(unknown_field(name, known))

    def given(self, name: str) -> bool:
        return self._args.get(name) is not None

    def required(self, name: str, what: str, *, longest: int = MAX_NAME_LENGTH) -> str:
        if not self.given(name):
            self.problems.append(f"{name}: is required; {what}")
            return ""
        return self.line(name, longest=longest) or ""

    def line(self, name: str, *, longest: int = MAX_NAME_LENGTH) -> str | None:
        return self._text(name, text.line_problem(self._args.get(name), max_length=longest))

    def block(self, name: str, *, longest: int = MAX_BLOCK_LENGTH, shortest: int = 0) -> str | None:
        return self._text(name, text.block_problem(self._args.get(name), max_length=longest, min_length=shortest))

    def required_block(self, name: str, what: str, *, longest: int = MAX_BLOCK_LENGTH) -> str:
        if not self.given(name):
            self.problems.append(f"{name}: is required; {what}")
            return ""
        return self.block(name, longest=longest, shortest=1) or ""

    def _text(self, name: str, problem: str | None) -> str | None:
        if not self.given(name):
            return None
        if problem:
            self.problems.append(f"{name}: {problem}")
            return None
        return str(self._args[name]).strip()

    def names(self, name: str) -> tuple[str, ...]:
        """An array of names, each once."""
        raw = self._args.get(name)
        if raw is None:
            return ()
        if not isinstance(raw, list):
            self.problems.append(f"{name}: must be an array of slugs, got {text.json_type(raw)}")
            return ()
        if len(raw) > MAX_NAMES:
            self.problems.append(f"{name}: at most {MAX_NAMES} entries, got {len(raw)}")
            return ()
        found = []
        for index, each in enumerate(raw):
            if problem := text.line_problem(each, max_length=MAX_NAME_LENGTH):
                self.problems.append(f"{name}[{index}]: {problem}")
            else:
                found.append(each.strip())
        return tuple(found)

    def flag(self, name: str) -> bool:
        raw = self._args.get(name)
        if raw is not None and not isinstance(raw, bool):
            self.problems.append(f"{name}: must be true or false, got {text.json_type(raw)}")
        return raw is True

    def number(self, name: str, *, default: int, most: int) -> int:
        raw = self._args.get(name)
        if raw is None:
            return default
        if isinstance(raw, int) and not isinstance(raw, bool) and 1 <= raw <= most:
            return raw
        self.problems.append(f"{name}: must be a whole number from 1 to {most}, got {display_value(raw)}")
        return default

    def check(self, name: str) -> dict[str, Any] | None:
        return parse_check(self._args.get(name), name, self.problems)

    def choice(self, name: str, among: Mapping[str, Any]) -> Any:
        raw = self._args.get(name)
        if raw is None:
            return None
        if isinstance(raw, str) and raw.strip().lower() in among:
            return among[raw.strip().lower()]
        self.problems.append(f"{name}: must be one of {', '.join(among)}, got {display_value(raw)}")
        return None

    def done(self) -> None:
        if self.problems:
            raise InvalidInput(self.problems)


def parse_create(args: Mapping[str, Any]) -> tuple[str, NewMissionTodo]:
    """The mission's slug, and what is said of its new todo."""
    reader = _FieldReader(args, CREATE_FIELDS)
    mission = _mission(reader)
    new = NewMissionTodo(
        pillar_slug=reader.required("pillarSlug", "a pillar of the mission"),
        # A template may have one.
        title=(
            reader.line("title", longest=MAX_TITLE_LENGTH) or ""
            if reader.given("template")
            else reader.required("title", "say in a line what is to be done", longest=MAX_TITLE_LENGTH)
        ),
        description=reader.block("description") or "",
        justification=reader.block("justification") or "",
        completion_criteria=reader.block("completionCriteria") or "",
        deadline=reader.line("deadline"),
        priority=reader.choice("priority", PRIORITIES),
        assigned_agent=reader.line("assignedAgent"),
        target=reader.choice("targetStatus", TARGETS) or TodoStatus.PENDING,
        also_affects=reader.names("alsoAffects"),
        check=reader.check("check"),
        template=reader.line("template"),
        request_id=reader.line("requestId"),
    )
    reader.done()
    return mission, new


def parse_update(args: Mapping[str, Any]) -> TodoUpdate:
    reader = _FieldReader(args, UPDATE_FIELDS)
    mission, todo_id = _mission(reader), _todo(reader)
    action: TodoAction | None = reader.choice("action", UPDATES)
    if not reader.given("action"):
        reader.problems.append(f"action: is required; one of {', '.join(UPDATES)}")
    reason = reader.required_block("reason", "say why", longest=MAX_REASON_LENGTH)
    deadline, priority = reader.line("deadline"), reader.choice("priority", PRIORITIES)
    if action is not None:
        reader.problems += mismatched_fields(action, reader.given("deadline"), reader.given("priority"))
    reader.done()
    assert action is not None
    return TodoUpdate(mission, todo_id, action, reason, deadline, priority)


def mismatched_fields(action: TodoAction, deadline: bool, priority: bool) -> list[str]:
    """What an update lacks, or says that its action has no use for."""
    problems = []
    for name, given, of in (("deadline", deadline, TodoAction.EXTEND), ("priority", priority, TodoAction.REPRIORITIZE)):
        if action is of and not given:
            problems.append(f"{name}: is required to {action}")
        elif given and action is not of:
            problems.append(f"{name}: is only for {of}; leave it out to {action}")
    return problems


def parse_completion(args: Mapping[str, Any]) -> TodoCompletion:
    reader = _FieldReader(args, COMPLETE_FIELDS)
    completion = TodoCompletion(
        _mission(reader),
        _todo(reader),
        reader.required_block("outcome", "say what was accomplished"),
        reader.names("metricsImpacted"),
        reader.block("overrideReason", longest=MAX_REASON_LENGTH, shortest=1),
    )
    reader.done()
    return completion


def parse_query(args: Mapping[str, Any]) -> TodoQuery:
    reader = _FieldReader(args, LIST_FIELDS)
    query = TodoQuery(
        _mission(reader),
        reader.line("pillarSlug"),
        reader.choice("status", FILTERS),
        reader.flag("archived"),
        reader.number("limit", default=pagination.DEFAULT_LIMIT, most=pagination.MAX_LIMIT),
        reader.line("cursor", longest=pagination.MAX_CURSOR_LENGTH),
    )
    reader.done()
    return query


def parse_report(args: Mapping[str, Any]) -> OwnerReport:
    reader = _FieldReader(args, REPORT_FIELDS)
    report = OwnerReport(
        _mission(reader), _todo(reader), reader.required_block("result", "say what was done and found")
    )
    reader.done()
    return replace(report, fence=None if args.get("fence") is None else parse_fence(args["fence"]))


def _mission(reader: _FieldReader) -> str:
    return reader.required("missionSlug", "the mission that is meant")


def _todo(reader: _FieldReader) -> str:
    return reader.required("todoId", "a todo's id, as mission_todo_list gives it")


def check_mission(scope: MissionScope, slug: str) -> None:
    """Whoever is bound to a mission acts in no other."""
    if scope.mission_slug not in (None, slug):
        raise NotAllowed(f"You act in mission {scope.mission_slug!r} only, not in {text.excerpt(slug)!r}.")


def check_pillar(scope: MissionScope, slug: str) -> None:
    if scope.pillar_slug not in (None, slug):
        raise NotAllowed(f"You act in pillar {scope.pillar_slug!r} only, not in {text.excerpt(slug)!r}.")


def content_problems(new: NewMissionTodo) -> list[str]:
    """What cannot be kept of a new todo, whoever made the value."""
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
        for name, (value, longest) in lines.items()
        if value is not None and (problem := text.line_problem(value, max_length=longest))
    ]
    problems += [
        f"{name}: {problem}"
        for name, value in blocks.items()
        if (problem := text.block_problem(value, max_length=MAX_BLOCK_LENGTH))
    ]
    if new.target not in TARGETS.values():
        problems.append(f"targetStatus: must be one of {', '.join(TARGETS)}, got {display_value(new.target)}")
    if new.check is not None:
        parse_check(new.check, "check", problems)
    return problems


def parse_reason(raw: object) -> str:
    return _parse_block("reason", raw, MAX_REASON_LENGTH)


def parse_outcome(raw: object) -> str:
    return _parse_block("outcome", raw)


def parse_result(raw: object) -> str:
    return _parse_block("result", raw)


def _parse_block(field: str, raw: object, longest: int = MAX_BLOCK_LENGTH) -> str:
    if problem := text.block_problem(raw, max_length=longest, min_length=1):
        raise InvalidInput(f"{field}: {problem}")
    return str(raw).strip()


def parse_override(raw: object) -> str | None:
    if raw is None:
        return None
    if problem := text.block_problem(raw, max_length=MAX_REASON_LENGTH, min_length=1):
        raise InvalidInput(f"overrideReason: {problem}")
    return str(raw).strip()


def parse_check(raw: Any, where: str, problems: list[str]) -> dict[str, Any] | None:
    """A check by the name of one in mission.json, by a metric's level, or by a command."""
    if raw is None:
        return None
    found = len(problems)
    match raw:
        case {"name": name, **rest} if not rest:
            if problem := text.line_problem(name, max_length=MAX_NAME_LENGTH):
                problems.append(f"{where}.name: {problem}")
        case {"metric": metric, **rest} if len(rest) == 1 and rest.keys() <= {"atMost", "atLeast"}:
            if problem := text.line_problem(metric, max_length=MAX_NAME_LENGTH):
                problems.append(f"{where}.metric: {problem}")
            ((bound, level),) = rest.items()
            if not isinstance(level, int | float) or isinstance(level, bool) or not _finite(level):
                problems.append(f"{where}.{bound}: must be a number, got {display_value(level)}")
        case {"command": command, **rest} if not rest:
            _check_command(command, f"{where}.command", problems)
        case _:
            problems.append(
                f'{where}: must be {{"name": a check of the mission}} or {{"metric": its slug, "atMost" or "atLeast": '
                f"a number}}, got {text.json_type(raw)}"
            )
    return dict(raw) if len(problems) == found else None


def _finite(level: float) -> bool:
    try:
        return math.isfinite(level)
    except OverflowError:
        return False


def _check_command(command: Any, where: str, problems: list[str]) -> None:
    if not isinstance(command, list | tuple) or not 1 <= len(command) <= MAX_COMMAND_WORDS:
        problems.append(f"{where}: must be an array of 1 to {MAX_COMMAND_WORDS} words, the program first")
        return
    for index, word in enumerate(command):
        if problem := text.block_problem(word, max_length=MAX_REASON_LENGTH, min_length=0 if index else 1):
            problems.append(f"{where}[{index}]: {problem}")


def unknown_field(name: object, known: Collection[str]) -> str:
    """A field that there is not, and the one that may have been meant."""
    by_letters = {_letters(one): one for one in known}
    close = get_close_matches(_letters(str(name)[:MAX_NAME_LENGTH]), by_letters, n=1, cutoff=0.7)
    hint = f" Did you mean {by_letters[close[0]]}?" if close else f" There are: {', '.join(known)}."
    return f"{text.excerpt(str(name))}: there is no such field.{hint}"


def suggest_name(name: str, there: Iterable[str]) -> str:
    """What is nearest to a wrong name, and what there is."""
    there = list(there)
    close = get_close_matches(name[:MAX_NAME_LENGTH].lower(), there, n=1)
    told = ", ".join(there[:10]) + (", …" if len(there) > 10 else "")
    return (f" Did you mean {close[0]}?" if close else "") + f" There are: {told or 'none'}."


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def display_value(value: Any) -> str:
    match value:
        case str():
            return repr(text.excerpt(value))
        case bool() | None | list() | dict():
            return text.json_type(value)
        case int() if abs(value) > 10**15:
            return "a very large number"
    return text.excerpt(str(value))
