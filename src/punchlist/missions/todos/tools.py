"""The tools of the Lead and the owners: mission_todo_create, _update, _complete, _list and _report (M5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from punchlist.kernel.actors import Role
from punchlist.kernel.tool import Arguments, ListToolSpec, Schema, ToolResult, schema
from punchlist.missions.model import MissionScope, MissionTodo, TodoChange
from punchlist.missions.todos import pagination, tool_arguments
from punchlist.missions.todos import validation as todo_validation
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus
from punchlist.verification.model import Mark

if TYPE_CHECKING:
    from punchlist.missions.todos.pagination import TodoPage
    from punchlist.missions.todos.service import MissionTodos

TEAM: Final = frozenset({Role.PERSON, Role.LEAD, Role.OWNER})
REVIEWERS: Final = frozenset({Role.PERSON, Role.LEAD})
"""Roles that see `mission_todo_complete`; it is hidden from all others."""

_STRING: Final[Schema] = {"type": "string"}
_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_STRINGS: Final[Schema] = {"type": "array", "items": _STRING}
_STRING_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_PRIORITY: Final[Schema] = {"type": "string", "enum": [priority.value for priority in TodoPriority]}

# The first fields of `MissionTodo`, in the same order.
_TODO_FIELDS: Final[dict[str, Schema]] = {
    **dict.fromkeys(("id", "pillarId", "missionId", "title"), _STRING),
    **dict.fromkeys(("description", "justification", "completionCriteria"), _STRING),
    "deadline": _STRING_OR_NULL,
    "status": {"type": "string", "enum": [status.value for status in TodoStatus]},
    "priority": _PRIORITY,
    "assignedAgent": _STRING_OR_NULL,
    "outcome": _STRING_OR_NULL,
    "createdAt": _STRING,
    "startedAt": _STRING_OR_NULL,
    "completedAt": _STRING_OR_NULL,
}
# Present only when they have a value.
_OPTIONAL_FIELDS: Final[dict[str, Schema]] = {
    **dict.fromkeys(("pillarSlug", "endedAt"), _STRING),
    "alsoAffects": _STRINGS,
    **{name: {"type": "object"} for name in ("check", "checkResult")},
    "overrideReason": _STRING,
    "mark": _STRING,
    **{name: {"type": "boolean"} for name in ("overdue", "escalated")},
}
_TODO: Final[Schema] = schema(list(_TODO_FIELDS), **_TODO_FIELDS, **_OPTIONAL_FIELDS)
_CHANGE: Final[Schema] = schema(list(_TODO_FIELDS), **_TODO_FIELDS, **_OPTIONAL_FIELDS, warning=_STRING, runId=_STRING)
_SUMMARY: Final = ("active", "activeTodoLimit", "backlog", "backlogTodoLimit")


class MissionCheckRunner(Protocol):
    def run(self, scope: MissionScope, todo: MissionTodo) -> object:
        """Run a todo's check and store the result."""


def todo_json(todo: MissionTodo, pillar_slug: str | None = None, *, escalated: bool = False) -> dict[str, Any]:
    """A todo as JSON (M5): all fields of its schema, and the optional fields that have a value."""
    optional = {
        "pillarSlug": pillar_slug,
        "endedAt": todo.ended_at,
        "alsoAffects": json.loads(todo.also_affects),
        "check": todo.completion_check and json.loads(todo.completion_check),
        "checkResult": todo.check_result and json.loads(todo.check_result),
        "overrideReason": todo.override_reason,
        "overdue": todo.overdue_at is not None and todo.ended_at is None,
        "escalated": escalated,
        # Only the Lead or a person completes a mission todo, which is the acceptance (V4).
        "mark": Mark.ACCEPTED.value if todo.status is TodoStatus.COMPLETED else None,
    }
    return {
        **dict(zip(_TODO_FIELDS, todo, strict=False)),
        "status": todo.status.value,
        "priority": todo.priority.value,
        **{name: value for name, value in optional.items() if value},
    }


def change_json(change: TodoChange) -> dict[str, Any]:
    optional = {"warning": change.warning, "runId": change.run_id}
    return {**todo_json(change.todo), **{name: value for name, value in optional.items() if value}}


def list_json(page: TodoPage) -> dict[str, Any]:
    return {
        "items": [
            todo_json(todo, page.pillars.get(todo.pillar_id), escalated=todo.id in page.escalated)
            for todo in page.items
        ],
        "summary": page.capacity.as_json(),
        **({"nextCursor": page.cursor} if page.cursor else {}),
    }


def mission_tools(
    todos: Callable[[], MissionTodos], checks: Callable[[], MissionCheckRunner] | None = None
) -> list[ListToolSpec[MissionScope]]:
    """The tools. Services are created when a tool is called, so that listing the tools is cheap."""
    return [_create(todos), _update(todos), _complete(todos, checks), _list(todos), _report(todos)]


def _create(todos: Callable[[], MissionTodos]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        mission_slug, new = tool_arguments.parse_create(args)
        return _result(change_json(todos().create(scope, mission_slug, new)))

    return ListToolSpec(
        name="mission_todo_create",
        title="Add a mission todo",
        description=(
            "Add a todo to a pillar of a mission. Slots are scarce: when the active list is full, the todo goes to the "
            "backlog, with a warning; when the backlog is full too, the call is refused."
        ),
        input_schema=schema(
            ["missionSlug", "pillarSlug", "title"],
            missionSlug=_TEXT,
            pillarSlug=_TEXT,
            title={**_TEXT, "maxLength": todo_validation.MAX_TITLE_LENGTH, "description": "Concise, verb first"},
            description={"type": "string", "description": "What needs to be done"},
            justification={"type": "string", "description": "Why this, why now: metrics, strategy"},
            completionCriteria={"type": "string", "description": "Measurable conditions for done"},
            deadline={"type": ["string", "null"], "description": "2026-02-21, or a time with a time zone"},
            priority=_PRIORITY,
            assignedAgent=_STRING_OR_NULL,
            targetStatus={"type": "string", "enum": list(todo_validation.TARGETS), "description": "Default: pending"},
            alsoAffects={**_STRINGS, "description": "Slugs of other pillars"},
            check={
                "type": "object",
                "description": 'Must pass before completion: {"name": a check of the mission} or {"metric": slug, '
                '"atMost" or "atLeast": number}',
            },
            template={"type": "string", "description": "Slug of a template that fills empty fields"},
            requestId={"type": "string", "description": "A repeated id does not create a second todo"},
        ),
        output_schema=_CHANGE,
        roles=TEAM,
        read_only=False,
        run=run,
        idempotent=True,
        request_field="requestId",
    )


def _update(todos: Callable[[], MissionTodos]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        return _result(change_json(todos().update(scope, **tool_arguments.parse_update(args))))

    return ListToolSpec(
        name="mission_todo_update",
        title="Move a mission todo",
        description=(
            "promote (backlog to pending), demote (back), start (the pillar owner begins to work), cancel, extend (new "
            "deadline), reprioritize (new priority), or resume (continue work in progress that no run does any more; "
            "the owner reads the reason) a todo. Owners may only cancel; their other calls are passed "
            "to the Lead as recommendations."
        ),
        input_schema=schema(
            ["missionSlug", "todoId", "action", "reason"],
            missionSlug=_TEXT,
            todoId=_TEXT,
            action={"type": "string", "enum": list(todo_validation.UPDATES)},
            reason={**_TEXT, "maxLength": todo_validation.MAX_REASON_LENGTH},
            deadline={"type": "string", "description": "For extend"},
            priority={**_PRIORITY, "description": "For reprioritize"},
        ),
        output_schema=_CHANGE,
        roles=TEAM,
        read_only=False,
        run=run,
        idempotent=True,
    )


def _complete(
    todos: Callable[[], MissionTodos], checks: Callable[[], MissionCheckRunner] | None
) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        values = tool_arguments.parse_completion(args)
        if checks is not None and values["override_reason"] is None:
            due = todos().todo_needing_check(scope, values["mission_slug"], values["todo_id"])
            if due is not None:
                checks().run(scope, due)
        return _result(change_json(todos().complete(scope, **values)))

    return ListToolSpec(
        name="mission_todo_complete",
        title="Complete a mission todo",
        description=(
            "Complete a todo in progress after you have reviewed the result. Its check, if any, must have passed since "
            "the last work, unless overrideReason says why not."
        ),
        input_schema=schema(
            ["missionSlug", "todoId", "outcome"],
            missionSlug=_TEXT,
            todoId=_TEXT,
            outcome={**_TEXT, "description": "What was accomplished"},
            metricsImpacted={**_STRINGS, "description": "Slugs of metrics to collect again"},
            overrideReason=_TEXT,
        ),
        output_schema=_CHANGE,
        roles=REVIEWERS,
        read_only=False,
        run=run,
        idempotent=True,
    )


def _list(todos: Callable[[], MissionTodos]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        query = tool_arguments.parse_query(args)
        todo_validation.check_mission(scope, query["mission_slug"])
        return _result(list_json(todos().list(**query)))

    return ListToolSpec(
        name="mission_todo_list",
        title="Read a mission's todos",
        description=(
            "The todos of a mission, open ones first, then recently ended ones, and how many slots are taken."
        ),
        input_schema=schema(
            ["missionSlug"],
            missionSlug=_TEXT,
            pillarSlug=_STRING,
            status={"type": "string", "enum": list(tool_arguments.FILTERS)},
            archived={"type": "boolean", "description": "Include archived todos"},
            limit={"type": "integer", "minimum": 1, "maximum": pagination.MAX_LIMIT},
            cursor={"type": "string", "description": "nextCursor of the previous page"},
        ),
        output_schema=schema(
            ["items", "summary"],
            items={"type": "array", "items": _TODO},
            summary=schema(_SUMMARY, **{name: {"type": "integer"} for name in _SUMMARY}),
            nextCursor=_STRING,
        ),
        roles=TEAM | {Role.VIEWER},
        read_only=True,
        run=run,
        idempotent=True,
    )


def _report(todos: Callable[[], MissionTodos]) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        return _result(change_json(todos().report(scope, **tool_arguments.parse_report(args))))

    return ListToolSpec(
        name="mission_todo_report",
        title="Report on a mission todo",
        description="Report the result of the todo you work on to the Lead, with evidence that its criteria are met.",
        input_schema=schema(
            ["missionSlug", "todoId", "result"],
            missionSlug=_TEXT,
            todoId=_TEXT,
            result=_TEXT,
            fence={"type": "integer", "description": "The fence of your claim, if you claimed the todo"},
        ),
        output_schema=_CHANGE,
        roles=frozenset({Role.OWNER}),
        read_only=False,
        run=run,
    )


def _result(data: dict[str, Any]) -> ToolResult:
    return ToolResult(json.dumps(data, ensure_ascii=False), data)
