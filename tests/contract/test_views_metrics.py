"""The plot of a metric: a range of readings, thinned, with marks of completed todos."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import SLUG, developer_experience

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.clock import timestamp
from punchlist.kernel.ids import new_id
from punchlist.missions.metrics.repository import insert_readings
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.model import MetricReading
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.store import Store
from punchlist.views.metrics import read_metric

METRIC = "local-build-time"


@pytest.mark.spec("M15")
def test_a_plot_has_a_range_in_the_order_of_time(store: Store) -> None:
    team = developer_experience(store)
    for day, value in ((10, 70), (12, 50), (11, 60)):
        Metrics(store).record(team.person, SLUG, METRIC, value, at=f"2026-02-{day}")
    plot = read_metric(store, SLUG, METRIC)
    assert [(point.at[:10], point.value) for point in plot.points] == [
        ("2026-02-10", 70),
        ("2026-02-11", 60),
        ("2026-02-12", 50),
    ]
    assert not plot.thinned
    since, until = datetime(2026, 2, 11, tzinfo=UTC), datetime(2026, 2, 12, tzinfo=UTC)
    assert [point.value for point in read_metric(store, SLUG, METRIC, since=since, until=until).points] == [60]


@pytest.mark.spec("M15")
def test_a_thinned_plot_keeps_the_extremes(store: Store, clock: StoppedClock) -> None:
    team, metrics = developer_experience(store), Metrics(store)
    for number in range(40):
        metrics.record(team.person, SLUG, METRIC, 1_000 if number == 17 else number)
        clock.advance(hours=1)
    plot = read_metric(store, SLUG, METRIC, points=8)
    assert plot.thinned
    assert len(plot.points) == 8
    assert sum(point.readings for point in plot.points) == 40
    assert max(point.high for point in plot.points) == 1_000
    assert plot.points[-1].high == 39
    assert plot.as_json()["points"][0] == {"at": plot.points[0].at, "value": 2, "low": 0, "high": 4, "readings": 5}


@pytest.mark.spec("M15")
def test_completed_todos_that_touched_a_metric_are_marked(store: Store) -> None:
    team = developer_experience(store)
    for title, slugs in (("Cache", [METRIC]), ("Other", ["cache-hit-rate"]), ("None", [])):
        todo = team.todo_in(TodoStatus.IN_PROGRESS, title)
        team.todos.complete(team.lead, SLUG, todo.id, "done", metrics_impacted=slugs)
    assert [mark.title for mark in read_metric(store, SLUG, METRIC).marks] == ["Cache"]


@pytest.mark.spec("M15")
def test_an_unknown_metric_and_a_bad_number_of_points_are_refused(store: Store) -> None:
    developer_experience(store)
    with pytest.raises(NotFound, match="no metric"):
        read_metric(store, SLUG, "nothing")
    with pytest.raises(InvalidInput, match="points"):
        read_metric(store, SLUG, METRIC, points=0)


@pytest.mark.spec("M15")
def test_a_plot_of_many_readings_summarises_each_of_them_once(store: Store) -> None:
    """They come in any order, some of them from before 1970, and are rolled up by minute, hour and day."""
    developer_experience(store)
    chance = Random(7)
    metric = next(view.metric for view in Metrics(store).views(SLUG) if view.metric.slug == METRIC)
    newest = datetime(2026, 2, 20, 12, 30, 30, tzinfo=UTC)
    spans = {"day": timedelta(days=30_000), "hour": timedelta(days=40), "minute": timedelta(hours=9)}
    times = [newest - span * chance.random() for span in spans.values() for _ in range(2_100)]
    readings = [
        MetricReading(new_id(), metric.mission_id, metric.id, number, chance.uniform(-9, 9), timestamp(at), "test", "")
        for number, at in enumerate(times, start=1)
    ]
    with store.write() as tx:
        insert_readings(tx, readings)
    values = {timestamp(at): reading.value for at, reading in zip(times, readings, strict=True)}
    ranges = [(None, None), *((newest - span * part, newest) for span in spans.values() for part in (1.0, 0.97))]
    for since, until in ranges:
        wanted = {
            at: value
            for at, value in values.items()
            if since is None or until is None or timestamp(since) <= at < timestamp(until)
        }
        for most in (7, 150):
            plot = read_metric(store, SLUG, METRIC, since=since, until=until, points=most)
            assert most / 3 < len(plot.points) <= most
            assert [point.at for point in plot.points] == sorted({point.at for point in plot.points})
            before = "0"
            for point in plot.points:
                inside = [value for at, value in wanted.items() if before < at <= point.at]
                assert (point.readings, point.low, point.high) == (len(inside), min(inside), max(inside))
                assert point.value == pytest.approx(sum(inside) / len(inside), abs=1e-9)
                before = point.at
            assert before == max(wanted)
