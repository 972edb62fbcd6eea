"""Parses the JSON arguments of the mission tools into keyword arguments of `MissionTodos`.

Every problem is reported with its field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from punchlist.claims.validation import parse_fence
from punchlist.errors import InvalidInput
from punchlist.kernel.text import block_problem, display_value, json_type, line_problem, raw_problem
from punchlist.missions.model import LinkKind, NewLink, NewMissionTodo
from punchlist.missions.todos import link_rules, pagination
from punchlist.missions.todos.lifecycle import ACTIVE, OPEN, TodoStatus
from punchlist.missions.todos.validation import (
    MAX_BLOCK_LENGTH,
    MAX_NAME_LENGTH,
    MAX_NAMES,
    MAX_REASON_LENGTH,
    MAX_TITLE_LENGTH,
    PRIORITIES,
    TARGETS,
    parse_check,
    unknown_field,
)

FILTERS: Final[dict[str, frozenset[TodoStatus]]] = {
    **{status.value: frozenset({status}) for status in TodoStatus},
    "active": ACTIVE,
    "open": OPEN,
    "all": frozenset(TodoStatus),
}


class FieldReader:
    """Reads fields and collects their problems; a field that is never read is unknown."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._args = args
        self._known: list[str] = []
        self.problems: list[str] = []

    def read(self, name: str) -> Any:
        self._known.append(name)
        return self._args.get(name)

    def given(self, name: str) -> bool:
        return self._args.get(name) is not None

    def line(self, name: str, *, max_length: int = MAX_NAME_LENGTH, required: str = "") -> str | None:
        """One line of text. `required` describes the value of a field that must be present."""
        return self._text(name, line_problem(self.read(name), max_length=max_length), required)

    def block(
        self, name: str, *, max_length: int = MAX_BLOCK_LENGTH, min_length: int = 0, required: str = ""
    ) -> str | None:
        """Text of several lines."""
        problem = block_problem(self.read(name), max_length=max_length, min_length=1 if required else min_length)
        return self._text(name, problem, required)

    def _text(self, name: str, problem: str | None, required: str) -> str | None:
        if not self.given(name):
            problem = f"is required; {required}" if required else None
        elif not problem:
            return str(self._args[name]).strip()
        if problem:
            self._reject(name, problem)
        return None

    def _reject(self, name: str, problem: str) -> None:
        self.problems.append(f"{name}: {problem}")

    def names(self, name: str) -> tuple[str, ...]:
        raw = self.read(name)
        if raw is None:
            return ()
        if not isinstance(raw, list) or len(raw) > MAX_NAMES:
            got = f"{len(raw)} entries" if isinstance(raw, list) else json_type(raw)
            self._reject(name, f"must be an array of at most {MAX_NAMES} slugs, got {got}")
            return ()
        for index, item in enumerate(raw):
            if problem := line_problem(item, max_length=MAX_NAME_LENGTH):
                self._reject(f"{name}[{index}]", problem)
        return tuple(item.strip() for item in raw if isinstance(item, str))

    def flag(self, name: str) -> bool:
        raw = self.read(name)
        if raw is not None and not isinstance(raw, bool):
            self._reject(name, f"must be true or false, got {json_type(raw)}")
        return raw is True

    def number(self, name: str, *, default: int, maximum: int, minimum: int = 1) -> int:
        raw = self.read(name)
        if raw is None:
            return default
        if isinstance(raw, int) and not isinstance(raw, bool) and minimum <= raw <= maximum:
            return raw
        self._reject(name, f"must be a whole number from {minimum} to {maximum}, got {display_value(raw)}")
        return default

    def check(self, name: str) -> dict[str, Any] | None:
        return parse_check(self.read(name), name, self.problems)

    def raw(self, name: str, *, max_length: int) -> str | None:
        """Text that is kept as it is."""
        value = self.read(name)
        return self._text(name, raw_problem(value, max_length=max_length), "") and str(value)

    def link_kind(self, name: str) -> tuple[LinkKind, bool] | None:
        raw = self.read(name)
        if raw is None:
            return None
        found = link_rules.parse_name(raw)
        if found is None:
            self._reject(name, f"must be one of {', '.join(link_rules.NAMES)}, got {display_value(raw)}")
        return found

    def links(self, name: str) -> tuple[NewLink, ...]:
        """Links of a new todo: an array of objects such as `{"blockedBy": id}`."""
        raw = self.read(name)
        if raw is None:
            return ()
        if not isinstance(raw, list) or len(raw) > link_rules.MAX_LINKS:
            self._reject(name, f"must be an array of at most {link_rules.MAX_LINKS} objects, got {json_type(raw)}")
            return ()
        found = [self._link(f"{name}[{index}]", item) for index, item in enumerate(raw)]
        return tuple(link for link in found if link is not None)

    def _link(self, where: str, item: Any) -> NewLink | None:
        kind = link_rules.parse_name(next(iter(item))) if isinstance(item, dict) and len(item) == 1 else None
        other = next(iter(item.values())) if kind else None
        if kind is None or line_problem(other, max_length=MAX_NAME_LENGTH):
            names = ", ".join(link_rules.NAMES)
            self._reject(where, f"must be an object with the id of a todo under one of {names}")
            return None
        return NewLink(kind[0], str(other).strip(), kind[1])

    def choice(self, name: str, options: Mapping[str, Any]) -> Any:
        raw = self.read(name)
        if raw is None:
            return None
        if isinstance(raw, str) and raw.strip().lower() in options:
            return options[raw.strip().lower()]
        self._reject(name, f"must be one of {', '.join(options)}, got {display_value(raw)}")
        return None

    def finish(self) -> None:
        unknown = [unknown_field(name, self._known) for name in self._args if name not in self._known]
        if problems := unknown + self.problems:
            raise InvalidInput(problems)


def parse_create(args: Mapping[str, Any]) -> tuple[str, NewMissionTodo]:
    """The mission's slug and the new todo."""
    reader = FieldReader(args)
    mission_slug = read_mission(reader)
    new = NewMissionTodo(
        pillar_slug=reader.line("pillarSlug", required="a pillar of the mission") or "",
        title=reader.line(
            "title",
            max_length=MAX_TITLE_LENGTH,
            # A template may provide the title.
            required="" if reader.given("template") else "say in one line what to do",
        )
        or "",
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
        parent_id=reader.line("parentId"),
        labels=reader.names("labels"),
        links=reader.links("links"),
    )
    reader.finish()
    return mission_slug, new


def parse_completion(args: Mapping[str, Any]) -> dict[str, Any]:
    reader = FieldReader(args)
    values = {
        "mission_slug": read_mission(reader),
        "todo_id": read_todo(reader),
        "outcome": reader.block("outcome", required="say what was accomplished"),
        "metrics_impacted": reader.names("metricsImpacted"),
        "override_reason": reader.block("overrideReason", max_length=MAX_REASON_LENGTH, min_length=1),
    }
    reader.finish()
    return values


def parse_query(args: Mapping[str, Any]) -> dict[str, Any]:
    reader = FieldReader(args)
    values = {
        "mission_slug": read_mission(reader),
        "pillar": reader.line("pillarSlug"),
        "status": reader.choice("status", FILTERS),
        "archived": reader.flag("archived"),
        "label": reader.line("label"),
        "limit": reader.number("limit", default=pagination.DEFAULT_LIMIT, maximum=pagination.MAX_LIMIT),
        "cursor": reader.line("cursor", max_length=pagination.MAX_CURSOR_LENGTH),
    }
    reader.finish()
    return values


MAX_RECOMMENDATIONS: Final = 100
"""Of one page."""


def parse_recommendation(args: Mapping[str, Any]) -> dict[str, Any]:
    reader = FieldReader(args)
    values = {
        "mission_slug": read_mission(reader),
        "text": reader.block("text", max_length=MAX_REASON_LENGTH, required="say what you recommend and why"),
        "todo_id": reader.line("todoId"),
    }
    reader.finish()
    return values


def parse_recommendation_query(args: Mapping[str, Any]) -> dict[str, Any]:
    reader = FieldReader(args)
    values = {
        "mission_slug": read_mission(reader),
        "after": reader.number("after", default=0, minimum=0, maximum=10**9),
        "limit": reader.number("limit", default=MAX_RECOMMENDATIONS, maximum=MAX_RECOMMENDATIONS),
        "decided": reader.flag("decided"),
    }
    reader.finish()
    return values


def parse_decision(args: Mapping[str, Any], decisions: Mapping[str, str]) -> dict[str, Any]:
    reader = FieldReader(args)
    values = {
        "mission_slug": read_mission(reader),
        "number": reader.number("number", default=0, maximum=10**9),
        "decision": reader.choice("decision", decisions),
        "reason": reader.block("reason", max_length=MAX_REASON_LENGTH, required="say why"),
    }
    for name in ("number", "decision"):
        if not reader.given(name):
            reader.problems.append(f"{name}: is required")
    reader.finish()
    return values


def parse_report(args: Mapping[str, Any]) -> dict[str, Any]:
    reader = FieldReader(args)
    values = {
        "mission_slug": read_mission(reader),
        "todo_id": read_todo(reader),
        "result": reader.block("result", required="say what was done and found"),
    }
    fence = reader.read("fence")
    reader.finish()
    return {**values, "fence": None if fence is None else parse_fence(fence)}


def read_mission(reader: FieldReader) -> str:
    return reader.line("missionSlug", required="the slug of a mission") or ""


def read_todo(reader: FieldReader) -> str:
    return reader.line("todoId", required="an id from mission_todo_list") or ""
