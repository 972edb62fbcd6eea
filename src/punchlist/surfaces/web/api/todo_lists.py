"""Todos of all missions, and one action on many todos."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.missions.todos import tool_arguments
from punchlist.missions.todos.bulk import MAX_BULK, BulkOutcome, change_todos
from punchlist.missions.todos.tools import change_json
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import Cursor, Limit, RequiredReason
from punchlist.surfaces.web.api.todos import TodoChangeShape, TodoShape
from punchlist.views.all_todos import read_all_todos


class AllTodosQuery(RequestModel):
    status: Literal["backlog", "pending", "in_progress", "completed", "cancelled", "active", "open", "all"] = "open"
    archived: Annotated[bool, Field(description="Include archived missions.")] = False
    limit: Limit = 100
    cursor: Cursor = None


class PlacedTodoShape(TodoShape):
    mission_slug: str


class AllTodosShape(ResponseModel):
    items: list[PlacedTodoShape]
    next_cursor: str | None = None


class BulkBody(RequestModel):
    action: Literal["promote", "demote", "start", "cancel"]
    ids: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=100)], ...], Field(max_length=MAX_BULK)]
    reason: RequiredReason


class BulkErrorShape(ResponseModel):
    code: str
    detail: str


class BulkItemShape(ResponseModel):
    id: str
    todo: TodoChangeShape | None
    error: BulkErrorShape | None


class BulkShape(ResponseModel):
    changed: int
    failed: int
    items: list[BulkItemShape]


def _list(call: ApiCall) -> Any:
    query = call.query
    statuses = tool_arguments.FILTERS[query.status]
    page = read_all_todos(
        call.services.store, statuses, archived=query.archived, limit=query.limit, cursor=query.cursor
    )
    return page.as_json()


def _bulk(call: ApiCall) -> Any:
    body = call.body
    outcomes = change_todos(
        call.services.mission_todos, call.scope(), call.path["slug"], body.action, body.ids, body.reason
    )
    changed = sum(1 for each in outcomes if each.change)
    return {"changed": changed, "failed": len(outcomes) - changed, "items": [_outcome(each) for each in outcomes]}


def _outcome(outcome: BulkOutcome) -> dict[str, Any]:
    error = outcome.error
    return {
        "id": outcome.todo_id,
        "todo": change_json(outcome.change) if outcome.change else None,
        "error": {"code": error.code, "detail": str(error)} if error else None,
    }


ENDPOINTS = [
    Endpoint(
        "GET", "/todos", "listAllTodos", "Todos of all missions, newest first.", _list, AllTodosShape, AllTodosQuery
    ),
    Endpoint(
        "POST", "/missions/{slug}/todos/bulk", "changeTodos",
        "Promote, demote, start or cancel several todos. Each succeeds or fails by itself.",
        _bulk, BulkShape, body=BulkBody,
    ),
]  # fmt: skip
