"""The tools of the Lead and the owners: mission_todo_create, _update, _complete, _list and _report (M5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from punchlist.kernel.events import Role
from punchlist.kernel.tool import Arguments, ListToolSpec, Schema, ToolResult, json_result, schema
from punchlist.missions.model import TEAM, MissionScope, MissionTodo, TodoChange
from punchlist.missions.todos import pagination, tool_arguments, tool_updates
from punchlist.missions.todos import validation as todo_validation
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus
from punchlist.verification.model import Mark

if TYPE_CHECKING:
    from punchlist.missions.todos.pagination import TodoPage
    from punchlist.missions.todos.service import MissionTodos

REVIEWERS: Final = frozenset({Role.PERSON, Role.LEAD})
"""Roles that see `mission_todo_complete`; it is hidden from all others."""

_STRING: Final[Schema] = {"type": "string"}
_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_STRINGS: Final[Schema] = {"type": "array", "items": _STRING}
_STRING_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_PRIORITY: Final[Schema] = {"type": "string", "enum": [priority.value for priority in TodoPriority]}

_CHECK: Final[Schema] = {
    "type": "object",
    "description": 'Must pass before completion: {"name": a check of the mission}, {"metric": slug, "atMost" or '
    '"atLeast": number} or {"file": path, "contains": text}',
}
_LINKS: Final = "blocks|blockedBy|duplicates|followsFrom"

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
    **dict.fromkeys(("pillarSlug", "endedAt", "version", "parentId", "unarchivedAt"), _STRING),
    **dict.fromkeys(("alsoAffects", "labels", "blockedBy"), _STRINGS),
    "subItems": {"type": "object"},
    **{name: {"type": "object"} for name in ("check", "checkResult")},
    "overrideReason": _STRING,
    "mark": _STRING,
    **{name: {"type": "boolean"} for name in ("overdue", "escalated")},
}
_TODO: Final[Schema] = schema(list(_TODO_FIELDS), **_TODO_FIELDS, **_OPTIONAL_FIELDS)
_CHANGE: Final[Schema] = schema(
    list(_TODO_FIELDS),
    **_TODO_FIELDS,
    **_OPTIONAL_FIELDS,
    warning=_STRING,
    runId=_STRING,
    other={"type": "object"},
)
_SUMMARY: Final = ("active", "activeTodoLimit", "backlog", "backlogTodoLimit")


class MissionCheckRunner(Protocol):
    def run(self, scope: MissionScope, todo: MissionTodo) -> object:
        """Run a todo's check and store the result."""


def todo_json(
    todo: MissionTodo, pillar_slug: str | None = None, *, escalated: bool = False, page: TodoPage | None = None
) -> dict[str, Any]:
    """A todo as JSON (M5): all fields of its schema, and the optional fields that have a value."""
    optional = {
        "pillarSlug": pillar_slug,
        "endedAt": todo.ended_at,
        "version": todo.version,
        "parentId": todo.parent_id,
        "unarchivedAt": todo.unarchived_at,
        "alsoAffects": json.loads(todo.also_affects),
        "labels": list(todo.label_names),
        "blockedBy": list(page.blocked_by.get(todo.id, ())) if page else None,
        "subItems": page.sub_items[todo.id].as_json() if page and todo.id in page.sub_items else None,
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
    optional = {
        "warning": change.warning,
        "runId": change.run_id,
        "other": todo_json(change.other) if change.other else None,
    }
    return {**todo_json(change.todo), **{name: value for name, value in optional.items() if value}}


def list_json(page: TodoPage) -> dict[str, Any]:
    return {
        "items": [
            todo_json(todo, page.pillars.get(todo.pillar_id), escalated=todo.id in page.escalated, page=page)
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
        return json_result(change_json(todos().create(scope, mission_slug, new)))

    return ListToolSpec(
        name="mission_todo_create",
        title="Add a mission todo",
        description=(
            "Add a todo to a pillar of a mission. If the active list is full, it goes to the backlog, with a warning; "
            "a full backlog refuses it."
        ),
        input_schema=schema(
            ["missionSlug", "pillarSlug", "title"],
            missionSlug=_STRING,
            pillarSlug=_STRING,
            title={**_TEXT, "maxLength": todo_validation.MAX_TITLE_LENGTH, "description": "Concise, verb first"},
            description={"type": "string", "description": "What needs to be done"},
            justification={"type": "string", "description": "Why this, why now: metrics, strategy"},
            completionCriteria={"type": "string", "description": "Measurable conditions for done"},
            deadline={"type": ["string", "null"], "description": "2026-02-21, or a time with a time zone"},
            priority=_PRIORITY,
            assignedAgent=_STRING_OR_NULL,
            targetStatus={"type": "string", "enum": list(todo_validation.TARGETS), "description": "Default: pending"},
            alsoAffects={**_STRINGS, "description": "Slugs of other pillars"},
            check=_CHECK,
            parentId={"type": "string", "description": "The todo that this is a part of"},
            labels=_STRINGS,
            links={"type": "array", "items": {"type": "object"}, "description": f"Such as {{{_LINKS}: id}}"},
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
        return json_result(change_json(tool_updates.apply_update(todos(), scope, tool_updates.parse_update(args))))

    return ListToolSpec(
        name="mission_todo_update",
        title="Change a mission todo",
        description=(
            "promote (backlog to pending), demote (back), start (the pillar owner begins to work), cancel, extend "
            "(deadline), reprioritize (priority), edit (the fields given), swap (with otherId in the backlog), link or "
            "unlink (otherId), label (-x removes x), comment (text), feedback (text: back to its owner, which goes on; "
            "resume: with the reason as text), attach (path, or name and text), detach (name), unarchive. Owners may "
            "cancel, comment and attach; other changes of theirs become recommendations to the Lead."
        ),
        input_schema=schema(
            ["missionSlug", "todoId", "action"],
            missionSlug=_STRING,
            todoId=_STRING,
            action={"type": "string", "enum": list(tool_updates.ACTIONS)},
            reason={**_TEXT, "maxLength": todo_validation.MAX_REASON_LENGTH, "description": "Why; kept"},
            deadline=_STRING,
            priority=_PRIORITY,
            **dict.fromkeys(("title", "description", "justification", "completionCriteria"), _STRING),
            alsoAffects=_STRINGS,
            check={"type": "object"},
            labels=_STRINGS,
            parentId=_STRING,
            clear={**_STRINGS, "description": "Fields to empty"},
            version={"type": "string", "description": "Edit only this version"},
            otherId=_STRING,
            link={"type": "string", "description": _LINKS},
            text=_STRING,
            path=_STRING,
            name=_STRING,
        ),
        output_schema=_CHANGE,
        roles=TEAM,
        read_only=False,
        run=run,
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
        return json_result(change_json(todos().complete(scope, **values)))

    return ListToolSpec(
        name="mission_todo_complete",
        title="Complete a mission todo",
        description=(
            "Complete a todo in progress after you have reviewed the result. Its check, if any, must have passed since "
            "the last work, unless overrideReason says why not."
        ),
        input_schema=schema(
            ["missionSlug", "todoId", "outcome"],
            missionSlug=_STRING,
            todoId=_STRING,
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
        return json_result(list_json(todos().list(**query)))

    return ListToolSpec(
        name="mission_todo_list",
        title="Read a mission's todos",
        description=(
            "The todos of a mission, open ones first, then recently ended ones, and how many slots are taken."
        ),
        input_schema=schema(
            ["missionSlug"],
            missionSlug=_STRING,
            pillarSlug=_STRING,
            status={"type": "string", "enum": list(tool_arguments.FILTERS)},
            archived={"type": "boolean", "description": "Include archived todos"},
            label=_STRING,
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
        return json_result(change_json(todos().report(scope, **tool_arguments.parse_report(args))))

    return ListToolSpec(
        name="mission_todo_report",
        title="Report on a mission todo",
        description="Report the result of the todo you work on to the Lead, with evidence that its criteria are met.",
        input_schema=schema(
            ["missionSlug", "todoId", "result"],
            missionSlug=_STRING,
            todoId=_STRING,
            result=_TEXT,
            fence={"type": "integer", "description": "The fence of your claim, if you claimed the todo"},
        ),
        output_schema=_CHANGE,
        roles=frozenset({Role.OWNER}),
        read_only=False,
        run=run,
    )
