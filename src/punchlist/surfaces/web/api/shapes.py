"""Models that several themes share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from punchlist.surfaces.web.api.endpoint import RequestModel, ResponseModel

MAX_LIMIT = 500
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="The page size.")]
Cursor = Annotated[str | None, Field(max_length=1_000, description="`nextCursor` of the page before, unchanged.")]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Reason = Annotated[str, Field(max_length=2_000, description="Why; the event log keeps it.")]
RequiredReason = Annotated[str, Field(min_length=1, max_length=2_000, description="Why; the event log keeps it.")]
JsonObject = dict[str, Any]


class PageQuery(RequestModel):
    limit: Limit = 100
    cursor: Cursor = None


class ReasonBody(RequestModel):
    reason: Reason = ""


class RequiredReasonBody(RequestModel):
    reason: RequiredReason


class RunShape(ResponseModel):
    id: str
    kind: str
    status: str
    agent: str
    created_at: str
    ended_at: str | None
    why: str


class RunPageShape(ResponseModel):
    items: list[RunShape]
    next_cursor: str | None = None
