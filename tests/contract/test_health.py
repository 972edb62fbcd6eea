"""Health: live workers, missed cycles, and no request to a model while nothing is due (I3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Office
from tests.contract.missions import developer_experience

from punchlist.models.model import ModelRequest, Reply
from punchlist.runs.workers import WorkerRegistration
from punchlist.storage.store import Store
from punchlist.views.health import MAX_MISSED, count_missed, read_health

pytestmark = pytest.mark.spec("I3")


def test_workers_are_alive_while_they_renew_their_row(store: Store, clock: StoppedClock) -> None:
    worker = WorkerRegistration(store, "host:1", 8)
    worker.renew()
    assert [each.id for each in read_health(store).workers] == ["host:1"]
    clock.advance(seconds=61)
    assert read_health(store).workers == []
    worker.renew()
    assert len(read_health(store).workers) == 1
    worker.end()
    assert read_health(store).workers == []


def test_a_mission_without_a_worker_and_without_cycles_says_so(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, cadence={"cron": "0 9 * * *", "timezone": "UTC"})
    clock.advance(days=3, minutes=11)
    [health] = read_health(store, team.slug).missions
    assert (health.missed_cycles, health.last_cycle, health.next_cycle) == (3, None, "2026-02-25T09:00:00.000000Z")
    assert [problem.split(".")[0] for problem in health.problems] == [
        "No worker is alive, so no work is done",
        "Cycles missed since the last successful one: 3",
    ]


def test_missed_cycles_are_counted_up_to_a_limit(clock: StoppedClock) -> None:
    assert count_missed("* * * * *", "UTC", "2020-01-01T00:00:00.000000Z", clock.now) == MAX_MISSED
    assert count_missed(None, "UTC", "2020-01-01T00:00:00.000000Z", clock.now) == 0


def test_no_request_is_sent_while_nothing_is_due(tmp_path: Path, database: str, clock: StoppedClock) -> None:
    def answers(agent: str, request: ModelRequest) -> Reply:
        return Reply("Nothing to do.")

    ours = Office(tmp_path / "project", database, clock, answers, cadence={"cron": "0 9 1 * *", "timezone": "UTC"})
    for _ in range(3):
        ours.clock.advance(days=2)
        ours.work()
    assert ours.asked == []
    clock.advance(days=3)
    ours.work()
    requests = len(ours.asked)
    [health] = read_health(ours.services.store, ours.team.slug).missions
    assert requests > 0
    assert (health.today.requests, health.missed_cycles) == (requests, 0)
    ours.close()
