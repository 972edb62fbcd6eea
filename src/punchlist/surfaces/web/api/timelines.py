"""The calls of runs and turns to models and tools: the transcript of their work (X4)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from punchlist.errors import InvalidInput
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.shapes import Cursor, Limit
from punchlist.views.run_timeline import TimelinePage, read_timeline, read_turn_timeline


class TimelineQuery(RequestModel):
    failed: Annotated[bool, Field(description="Only calls that failed.")] = False
    limit: Limit = 100
    cursor: Cursor = None


class StepShape(ResponseModel):
    number: int
    id: str
    kind: Literal["model", "tool"]
    name: str
    agent: str
    at: str
    offset: Annotated[float, Field(description="Seconds from the start of the timeline.")]
    seconds: float
    failed: bool
    wait_offset: float
    wait_seconds: Annotated[float, Field(description="How long it waited for an approval before it ran.")]
    waits: Annotated[bool, Field(description="Whether it waits for an approval now.")]
    input_tokens: int
    output_tokens: int
    cost: Annotated[float, Field(description="In dollars.")]
    summary: str
    given: Annotated[str, Field(description="The beginning of the arguments.")]
    returned: Annotated[str, Field(description="The beginning of the result.")]


class TimelineShape(ResponseModel):
    started_at: str | None
    seconds: float
    total: int
    failures: int
    models: Annotated[int, Field(description="Calls to models.")]
    shown: Annotated[int, Field(description="The calls that the query selects, on all pages.")]
    items: list[StepShape]
    next_cursor: str | None = None


def _page(call: ApiCall) -> TimelinePage:
    query = call.query
    if query.cursor is not None and not (query.cursor.isascii() and query.cursor.isdecimal() and len(query.cursor) < 9):
        raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
    return TimelinePage(query.failed, size=query.limit, after=int(query.cursor or 0))


def _run(call: ApiCall) -> Any:
    return read_timeline(call.services.store, call.path["id"], _page(call)).as_json()


def _turn(call: ApiCall) -> Any:
    return read_turn_timeline(call.services.store, call.path["id"], _page(call)).as_json()


ENDPOINTS = [
    Endpoint(
        "GET", "/runs/{id}/timeline", "getRunTimeline", "The model and tool calls of a run, in order of their starts.",
        _run, TimelineShape, TimelineQuery,
    ),
    Endpoint(
        "GET", "/turns/{id}/timeline", "getTurnTimeline", "The calls of a turn and of the workers that it started.",
        _turn, TimelineShape, TimelineQuery,
    ),
]  # fmt: skip
