"""The event log as pages of JSON; `events.py` streams it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.metrics import to_utc
from punchlist.surfaces.web.api.shapes import Limit
from punchlist.views.live import read_activity


class ActivityQuery(RequestModel):
    mission: Annotated[str | None, Field(max_length=100, description="Only of this mission (its slug).")] = None
    conversation: Annotated[str | None, Field(max_length=200, description="Only of this conversation (its id).")] = None
    after: Annotated[int, Field(ge=0, le=2**53, description="Continue after this sequence number.")] = 0
    since: AwareDatetime | None = None
    limit: Limit = 100


class EventShape(ResponseModel):
    seq: int
    at: str
    stream: str
    conversation_id: str
    actor: str
    action: str
    subject: str
    from_status: str | None
    to_status: str | None
    reason: str


class ActivityShape(ResponseModel):
    items: list[EventShape]
    last: Annotated[int, Field(description="The sequence number to continue after.")]


def _list(call: ApiCall) -> Any:
    query = call.query
    page = read_activity(
        call.services.store,
        mission=query.mission,
        conversation_id=query.conversation,
        since=to_utc(query.since),
        after=query.after,
        limit=query.limit,
    )
    return page.as_json()


ENDPOINTS = [
    Endpoint("GET", "/activity", "listActivity", "Events, oldest first.", _list, ActivityShape, ActivityQuery),
]
