"""Health: live workers, missed cycles, and no request to a model while nothing is due (I3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import StoppedClock
from tests.contract.mission_office import Answers, Office, ScriptedModel
from tests.contract.missions import Team, developer_experience

from punchlist.engine.periodic import enqueue_cycle
from punchlist.models.model import ModelInfo, ModelRequest, Reply
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.runs.workers import WorkerRegistration
from punchlist.storage.store import Store
from punchlist.surfaces.cli.mission_view import health_lines
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


def cycle_at(team: Team, created: str) -> str:
    id = f"cycle-{team.slug}-{created}"
    enqueue_cycle(team.store, team.system, team.mission, id)
    return id


def test_times_that_fall_into_an_open_cycle_are_not_missed(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, cadence={"cron": "0 * * * *", "timezone": "UTC"})
    queue = RunQueue(store, "worker")

    def missed() -> int:
        [health] = read_health(store, team.slug).missions
        return health.missed_cycles

    clock.advance(hours=1, minutes=1)
    id = cycle_at(team, "2026-02-21T10:00:00.000000Z")
    clock.advance(hours=3)
    # It works for three hours, also on the time that it was started for.
    assert missed() == 0
    run = Runs(store).get(id)
    assert queue.dispatch(run)
    assert queue.begin(id)
    clock.advance(hours=1)
    assert missed() == 0
    # One that waits for a person leaves the later times to others.
    queue.wait(id, "the planning of build")
    clock.advance(hours=2, minutes=10)
    assert missed() == 2
    queue.wake(id, "it continues")
    queue.finish(id, "Done.")
    clock.advance(minutes=30)
    assert missed() == 0
    clock.advance(hours=1)
    assert missed() == 1


def test_a_failed_cycle_is_a_problem_before_the_next_time_is_missed(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, cadence={"cron": "0 9 * * *", "timezone": "UTC"})
    clock.advance(days=1, minutes=1)
    id = cycle_at(team, "2026-02-22T09:00:00.000000Z")
    queue = RunQueue(store, "worker")
    assert queue.dispatch(Runs(store).get(id))
    assert queue.begin(id)
    queue.fail(id, "the model refused the key")
    [health] = read_health(store, team.slug).missions
    assert health.missed_cycles == 0
    assert health.other_problems == (
        "The newest cycle failed at 2026-02-22T09:01:00.000000Z: the model refused the key.",
    )


@pytest.mark.spec("M19")
def test_a_cost_limit_that_cannot_be_enforced_is_reported_when_a_worker_starts(
    tmp_path: Path, database: str, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedModel, "__init__", unpriced_model)
    ours = Office(tmp_path / "project", database, clock, lambda *_: Reply("Done."), limits={"costPerDay": 5})
    ours.work()
    [said] = [line for line in ours.said if "price" in line]
    assert said == (
        f"The price of scripted is unknown, so the cost limits of mission {ours.team.slug!r} cannot be enforced. "
        "Limit tokens instead (tokensPerDay, tokensPerTodo)."
    )
    ours.close()


@pytest.mark.spec("M19")
def test_a_cost_at_an_unknown_price_is_not_shown_as_zero(
    tmp_path: Path, database: str, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Office(tmp_path / "project", database, clock, lambda *_: Reply("Done."))
    with monkeypatch.context() as patched:
        patched.setattr(ScriptedModel, "__init__", unpriced_model)
        enqueue_cycle(ours.services.store, ours.team.person, ours.team.mission)
        ours.work()
    assert [line for line in ours.said if "price" in line] == [], "without a limit there is nothing to enforce"

    def shown() -> str:
        [health] = read_health(ours.services.store, ours.team.slug).missions
        assert health.as_json()["today"]["unpriced"] == 3
        return next(line for line in health_lines(health) if line.startswith("today"))

    assert shown() == "today    3 requests, 300 tokens, cost unknown"
    enqueue_cycle(ours.services.store, ours.team.person, ours.team.mission, "another")
    ours.work()
    assert shown() == "today    6 requests, 600 tokens, $0.30 and 3 requests at an unknown price"
    ours.close()


def unpriced_model(self: ScriptedModel, agent: str, answers: Answers, asked: list[tuple[str, ModelRequest]]) -> None:
    self.agent, self.answers, self.asked = agent, answers, asked
    self.info = ModelInfo(200_000)
