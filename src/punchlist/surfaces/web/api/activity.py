"""The event log as pages of JSON (`events.py` streams it), search, and health."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from punchlist.runs.lifecycle import RunStatus
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.metrics import to_utc
from punchlist.surfaces.web.api.shapes import Cursor, Limit
from punchlist.surfaces.web.api.work_shapes import SearchHitShape
from punchlist.toolcalls.policy import Mode
from punchlist.views.health import read_health
from punchlist.views.live import read_activity
from punchlist.views.search import read_search


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


class SearchQuery(RequestModel):
    q: Annotated[str, Field(min_length=1, max_length=200, description="Words, or their beginnings.")]
    kind: Annotated[str | None, Field(max_length=50)] = None
    mission: Annotated[str | None, Field(max_length=100)] = None
    conversation: Annotated[str | None, Field(max_length=200)] = None
    limit: Limit = 20
    cursor: Cursor = None


class SearchShape(ResponseModel):
    items: list[SearchHitShape]
    next_cursor: str | None
    complete: bool


class WorkerShape(ResponseModel):
    id: str
    slots: int
    started_at: str
    seen_at: str


class PausedShape(ResponseModel):
    at: str
    by: str | None
    reason: str | None


class WaitingReviewShape(ResponseModel):
    id: Annotated[str, Field(description="Of its run.")]
    status: RunStatus
    why: str
    changed_at: str


class NewestCycleShape(ResponseModel):
    id: Annotated[str, Field(description="Of its run.")]
    status: RunStatus
    why: str


class SpendShape(ResponseModel):
    requests: int
    input_tokens: int
    output_tokens: int
    cost: Annotated[float, Field(description="In dollars.")]
    unpriced: Annotated[int, Field(description="Requests to models whose price is unknown.")]


class LimitsShape(ResponseModel):
    """Those that are set."""

    mode: Mode | None = None
    cost_per_day: float | None = None
    cost_per_todo: float | None = None
    tokens_per_day: int | None = None
    tokens_per_todo: int | None = None


class BudgetReachedShape(ResponseModel):
    id: str
    todo_id: str | None
    explanation: str
    reached_at: str


class MissionHealthShape(ResponseModel):
    mission: Annotated[str, Field(description="Its slug.")]
    status: str
    paused: PausedShape | None
    workers: Annotated[int, Field(description="Live ones; every worker serves all missions.")]
    last_cycle: Annotated[str | None, Field(description="When the last successful one ended.")]
    missed_cycles: int
    next_cycle: str | None
    queued_runs: int
    open_runs: int
    waiting_reviews: list[WaitingReviewShape]
    newest_cycle: NewestCycleShape | None
    today: SpendShape
    limits: LimitsShape
    budgets_reached: list[BudgetReachedShape]
    problems: list[str]


class HealthShape(ResponseModel):
    workers: list[WorkerShape]
    missions: list[MissionHealthShape]


def _search(call: ApiCall) -> Any:
    query = call.query
    page = read_search(
        call.services.store,
        query.q,
        kind=query.kind,
        mission=query.mission,
        conversation_id=query.conversation,
        limit=query.limit,
        cursor=query.cursor,
    )
    return page.as_json()


def _health(call: ApiCall) -> Any:
    return read_health(call.services.store).as_json()


ENDPOINTS = [
    Endpoint("GET", "/search", "search", "Search everything.", _search, SearchShape, SearchQuery),
    Endpoint("GET", "/health", "getHealth", "Workers, and the cycles of missions.", _health, HealthShape),
    Endpoint("GET", "/activity", "listActivity", "Events, oldest first.", _list, ActivityShape, ActivityQuery),
]
