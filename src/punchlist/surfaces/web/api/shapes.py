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


class ReasonBody(RequestModel):
    reason: Reason = ""


class RequiredReasonBody(RequestModel):
    reason: RequiredReason


class CapacityShape(ResponseModel):
    """Todos of a mission, and how many there may be."""

    active: int
    active_todo_limit: int
    backlog: int
    backlog_todo_limit: int
