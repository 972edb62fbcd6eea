"""The readings of a metric in a range of time, thinned for a plot, and the completed todos that touched it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import event_stream, find_mission
from punchlist.missions.model import Metric
from punchlist.storage.store import Store, Transaction
from punchlist.views import mission_repository as view_repository
from punchlist.views.mission_repository import ReadingInterval

DEFAULT_POINTS: Final = 200
MAX_POINTS: Final = 500
MAX_MARKS: Final = 200


class MetricMark(NamedTuple):
    """A todo whose completion named the metric."""

    at: str
    todo_id: str
    title: str


@dataclass(frozen=True, slots=True)
class MetricPlot:
    metric: Metric
    since: str
    until: str
    thinned: bool
    """Whether a point can stand for several readings."""
    points: Sequence[ReadingInterval]
    """Oldest first."""
    marks: Sequence[MetricMark]
    """The newest ones, oldest first."""

    def as_json(self) -> dict[str, Any]:
        return {
            **camel_json(self.metric, "slug", "name", "unit", "target", "warning", "direction"),
            "since": self.since,
            "until": self.until,
            "thinned": self.thinned,
            "points": [camel_json(point) for point in self.points],
            "marks": [camel_json(mark) for mark in self.marks],
        }


def read_metric(
    store: Store,
    mission_slug: str,
    metric_slug: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    newest: int | None = None,
    points: int = DEFAULT_POINTS,
) -> MetricPlot:
    """The readings taken from `since` on and before `until`, at most `points` of them; with `newest`, without a period,
    only so many of the newest readings.

    When there are more, each point is an interval of equal length with the mean, lowest and highest of its readings.
    """
    if not 1 <= points <= MAX_POINTS:
        raise InvalidInput(f"points: must be from 1 to {MAX_POINTS}")
    low = timestamp(since) if since is not None else "0"
    high = timestamp(until) if until is not None else "9999"
    with store.read() as tx:
        mission = find_mission(tx, mission_slug)
        metric = mission_repository.metric_by_slug(tx, mission.id, metric_slug)
        if metric is None:
            raise NotFound(f"Mission {mission.slug!r} has no metric {excerpt(metric_slug)!r}.")
        if newest is not None:
            low = max(low, view_repository.time_of_newest(tx, metric_id=metric.id, before=newest - 1) or low)
        found = view_repository.readings_in_range(tx, metric_id=metric.id, since=low, until=high, most=points + 1)
        thinned = len(found) > points
        if thinned:
            shown = _thin(tx, metric, low, high, points)
        else:
            shown = [ReadingInterval(at, value, value, value, 1) for at, value in found]
        completed = view_repository.completions(
            tx,
            stream=event_stream(mission.id),
            since=low,
            until=high,
            # A slug contains no wildcard of LIKE.
            pattern=f'%"metrics_impacted":[%"{metric.slug}"%',
            most=MAX_MARKS,
        )
        marks = [
            MetricMark(at, todo_id, view_repository.title_of(tx, todo_id) or "")
            for at, todo_id, data in reversed(completed)
            if metric.slug in json.loads(data)["metrics_impacted"]
        ]
    return MetricPlot(metric, low, high, thinned, shown, marks)


def _thin(tx: Transaction, metric: Metric, low: str, high: str, points: int) -> list[ReadingInterval]:
    first, last = view_repository.first_and_last(tx, metric_id=metric.id, since=low, until=high) or (None, None)
    assert first is not None
    assert last is not None
    return view_repository.find_intervals(tx, metric.id, list(_bounds(first, last, points)))


def _bounds(first: str, last: str, points: int) -> Iterator[tuple[str, str]]:
    """Intervals of equal length. The last one includes `last`."""
    start, end = parse_timestamp(first), parse_timestamp(last) + timedelta(microseconds=1)
    edges = [timestamp(start + (end - start) * number / points) for number in range(points + 1)]
    return pairwise(edges)
