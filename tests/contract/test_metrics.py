"""Metrics: readings are kept in their order, looked at with status and trend, and told by the trail."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import StoppedClock
from tests.contract.measured import BUILD_TIME, PERSON, collected, measured

from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound, PunchlistError
from punchlist.kernel.events import SYSTEM, Actor, Role
from punchlist.missions import replay as mission_replay
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import event_stream
from punchlist.missions.metrics.collectors import MetricCollection
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.metrics.status import MAX_VALUE
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.service import Missions
from punchlist.storage import event_log
from punchlist.storage.store import Store


@pytest.fixture
def metrics(store: Store) -> Metrics:
    measured(store)
    return Metrics(store)


def trail_agrees(store: Store) -> bool:
    """Whether rows and events tell the same of readings, and of what went wrong."""
    with store.read() as tx:
        mission = mission_repository.mission_by_slug(tx, "fast")
        assert mission is not None
        events = event_log.read_stream(tx, event_stream(mission.id))
        assert list(mission_replay.compare(tx, mission.id, events)) == []
        metrics = mission_repository.metrics_of(tx, mission.id)
    assert not list(event_log.broken_links(events))
    assert mission_replay.replay(events)["metrics"] == {metric.id: metric for metric in metrics}
    return True


@pytest.mark.spec("M7")
def test_a_metric_without_readings_is_unknown(metrics: Metrics) -> None:
    [view] = metrics.views("fast")
    assert (view.status, view.trend, view.stale, view.current) == ("unknown", "unknown", False, None)
    assert view.pillar_slug == "builds"


@pytest.mark.spec("M7")
def test_readings_make_status_and_trend(metrics: Metrics, store: Store) -> None:
    statuses = []
    for value in (55, 63, 99, 72):
        metrics.record(PERSON, "fast", "build-time", value)
        statuses.append(metrics.views("fast")[0].status)
    assert statuses == ["on_target", "warning", "off_target", "warning"]
    [view] = metrics.views("fast", "build-time")
    assert view.trend == "degrading"
    assert view.values == [55, 63, 99, 72]
    assert view.current == view.readings[-1]
    assert trail_agrees(store)


@pytest.mark.spec("M7")
def test_a_metric_goes_stale_when_nobody_measures(metrics: Metrics, clock: StoppedClock) -> None:
    metrics.record(PERSON, "fast", "build-time", 55)
    clock.advance(hours=24)
    assert not metrics.views("fast")[0].stale
    clock.advance(seconds=1)
    [view] = metrics.views("fast")
    assert view.stale
    assert view.status == "on_target"


@pytest.mark.spec("M7")
def test_a_reading_says_when_it_was_taken_and_what_about_it(metrics: Metrics, store: Store) -> None:
    reading = metrics.record(PERSON, "fast", "build-time", 61.5, at="2026-02-20T10:00+01:00", note=" after the cache ")
    assert reading.at == "2026-02-20T09:00:00.000000Z"
    assert reading.note == "after the cache"
    assert metrics.record(PERSON, "fast", "build-time", 1, at="2026-02-19").at == "2026-02-19T00:00:00.000000Z"
    # In the order of their times, not in which they were recorded.
    assert metrics.views("fast")[0].values == [1, 61.5]
    with store.read() as tx:
        [*_, event, _] = event_log.newest(tx, 100)
    assert (event.actor, event.reason, event.subject) == ("person:ada", "after the cache", reading.id)
    assert trail_agrees(store)


@pytest.mark.spec("M7")
def test_a_backfilled_reading_is_history(metrics: Metrics, clock: StoppedClock) -> None:
    for value in (90, 70, 50):
        metrics.record(PERSON, "fast", "build-time", value)
        clock.advance(hours=1)
    before = metrics.views("fast")[0]
    metrics.record(PERSON, "fast", "build-time", 500, at="2026-01-01")
    [view] = metrics.views("fast")
    assert view.current == before.current
    assert (view.status, view.trend, view.stale) == ("on_target", "improving", False)
    assert view.values == [500, 90, 70, 50]


@pytest.mark.spec("M7")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, MAX_VALUE * 2, True, "72", None])
def test_what_is_no_number_is_not_recorded(metrics: Metrics, store: Store, value: float) -> None:
    with pytest.raises(InvalidInput, match="value:"):
        metrics.record(PERSON, "fast", "build-time", value)
    assert metrics.views("fast")[0].readings == []
    assert trail_agrees(store)


@pytest.mark.spec("M7")
@pytest.mark.parametrize(
    "at",
    [
        *("tomorrow", "", "2026-02-20T09:00", "2026-13-01", "0001-01-01T00:00+14:00", "2026-02-21T09:05:01Z"),
        datetime(2026, 2, 21, 8, 0),
        datetime(2026, 2, 22, 8, 0, tzinfo=UTC),
    ],
)
def test_a_time_that_cannot_be_is_refused(metrics: Metrics, at: str | datetime) -> None:
    with pytest.raises(InvalidInput, match=r"^at: "):
        metrics.record(PERSON, "fast", "build-time", 72, at=at)
    assert metrics.views("fast")[0].readings == []


def test_clocks_may_disagree_a_little(metrics: Metrics, clock: StoppedClock) -> None:
    reading = metrics.record(PERSON, "fast", "build-time", 72, at=clock.now + timedelta(minutes=5))
    assert reading.at == "2026-02-21T09:05:00.000000Z"
    assert not metrics.views("fast")[0].stale


def test_notes_are_checked(metrics: Metrics) -> None:
    for note in ("x" * 2001, "\x1b[31m", "\x00"):
        with pytest.raises(InvalidInput, match="note:"):
            metrics.record(PERSON, "fast", "build-time", 72, note=note)


@pytest.mark.spec("M7")
def test_whoever_does_the_work_does_not_measure_it(metrics: Metrics) -> None:
    for role in (Role.OWNER, Role.WORKER, Role.SUPERVISOR):
        with pytest.raises(NotAllowed):
            metrics.record(MissionScope("c", Actor(role, "x")), "fast", "build-time", 1)
    for role in (Role.LEAD, Role.SYSTEM, Role.PERSON):
        metrics.record(MissionScope("c", Actor(role, "x")), "fast", "build-time", 1)
    elsewhere = MissionScope("c", Actor(Role.LEAD, "x"), mission_slug="other")
    with pytest.raises(NotAllowed, match="other"):
        metrics.record(elsewhere, "fast", "build-time", 1)


def test_a_wrong_name_is_told_with_the_right_one(metrics: Metrics) -> None:
    with pytest.raises(NotFound, match="Did you mean build-time"):
        metrics.record(PERSON, "fast", "buildtime", 1)
    with pytest.raises(NotFound, match="no mission 'fats'"):
        metrics.views("fats")
    with pytest.raises(NotFound):
        metrics.record_failure(PERSON, "nobody", "x")


def test_what_is_archived_changes_no_more(metrics: Metrics, store: Store) -> None:
    metrics.record(PERSON, "fast", "build-time", 72)
    measured(store, {**BUILD_TIME, "slug": "other"})
    with pytest.raises(IllegalTransition, match="archived"):
        metrics.record(PERSON, "fast", "build-time", 73)
    assert [view.metric.slug for view in metrics.views("fast")] == ["other"]
    assert metrics.views("fast", "build-time")[0].values == [72]
    with pytest.raises(IllegalTransition, match="archived"):
        metrics.find_collectable("fast", ["build-time"])
    Missions(store, Conversations(store)).archive(PERSON, "fast", "over")
    with pytest.raises(IllegalTransition, match="archived"):
        metrics.record(PERSON, "fast", "other", 73)
    with pytest.raises(IllegalTransition, match="archived"):
        metrics.find_collectable("fast")


@pytest.mark.spec("M7")
def test_readings_stay_when_a_mission_changes(metrics: Metrics, store: Store) -> None:
    metrics.record(PERSON, "fast", "build-time", 72)
    assert metrics.views("fast")[0].status == "warning"
    measured(store, {**BUILD_TIME, "target": 80})
    [view] = metrics.views("fast")
    assert (view.status, view.values) == ("on_target", [72])


@pytest.mark.spec("M7")
def test_a_failure_leaves_the_readings_alone_and_is_over_with_the_next_collection(
    metrics: Metrics, store: Store, clock: StoppedClock
) -> None:
    metrics.record(PERSON, "fast", "build-time", 72)
    metric = metrics.views("fast")[0].metric
    failed = metrics.record_failure(PERSON, metric.id, "It \x1b[31mhung\x00.")
    assert failed.last_error == "It \\x1b[31mhung\\x00."
    [view] = metrics.views("fast")
    assert (view.values, view.metric.last_error, view.metric.last_error_at) == (
        [72],
        failed.last_error,
        "2026-02-21T09:00:00.000000Z",
    )
    # What somebody knows says nothing about the collector.
    metrics.record(PERSON, "fast", "build-time", 73)
    assert metrics.views("fast")[0].metric.last_error is not None
    metrics.record(MissionScope("c", SYSTEM), "fast", "build-time", 74, source="command")
    assert metrics.views("fast")[0].metric.last_error is None
    assert trail_agrees(store)


def test_a_long_failure_is_cut(metrics: Metrics) -> None:
    metric = metrics.views("fast")[0].metric
    assert len(str(metrics.record_failure(PERSON, metric.id, "x" * 100_000).last_error)) == 2000


def test_a_reading_that_was_tampered_with_differs_from_the_trail(metrics: Metrics, store: Store) -> None:
    mission_id = metrics.record(PERSON, "fast", "build-time", 72).mission_id
    changes = ("UPDATE metric_readings SET value = 59 RETURNING id", "DELETE FROM metric_readings RETURNING id")
    for change in changes:
        with store.write() as tx:
            tx.raw(change)
        with store.read() as tx:
            events = event_log.read_stream(tx, event_stream(mission_id))
            [told] = mission_replay.compare(tx, mission_id, events)
        assert "differs from its events" in told


@pytest.mark.spec("M15", "X5")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE metric_rollups SET high = 99 WHERE seconds = 3600 RETURNING period", "rollups"),
        ("DELETE FROM metric_rollups WHERE seconds = 86400 RETURNING period", "rollups"),
        ("UPDATE metric_rollups SET total = total + 0.01 WHERE seconds = 60 RETURNING period", "rollups"),
        ("INSERT INTO metric_marks SELECT id, '2026', 'x' FROM metrics RETURNING at", "marks"),
    ],
)
def test_what_plots_are_made_from_is_compared_with_the_events(
    metrics: Metrics, store: Store, change: str, problem: str
) -> None:
    for value in (72, 0.1, -5):
        mission_id = metrics.record(PERSON, "fast", "build-time", value).mission_id
    with store.write() as tx:
        tx.raw(change)
    with store.read() as tx:
        [told] = mission_replay.compare(tx, mission_id, event_log.read_stream(tx, event_stream(mission_id)))
    assert f"the {problem} of its metrics differ" in told


def test_the_newest_are_shown(metrics: Metrics) -> None:
    for value in range(30):
        metrics.record(PERSON, "fast", "build-time", value)
    assert metrics.views("fast", limit=12)[0].values == list(range(18, 30))
    # A trend needs its ten, whatever is asked for.
    assert len(metrics.views("fast", limit=1)[0].values) == 10
    told = metrics.views("fast", limit=12)[0].as_json()
    assert json.loads(json.dumps(told)) == told
    assert told["current"] == 29
    assert len(told["readings"]) == 12


def test_readings_of_many_writers_have_each_their_place(metrics: Metrics, store: Store) -> None:
    together = Barrier(8)
    failures: list[PunchlistError] = []

    def write(number: int) -> None:
        together.wait()
        try:
            for value in range(5):
                metrics.record(PERSON, "fast", "build-time", number * 10 + value)
        except PunchlistError as error:
            failures.append(error)

    threads = [Thread(target=write, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    readings = metrics.views("fast", limit=100)[0].readings
    assert [reading.position for reading in readings] == list(range(1, 41))
    assert trail_agrees(store)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(-MAX_VALUE, MAX_VALUE, allow_subnormal=True))
def test_a_value_comes_back_as_it_was(metrics: Metrics, store: Store, value: float) -> None:
    metrics.record(PERSON, "fast", "build-time", value)
    assert metrics.views("fast")[0].values[-1] == value
    assert trail_agrees(store)


# --- collecting ---------------------------------------------------------------------------------------------------


def collecting(store: Store, workspace: Path, *, trusted: bool = True) -> MetricCollection:
    def trust_of(mission: Mission) -> bool:
        return trusted

    return MetricCollection(Metrics(store), workspace, {"PATH": "/usr/bin:/bin"}, trust_of)


@pytest.mark.spec("M7")
def test_collectors_bring_readings_and_one_that_fails_stops_no_other(store: Store, tmp_path: Path) -> None:
    measured(
        store,
        BUILD_TIME,
        collected("a", type="command", command=["echo", "72"]),
        collected("b", type="command", command=["false"]),
        collected("c", type="file", path="value.txt"),
    )
    (tmp_path / "value.txt").write_text("7.5\n")
    came = collecting(store, tmp_path).collect(PERSON, "fast")
    assert [(one.metric.slug, one.value) for one in came] == [("a", 72), ("b", None), ("c", 7.5)]
    assert came[1].error == "b: the command ended with exit code 1."
    views = {view.metric.slug: view for view in Metrics(store).views("fast")}
    assert [reading.source for reading in views["a"].readings] == ["command"]
    assert views["b"].metric.last_error == came[1].error
    assert views["b"].readings == views["build-time"].readings == []
    assert trail_agrees(store)


@pytest.mark.spec("M7", "M9")
def test_collecting_that_was_interrupted_and_is_done_again_leaves_one_reading(store: Store, tmp_path: Path) -> None:
    measured(store, collected("a", type="file", path="value.txt"))
    (tmp_path / "value.txt").write_text("7.5\n")
    for run in ("run 1", "run 1", "run 2", "run 1"):
        collecting(store, tmp_path).collect(PERSON, "fast", once=run)
    (view,) = Metrics(store).views("fast")
    assert [reading.position for reading in view.readings] == [1, 2]
    assert trail_agrees(store)


@pytest.mark.spec("M7")
def test_what_runs_something_runs_only_when_it_is_trusted(store: Store, tmp_path: Path) -> None:
    measured(
        store,
        collected("a", type="command", command=["touch", "was-run"]),
        collected("b", type="http", url="http://127.0.0.1:1/", pointer=""),
        collected("c", type="python", entryPoint="os:getpid"),
        collected("d", type="file", path="value.txt"),
    )
    (tmp_path / "value.txt").write_text("7.5\n")
    came = collecting(store, tmp_path, trusted=False).collect(PERSON, "fast")
    assert [one.value for one in came] == [None, None, None, 7.5]
    assert all("`punchlist mission trust fast`" in str(one.error) for one in came[:3])
    assert not (tmp_path / "was-run").exists()


@pytest.mark.spec("M7")
def test_what_runs_is_what_was_trusted_and_not_what_a_row_says(store: Store, tmp_path: Path) -> None:
    measured(store, collected("a", type="command", command=["echo", "1"]))
    with store.write() as tx:
        tx.raw('UPDATE metrics SET collector = \'{"type":"command","command":["touch","was-run"]}\' RETURNING id')
    [came] = collecting(store, tmp_path).collect(PERSON, "fast")
    assert came.value == 1
    assert not (tmp_path / "was-run").exists()


@pytest.mark.spec("M7")
def test_what_is_recorded_by_hand_is_not_collected(store: Store, tmp_path: Path) -> None:
    measured(store)
    assert collecting(store, tmp_path).collect(PERSON, "fast") == []
    [came] = collecting(store, tmp_path).collect(PERSON, "fast", ["build-time"])
    assert came.error == "build-time is recorded manually: `punchlist mission metric record fast build-time VALUE`."
    assert Metrics(store).views("fast")[0].metric.last_error is None
