"""The readings of a metric in a range of time, thinned for a plot, and the completed todos that touched it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import find_mission
from punchlist.missions.metrics.rollups import LENGTHS, period_of
from punchlist.missions.model import Metric
from punchlist.storage.store import Store, Transaction
from punchlist.views import mission_repository as view_repository
from punchlist.views.mission_repository import MetricMark, ReadingInterval

DEFAULT_POINTS: Final = 200
MAX_POINTS: Final = 500
MAX_MARKS: Final = 200
MAX_READ: Final = 2_000
"""A plot of more readings than this is always made from rollups."""


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
            low = max(low, _time_of_newest(tx, metric, newest))
        return _plot(tx, metric, low, high, points)


def read_newest(store: Store, metrics: Iterable[Metric], *, readings: int, points: int) -> dict[str, MetricPlot]:
    """Plots of the newest readings of each metric, by its slug."""
    with store.read() as tx:
        return {
            metric.slug: _plot(tx, metric, _time_of_newest(tx, metric, readings), "9999", points) for metric in metrics
        }


def _time_of_newest(tx: Transaction, metric: Metric, readings: int) -> str:
    return view_repository.time_of_newest(tx, metric_id=metric.id, before=readings - 1) or "0"


def _plot(tx: Transaction, metric: Metric, low: str, high: str, points: int) -> MetricPlot:
    period = {"metric_id": metric.id, "since": low, "until": high}
    thinned = view_repository.has_more(tx, **period, readings=points) is not None
    if thinned:
        shown = _thin(tx, metric, low, high, points)
    else:
        shown = view_repository.readings_in_range(tx, **period, most=points)
    marks = view_repository.marks(tx, **period, most=MAX_MARKS)
    return MetricPlot(metric, low, high, thinned, shown, marks[::-1])


def _thin(tx: Transaction, metric: Metric, low: str, high: str, points: int) -> list[ReadingInterval]:
    """From rollups if there are enough of them for half as many points, or if there are many readings."""
    period = {"metric_id": metric.id, "since": low, "until": high}
    times = view_repository.first_and_last(tx, **period)
    assert times is not None, "a range with readings"
    first, last = map(parse_timestamp, times)
    span = (last - first).total_seconds()
    fitting = (each for each in LENGTHS if 2 * span >= points * each)
    if (seconds := next(fitting, None)) is None:
        found = view_repository.readings_in_range(tx, **period, most=MAX_READ + 1)
        if len(found) <= MAX_READ:
            return _in_intervals(found, points)
        seconds = LENGTHS[-1]
    start, end = period_of(first, seconds), period_of(last, seconds) + 1
    return _from_rollups(tx, metric, low, high, start=start, end=end, seconds=seconds, points=points)


def _in_intervals(readings: Sequence[ReadingInterval], points: int) -> list[ReadingInterval]:
    times = [parse_timestamp(reading.at).timestamp() for reading in readings]
    length = (times[-1] - times[0]) / points or 1
    placed = zip(times, readings, strict=True)
    # The last one ends the last interval.
    return _merge((min(int((at - times[0]) / length), points - 1), reading) for at, reading in placed)


def _from_rollups(
    tx: Transaction, metric: Metric, low: str, high: str, *, start: int, end: int, seconds: int, points: int
) -> list[ReadingInterval]:
    """From whole periods, and the readings before the first and after the last of them."""
    each = -(-(end - start) // points)
    # A period that the range cuts has readings outside the range.
    whole_start = start + (low > timestamp(_begin(start, seconds)))
    whole_end = end - (high < timestamp(_begin(end, seconds)))
    whole = view_repository.rollups(
        tx, metric_id=metric.id, seconds=seconds, origin=start, start=whole_start, end=whole_end, each=each
    )
    edges = [(start, low, min(high, timestamp(_begin(whole_start, seconds))))] if whole_start > start else []
    if whole_end < end and whole_end >= whole_start:
        edges.append((whole_end, timestamp(_begin(whole_end, seconds)), high))
    cut = [
        ((period - start) // each, interval)
        for period, since, until in edges
        if (interval := view_repository.interval(tx, metric_id=metric.id, since=since, until=until))
        and interval.readings
    ]
    return _merge(sorted([*whole, *cut]))


def _begin(period: int, seconds: int) -> datetime:
    return datetime.fromtimestamp(period * seconds, UTC)


def _merge(placed: Iterable[tuple[int, ReadingInterval]]) -> list[ReadingInterval]:
    """Parts of intervals in their order, each with the number of its interval."""
    merged: dict[int, ReadingInterval] = {}
    for place, part in placed:
        merged[place] = _join(merged[place], part) if place in merged else part
    return list(merged.values())


def _join(one: ReadingInterval, other: ReadingInterval) -> ReadingInterval:
    readings = one.readings + other.readings
    mean = (one.value * one.readings + other.value * other.readings) / readings
    return ReadingInterval(max(one.at, other.at), mean, min(one.low, other.low), max(one.high, other.high), readings)
