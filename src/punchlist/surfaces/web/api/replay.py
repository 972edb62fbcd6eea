"""Lists as they were at any moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import timestamp
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.metrics import to_utc
from punchlist.views.moments import Moment, checklist_moment, mission_moment, plan_moment


class MomentQuery(RequestModel):
    """Without version and time: as the list is now."""

    version: Annotated[int | None, Field(ge=0, le=2**31 - 1, description="The number of the last change.")] = None
    at: Annotated[AwareDatetime | None, Field(description="As it was at this time.")] = None


class ItemThenShape(ResponseModel):
    id: str
    title: str
    status: str


class ListChangeShape(ResponseModel):
    version: int
    at: str
    actor: str
    action: str
    subject: str
    title: Annotated[str | None, Field(description="Of the subject.")]
    from_status: str | None
    to_status: str | None
    reason: str


class MomentShape(ResponseModel):
    version: int
    newest: Annotated[int, Field(description="The number of the newest change.")]
    items: Annotated[list[ItemThenShape], Field(description="Of a mission, at most 50 of each status.")]
    counts: Annotated[dict[str, int], Field(description="All items by status.")]
    changes: Annotated[list[ListChangeShape], Field(description="Those around the moment, oldest first.")]


def _moment(read: Callable[..., Moment], name: str) -> Callable[[ApiCall], Any]:
    def handle(call: ApiCall) -> Any:
        query = call.query
        if query.version is not None and query.at is not None:
            raise InvalidInput("version, at: only one of them can be given")
        at = to_utc(query.at)
        found = read(call.services.store, call.path[name], version=query.version, at=at and timestamp(at))
        return found.as_json()

    return handle


def _plan(call: ApiCall) -> Any:
    call.services.conversations.turn(call.path["id"])
    return _moment(plan_moment, "id")(call)


def _checklist(call: ApiCall) -> Any:
    call.services.conversations.get(call.path["id"])
    return _moment(checklist_moment, "id")(call)


ENDPOINTS = [
    Endpoint(
        "GET", "/missions/{slug}/replay", "replayMission", "The todos of a mission after any of their changes.",
        _moment(mission_moment, "slug"), MomentShape, MomentQuery,
    ),
    Endpoint(
        "GET", "/turns/{id}/replay", "replayPlan", "The plan of a turn after any of its changes.",
        _plan, MomentShape, MomentQuery,
    ),
    Endpoint(
        "GET", "/conversations/{id}/replay", "replayChecklist", "The checklist of a session after any of its changes.",
        _checklist, MomentShape, MomentQuery,
    ),
]  # fmt: skip
