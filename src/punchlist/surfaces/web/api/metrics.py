"""Metrics of a mission: current values, plots, readings, collection."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from punchlist.kernel.camel_json import camel_json
from punchlist.missions.metrics.status import MetricStatus, Trend
from punchlist.surfaces.web.api.endpoint import ApiCall, Endpoint, RequestModel, ResponseModel
from punchlist.surfaces.web.api.work_shapes import RunShape
from punchlist.views.metrics import DEFAULT_POINTS, MAX_POINTS, read_metric


class ReadingShape(ResponseModel):
    value: float
    at: str
    source: str
    note: str


class MetricTargetShape(ResponseModel):
    slug: str
    name: str
    unit: str
    target: float
    warning: float | None
    direction: Annotated[Literal["up", "down"], Field(description="Of an improvement.")]


class MetricShape(MetricTargetShape):
    pillar: str
    collector: str
    current: float | None
    at: Annotated[str | None, Field(description="Of the current value.")]
    status: MetricStatus
    trend: Trend
    stale: bool
    last_error: Annotated[str | None, Field(description="Of the collector, if it failed since the last reading.")]
    last_error_at: str | None
    readings: Annotated[list[ReadingShape], Field(description="The newest ones, oldest first.")]


class MetricListShape(ResponseModel):
    items: list[MetricShape]


class PlotQuery(RequestModel):
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    points: Annotated[int, Field(ge=1, le=MAX_POINTS)] = DEFAULT_POINTS


class PointShape(ResponseModel):
    """The readings of an interval; of a single one, if the plot is not thinned."""

    at: Annotated[str, Field(description="Of the last reading.")]
    value: Annotated[float, Field(description="The mean.")]
    low: float
    high: float
    readings: int


class MarkShape(ResponseModel):
    """A todo whose completion named the metric."""

    at: str
    todo_id: str
    title: str


class PlotShape(MetricTargetShape):
    since: str
    until: str
    thinned: Annotated[bool, Field(description="Whether a point can stand for several readings.")]
    points: Annotated[list[PointShape], Field(description="Oldest first.")]
    marks: Annotated[list[MarkShape], Field(description="Oldest first.")]


class ReadingBody(RequestModel):
    value: float
    at: Annotated[AwareDatetime | None, Field(description="When it was taken; now if left out.")] = None
    note: Annotated[str, Field(max_length=2_000)] = ""


class CollectBody(RequestModel):
    metrics: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=100)], ...],
        Field(max_length=100, description="Slugs; all metrics with a collector if empty."),
    ] = ()


def _list(call: ApiCall) -> Any:
    return {"items": [view.as_json() for view in call.services.metrics.views(call.path["slug"])]}


def _plot(call: ApiCall) -> Any:
    query = call.query
    return read_metric(
        call.services.store,
        call.path["slug"],
        call.path["metric"],
        since=to_utc(query.since),
        until=to_utc(query.until),
        points=query.points,
    ).as_json()


def to_utc(at: datetime | None) -> datetime | None:
    from datetime import UTC

    from punchlist.errors import InvalidInput

    try:
        return at and at.astimezone(UTC)
    except (OverflowError, ValueError):
        raise InvalidInput("since, until: is out of range") from None


def _record(call: ApiCall) -> Any:
    services, slug, body = call.services, call.path["slug"], call.body
    scope = call.scope(services.missions.get(slug).conversation_id)
    reading = services.metrics.record(scope, slug, call.path["metric"], body.value, at=body.at, note=body.note)
    return camel_json(reading, "value", "at", "source", "note")


def _collect(call: ApiCall) -> Any:
    services, slug = call.services, call.path["slug"]
    scope = call.scope(services.missions.get(slug).conversation_id)
    return services.metrics.enqueue_collection(scope, slug, call.body.metrics, reason="asked for over HTTP").as_json()


ENDPOINTS = [
    Endpoint("GET", "/missions/{slug}/metrics", "listMetrics", "All metrics.", _list, MetricListShape),
    Endpoint(
        "POST", "/missions/{slug}/metrics/collect", "collectMetrics", "Queue a collection of metrics.",
        _collect, RunShape, body=CollectBody, status=202,
    ),
    Endpoint(
        "GET", "/missions/{slug}/metrics/{metric}", "getMetric", "Readings for a plot.", _plot, PlotShape, PlotQuery
    ),
    Endpoint(
        "POST", "/missions/{slug}/metrics/{metric}/readings", "recordReading", "Record a reading.",
        _record, ReadingShape, body=ReadingBody, status=201,
    ),
]  # fmt: skip
