"""The plan and the checklist of a session as one numbered list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.conversations import repository as conversation_repository
from punchlist.storage.store import Transaction
from punchlist.surfaces.web.api.dispatch import version_of
from punchlist.surfaces.web.api.endpoint import ApiCall, ApiReply, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import Reason, ReasonBody
from punchlist.verification.model import CheckOutcome, Mark
from punchlist.views.todos import NumberedTodo, TodoList

Title = Annotated[str, Field(min_length=1, max_length=500)]
DEFAULT_REASON = "changed over HTTP"


class ItemCheckShape(ResponseModel):
    command: str | None = None
    file: str | None = None
    contains: str | None = None
    metric: str | None = None
    timeout: float | None = None


class ItemCheckResultShape(ResponseModel):
    outcome: CheckOutcome
    output: str
    at: str


class ItemEvidenceShape(ResponseModel):
    """A tool call."""

    tool: str
    summary: str
    call_id: str | None = None
    changed: str | None = None


class ItemSummaryShape(ResponseModel):
    total: int
    pending: int
    in_progress: int
    completed: int
    cancelled: int
    dropped: int = 0


class ItemShape(ResponseModel):
    number: int
    id: str
    list: Literal["plan", "checklist"]
    title: str
    status: str
    mark: Mark | None
    waits_for: tuple[str, ...] = ()
    outcome: str | None = None
    reason: str | None = None
    check: Annotated[str | ItemCheckShape | None, Field(description="A text is a command.")] = None
    check_result: ItemCheckResultShape | None = None
    evidence: tuple[ItemEvidenceShape, ...] = ()
    accepted_by: str | None = None
    copied_from: str | None = None
    claimed_by: str | None = None
    claimed_until: str | None = None
    etag: Annotated[str, Field(description="For If-Match.")]


class ItemListShape(ResponseModel):
    session: str
    items: list[ItemShape]
    summary: ItemSummaryShape


class AddBody(RequestModel):
    titles: Annotated[list[Title], Field(min_length=1, max_length=50)]
    check: Annotated[str | None, Field(max_length=2_000, description="A command that must pass.")] = None
    reason: Reason = ""


class OutcomeBody(RequestModel):
    outcome: Annotated[str | None, Field(max_length=20_000, description="What was done.")] = None


class EditBody(RequestModel):
    title: Title
    reason: Reason = ""


class MoveBody(RequestModel):
    position: Annotated[int, Field(ge=1, le=100_000, description="In its own list, counted from 1.")]
    reason: Reason = ""


def list_json(lists: TodoList) -> dict[str, Any]:
    items = [{"mark": None, **item.as_json(), "etag": _version(item)} for item in lists.items]
    return {**lists.as_json(), "items": items}


def _version(item: NumberedTodo) -> str:
    return version_of(item.id, item.title, item.label, item.status, item.outcome, item.reason, item.verification)


def item_version(call: ApiCall, tx: Transaction) -> str:
    """Locks the session."""
    session = call.path["id"]
    conversation_repository.lock_conversation(tx, session)
    return _version(call.services.todos.list(call.scope(session)).find(call.path["item"]))


def _show(call: ApiCall) -> Any:
    call.services.conversations.get(call.path["id"])
    return list_json(call.services.todos.list(call.scope(call.path["id"])))


def _add(call: ApiCall) -> ApiReply:
    scope, body = call.scope(call.path["id"]), call.body
    call.services.todos.add(scope, body.titles, check=body.check, reason=body.reason or DEFAULT_REASON)
    return ApiReply(list_json(call.services.todos.list(scope)), 201)


def _change(change: Callable[[ApiCall, Any, str], None]) -> Callable[[ApiCall], Any]:
    def handle(call: ApiCall) -> Any:
        scope = call.scope(call.path["id"])
        change(call, scope, call.path.get("item", ""))
        return list_json(call.services.todos.list(scope))

    return handle


def _reason(call: ApiCall) -> str:
    reason: str = call.body.reason
    return reason or DEFAULT_REASON


def _item(name: str, summary: str, change: Callable[[ApiCall, Any, str], None], body: type[RequestModel]) -> Endpoint:
    return Endpoint(
        "POST", f"/conversations/{{id}}/todos/{{item}}/{name}", f"{name}Item", summary, _change(change), ItemListShape,
        body=body, etag=item_version,
    )  # fmt: skip


ENDPOINTS = [
    Endpoint("GET", "/conversations/{id}/todos", "listItems", "Plan and checklist of a session.", _show, ItemListShape),
    Endpoint(
        "POST", "/conversations/{id}/todos", "addItems", "Add items to the list that the session's agent uses.",
        _add, ItemListShape, body=AddBody, status=201,
    ),
    Endpoint(
        "POST", "/conversations/{id}/todos/undo", "undoItems", "Restore the checklist before the last change.",
        _change(lambda call, scope, _: call.services.todos.undo(scope, reason=_reason(call))), ItemListShape,
        body=ReasonBody,
    ),
    Endpoint(
        "PATCH", "/conversations/{id}/todos/{item}", "editItem", "Change the title of an item.",
        _change(lambda call, scope, item: call.services.todos.edit(scope, item, call.body.title, reason=_reason(call))),
        ItemListShape, body=EditBody, etag=item_version,
    ),
    _item("start", "Start an item.", lambda call, scope, item: call.services.todos.start(
        scope, item, reason=_reason(call)), ReasonBody),
    _item("done", "Complete an item.", lambda call, scope, item: call.services.todos.complete(
        scope, item, call.body.outcome, reason=DEFAULT_REASON), OutcomeBody),
    _item("cancel", "Cancel an item.", lambda call, scope, item: call.services.todos.cancel(
        scope, item, reason=call.body.reason or None), ReasonBody),
    _item("reopen", "Reopen an item of a checklist.", lambda call, scope, item: call.services.todos.reopen(
        scope, item, reason=_reason(call)), ReasonBody),
    _item("accept", "Accept a completed item.", lambda call, scope, item: call.services.todos.accept(
        scope, item, reason=_reason(call)), ReasonBody),
    _item("move", "Move an item in its list.", lambda call, scope, item: call.services.todos.move(
        scope, item, call.body.position, reason=_reason(call)), MoveBody),
]  # fmt: skip
