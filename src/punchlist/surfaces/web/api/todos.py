"""The todos of missions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from punchlist.errors import NotFound
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import MissionTodo, TodoChange
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos import tool_arguments
from punchlist.missions.todos.lifecycle import TodoPriority, TodoStatus
from punchlist.missions.todos.tool_updates import apply_update, parse_update
from punchlist.missions.todos.tools import change_json, list_json
from punchlist.missions.todos.validation import CHECK_SCHEMA
from punchlist.storage.store import Transaction
from punchlist.surfaces.web.api.dispatch import version_of
from punchlist.surfaces.web.api.endpoint import ApiCall, ApiReply, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import (
    CapacityShape,
    Cursor,
    JsonObject,
    Limit,
    RequiredReason,
    RequiredReasonBody,
    Text,
)
from punchlist.surfaces.web.api.work_shapes import (
    CallShape,
    ChangeShape,
    ChatMessageShape,
    MessageShape,
    QuestionShape,
    RunShape,
    TokensShape,
)
from punchlist.verification.model import Mark
from punchlist.views.todo_detail import detail_json, read_detail
from punchlist.views.todo_evidence import read_todo_evidence
from punchlist.views.todo_history import read_history
from punchlist.views.todo_transcript import read_todo_transcript

Line = Annotated[str, Field(min_length=1, max_length=200)]
Block = Annotated[str, Field(max_length=20_000)]
Slugs = Annotated[tuple[Line, ...], Field(max_length=50)]


TodoCheck = Annotated[JsonObject, WithJsonSchema(CHECK_SCHEMA)]


class CheckResultShape(ResponseModel):
    passed: bool
    detail: str
    at: str


class SubItemsShape(ResponseModel):
    total: int
    completed: int
    cancelled: int


class TodoShape(ResponseModel):
    id: str
    mission_id: str
    pillar_id: str
    pillar_slug: str | None = None
    title: str
    description: str
    justification: str
    completion_criteria: str
    status: TodoStatus
    priority: TodoPriority
    deadline: str | None
    outcome: str | None
    created_at: str
    started_at: str | None
    completed_at: str | None
    ended_at: str | None = None
    assigned_agent: str | None
    version: str
    parent_id: str | None = None
    unarchived_at: str | None = None
    also_affects: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    blocked_by: Annotated[tuple[str, ...], Field(description="Ids of open todos.")] = ()
    sub_items: SubItemsShape | None = None
    check: Annotated[TodoCheck | None, Field(description="What must pass before completion.")] = None
    check_result: CheckResultShape | None = None
    override_reason: Annotated[str | None, Field(description="Why it was completed without its check.")] = None
    overdue: bool = False
    escalated: bool = False
    mark: Mark | None = None


class TodoChangeShape(TodoShape):
    other: Annotated[TodoShape | None, Field(description="What it was exchanged with.")] = None
    warning: str | None = None
    run_id: str | None = None


class TodoListShape(ResponseModel):
    items: list[TodoShape]
    summary: CapacityShape
    next_cursor: str | None = None


class ClaimShape(ResponseModel):
    holder: str
    fence: int
    until: str


class CostsShape(ResponseModel):
    runs: int
    usage: TokensShape
    cost: Annotated[float, Field(description="In dollars.")]
    seconds: float
    tool_calls: int
    evidence: list[CallShape]
    evidence_cursor: Annotated[str | None, Field(description="For getTodoEvidence: the calls before these.")] = None


class TodoReferenceShape(ResponseModel):
    id: str
    title: str
    status: TodoStatus


class LinkedTodoShape(TodoReferenceShape):
    kind: Annotated[str, Field(description="Such as blocks, or blockedBy.")]


class CommentShape(ResponseModel):
    id: str
    author: str
    content: str
    created_at: str


class FileShape(ResponseModel):
    name: str
    content: Annotated[str | None, Field(description="null for a file of the workspace.")]
    created_by: str
    created_at: str


class TodoDetailShape(TodoShape):
    mission_slug: str
    parent: TodoReferenceShape | None = None
    children: tuple[TodoReferenceShape, ...] = ()
    links: tuple[LinkedTodoShape, ...] = ()
    comments: tuple[CommentShape, ...] = ()
    files: tuple[FileShape, ...] = ()
    conversation_id: str
    claim: ClaimShape | None
    questions: list[QuestionShape]
    runs: list[RunShape]
    costs: CostsShape
    history: list[ChangeShape]
    messages: list[MessageShape]


class TodoQuery(RequestModel):
    pillar: Annotated[Line | None, Field(description="The slug of a pillar.")] = None
    status: Literal["backlog", "pending", "in_progress", "completed", "cancelled", "active", "open", "all"] | None = (
        None
    )
    archived: bool = False
    limit: Limit = 100
    cursor: Cursor = None


class NewTodoBody(RequestModel):
    pillar_slug: Line
    title: Annotated[Line | None, Field(description="Required without a template.")] = None
    description: Block = ""
    justification: Block = ""
    completion_criteria: Block = ""
    deadline: Annotated[Line | None, Field(description="2026-02-21, or a time with a time zone")] = None
    priority: TodoPriority | None = None
    assigned_agent: Line | None = None
    target_status: Literal["pending", "backlog"] | None = None
    also_affects: Slugs = ()
    check: Annotated[TodoCheck | None, Field(description="What must pass before completion.")] = None
    template: Line | None = None


class ExtendBody(RequestModel):
    deadline: Line
    reason: RequiredReason


class ReprioritizeBody(RequestModel):
    priority: TodoPriority
    reason: RequiredReason


class CompleteBody(RequestModel):
    outcome: Text
    metrics_impacted: Slugs = ()
    override_reason: Annotated[RequiredReason | None, Field(description="Complete it although its check fails.")] = None


class ReportBody(RequestModel):
    result: Text
    fence: int | None = None


class EditTodoBody(RequestModel):
    """The fields to change; `clear` names fields to empty."""

    reason: RequiredReason
    title: Line | None = None
    description: Block | None = None
    justification: Block | None = None
    completion_criteria: Block | None = None
    deadline: Line | None = None
    priority: TodoPriority | None = None
    also_affects: Slugs | None = None
    check: TodoCheck | None = None
    labels: Slugs | None = None
    parent_id: Line | None = None
    clear: Slugs | None = None


class SwapBody(RequestModel):
    other_id: Annotated[Line, Field(description="A todo of the other list.")]
    reason: RequiredReason


class LinkBody(RequestModel):
    link: Annotated[Line, Field(description="Such as blocks, blocked_by, relates_to.")]
    other_id: Line
    reason: RequiredReason


class LabelBody(RequestModel):
    labels: Annotated[Slugs, Field(min_length=1, description="A label with a dash before it is removed.")]
    reason: RequiredReason


class TextBody(RequestModel):
    text: Text


class HistoryQuery(RequestModel):
    after: Annotated[int, Field(ge=0, le=2**31 - 1, description="The version of the last entry before.")] = 0
    limit: Limit = 100


class HistoryShape(ResponseModel):
    items: list[ChangeShape]


class WorkQuery(RequestModel):
    limit: Limit = 100
    cursor: Cursor = None


class EvidenceShape(ResponseModel):
    items: list[CallShape]
    next_cursor: str | None = None


class TodoTranscriptShape(ResponseModel):
    items: list[ChatMessageShape]
    next_cursor: str | None = None


def todo_version(call: ApiCall, tx: Transaction) -> str:
    """Locks the mission of the todo."""
    todo = _find(tx, call.path["id"])
    mission_repository.lock_mission(tx, todo.mission_id)
    return _version(_find(tx, todo.id))


def _find(tx: Transaction, id: str) -> MissionTodo:
    todo = todo_repository.find(tx, id)
    if todo is None:
        raise NotFound(f"There is no mission todo {excerpt(id)!r}.")
    return todo


def _version(todo: MissionTodo) -> str:
    return version_of(*todo)


def _identify(call: ApiCall) -> dict[str, str]:
    with call.services.store.read() as tx:
        todo = _find(tx, call.path["id"])
        mission = mission_repository.mission(tx, todo.mission_id)
        assert mission is not None
        return {"missionSlug": mission.slug, "todoId": todo.id}


def _given(call: ApiCall) -> dict[str, Any]:
    given: dict[str, Any] = call.body.model_dump(mode="json", by_alias=True, exclude_none=True)
    return given


def _changed(change: TodoChange, status: int = 200) -> ApiReply:
    return ApiReply(change_json(change), status, _version(change.todo))


def _list(call: ApiCall) -> Any:
    query = call.query
    page = call.services.mission_todos.list(
        call.path["slug"],
        pillar=query.pillar,
        status=tool_arguments.FILTERS[query.status] if query.status else None,
        archived=query.archived,
        limit=query.limit,
        cursor=query.cursor,
    )
    return list_json(page)


def _create(call: ApiCall) -> ApiReply:
    given = {name: value for name, value in _given(call).items() if value not in ("", [])}
    slug, new = tool_arguments.parse_create({"missionSlug": call.path["slug"], **given})
    return _changed(call.services.mission_todos.create(call.scope(), slug, new, reason="created over HTTP"), 201)


def _show(call: ApiCall) -> ApiReply:
    detail = read_detail(call.services.store, call.path["id"])
    return ApiReply(detail_json(detail), etag=_version(detail.todo))


def _history(call: ApiCall) -> Any:
    with call.services.store.read() as tx:
        todo = _find(tx, call.path["id"])
    found = read_history(call.services.store, todo, after=call.query.after, limit=call.query.limit)
    return {"items": [entry.as_json() for entry in found]}


def _evidence(call: ApiCall) -> Any:
    with call.services.store.read() as tx:
        todo = _find(tx, call.path["id"])
    query = call.query
    return read_todo_evidence(call.services.store, todo.id, cursor=query.cursor, limit=query.limit).as_json()


def _transcript(call: ApiCall) -> Any:
    with call.services.store.read() as tx:
        todo = _find(tx, call.path["id"])
    query = call.query
    return read_todo_transcript(call.services.store, todo.id, cursor=query.cursor, limit=query.limit).as_json()


def _step(action: str) -> Callable[[ApiCall], ApiReply]:
    def change(call: ApiCall) -> ApiReply:
        request = parse_update({**_identify(call), **_given(call), "action": action})
        return _changed(apply_update(call.services.mission_todos, call.scope(), request))

    return change


def _completion(call: ApiCall) -> dict[str, Any]:
    return tool_arguments.parse_completion({**_identify(call), **_given(call)})


def _run_check(call: ApiCall) -> None:
    """Run the check of the todo, if it has not passed since the last work; it can take minutes."""
    request, services = _completion(call), call.services
    if request["override_reason"] is not None:
        return
    due = services.mission_todos.todo_needing_check(call.scope(), request["mission_slug"], request["todo_id"])
    if due is not None:
        services.checks.run(call.scope(), due)


def _complete(call: ApiCall) -> ApiReply:
    return _changed(call.services.mission_todos.complete(call.scope(), **_completion(call)))


def _report(call: ApiCall) -> ApiReply:
    request = tool_arguments.parse_report({**_identify(call), **_given(call)})
    return _changed(call.services.mission_todos.report(call.scope(), **request))


def _action(action: str, summary: str, body: type[RequestModel] = RequiredReasonBody) -> Endpoint:
    return Endpoint(
        "POST", f"/todos/{{id}}/{action}", f"{action}Todo", summary, _step(action), TodoChangeShape, body=body,
        etag=todo_version,
    )  # fmt: skip


ENDPOINTS = [
    Endpoint("GET", "/missions/{slug}/todos", "listTodos", "Open todos first.", _list, TodoListShape, TodoQuery),
    Endpoint(
        "POST", "/missions/{slug}/todos", "createTodo",
        "Create a todo: active while there is room, else in the backlog.",
        _create, TodoChangeShape, body=NewTodoBody, status=201,
    ),
    Endpoint(
        "GET", "/todos/{id}", "getTodo", "A todo with history, runs, evidence, questions and cost.",
        _show, TodoDetailShape,
    ),
    Endpoint("GET", "/todos/{id}/history", "getTodoHistory", "Its changes.", _history, HistoryShape, HistoryQuery),
    Endpoint(
        "GET", "/todos/{id}/evidence", "getTodoEvidence", "Its tool calls, newest page first.",
        _evidence, EvidenceShape, WorkQuery,
    ),
    Endpoint(
        "GET", "/todos/{id}/transcript", "getTodoTranscript", "Messages of all rounds of work on a todo, by time.",
        _transcript, TodoTranscriptShape, WorkQuery,
    ),
    _action("promote", "Move a todo from the backlog to the active list."),
    _action("demote", "Move a todo back to the backlog."),
    _action("start", "Start a todo; a worker executes it."),
    _action("cancel", "Cancel a todo and stop its runs."),
    _action("extend", "Change the deadline of a todo.", ExtendBody),
    _action("reprioritize", "Change the priority of a todo.", ReprioritizeBody),
    Endpoint(
        "PATCH", "/todos/{id}", "editTodo", "Change fields of an open todo.",
        _step("edit"), TodoChangeShape, body=EditTodoBody, etag=todo_version,
    ),
    _action("swap", "Exchange a pending todo with one of the backlog.", SwapBody),
    _action("link", "Link a todo to another one.", LinkBody),
    _action("unlink", "Remove a link.", LinkBody),
    _action("label", "Add and remove labels.", LabelBody),
    _action("comment", "Comment on a todo.", TextBody),
    _action("unarchive", "Show an archived todo again."),
    Endpoint(
        "POST", "/todos/{id}/complete", "completeTodo", "Complete a todo in progress; its check must pass.",
        _complete, TodoChangeShape, body=CompleteBody, etag=todo_version, prepare=_run_check,
    ),
    Endpoint(
        "POST", "/todos/{id}/report", "reportTodo", "Post the result of the work for the Lead to review.",
        _report, TodoChangeShape, body=ReportBody, etag=todo_version,
    ),
]  # fmt: skip
