"""The plot of a metric: a range of readings, thinned, with marks of completed todos."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import SLUG, developer_experience

from punchlist.errors import InvalidInput, NotFound
from punchlist.missions.metrics.service import Metrics
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
