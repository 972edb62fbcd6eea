"""What happens by itself happens once, whoever looks and whatever their clocks say (M12)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from threading import Barrier
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import Team, developer_experience

from punchlist.audit.check import check
from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.engine.periodic import PeriodicTasks, enqueue_cycle
from punchlist.engine.workflows.cycle import is_skipped, last_cycle
from punchlist.errors import Conflict
from punchlist.kernel.clock import timestamp
from punchlist.missions.changes import MissionAction
from punchlist.missions.planning.cadence import due_tick
from punchlist.missions.planning.retries import DELAYS
from punchlist.missions.service import Missions
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.runs.queue import RunQueue
from punchlist.runs.service import Runs
from punchlist.runs.workers import WorkerRegistration
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

CRON: Final = "*/30 * * * *"


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store, cadence={"cron": CRON, "timezone": "UTC"})


@pytest.fixture
def other_clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def other_store(database: str, store: Store, other_clock: StoppedClock) -> Iterator[Store]:
    """The same database, as another machine sees it."""
    del store
    opened = open_store(database, clock=other_clock)
    yield opened
    opened.close()


def periodic_tasks(store: Store) -> PeriodicTasks:
    parts = SimpleNamespace(store=store, missions=Missions(store, Conversations(store)))
    return PeriodicTasks(cast("Any", parts), "test")


def cycles(store: Store) -> list[Run]:
    """Oldest first."""
    return [run for run in reversed(Runs(store).list(ended=True, limit=1_000)) if run.kind == "cycle"]


def end_cycles(team: Team) -> None:
    for run in cycles(team.store):
        if run.ended_at is None:
            Runs(team.store).stop(team.system, run.id, "it is over")


@pytest.mark.spec("M12")
@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(days=1)], ids=["hours", "days"])
def test_clocks_that_jump_both_ways_begin_every_cycle_once(
    team: Team, clock: StoppedClock, other_store: Store, other_clock: StoppedClock, jump: timedelta
) -> None:
    """Two workers, one of which has a clock that is sometimes ahead and sometimes behind."""
    right, wrong, dice = periodic_tasks(team.store), periodic_tasks(other_store), Random(6)
    start = furthest = clock.now
    for minutes in range(0, 4 * 60, 10):
        clock.now = start + timedelta(minutes=minutes)
        other_clock.now = clock.now + dice.choice([jump, -jump, timedelta()])
        furthest = max(furthest, clock.now, other_clock.now)
        for one in dice.sample([right, wrong], 2):
            asyncio.run(one.run())
        # The newest moment that any clock has shown has had its cycle, or joined the one that was open.
        assert team.mission.last_tick == due_tick(CRON, "UTC", None, timestamp(start), furthest)
        if dice.random() < 0.7:
            end_cycles(team)
    begun = [run.id for run in cycles(team.store)]
    assert begun
    assert len(begun) == len(set(begun))
    # Every real tick had its cycle too, or joined one that was open: a clock that is ahead takes nothing away.
    taken = [event.reason for event in team.trail() if event.action == MissionAction.TAKE_TICK]
    real = [timestamp(start + timedelta(minutes=minutes)) for minutes in range(30, 4 * 60, 30)]
    assert [tick for tick in real if taken.count(f"the cycle of {tick}") != 1] == []
    assert len(taken) == len(set(taken))
    assert check(team.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M12")
@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(days=1)], ids=["hours", "days"])
def test_a_clock_that_was_ahead_and_is_set_back_loses_no_cycle(
    team: Team, clock: StoppedClock, jump: timedelta
) -> None:
    worker, start = periodic_tasks(team.store), clock.now
    clock.now = start + jump + timedelta(minutes=1)
    asyncio.run(worker.run())
    end_cycles(team)
    ahead = team.mission.last_tick
    # Restarted with the right time, past the moment that the wrong clock had shown.
    worker = periodic_tasks(team.store)
    count = 2 * int(jump / timedelta(minutes=30))
    for number in range(1, count + 1):
        clock.now = start + number * timedelta(minutes=30)
        for _ in range(2):
            asyncio.run(worker.run())
        end_cycles(team)
    begun = sorted(run.id.removeprefix(f"cycle-{team.slug}-") for run in cycles(team.store))
    assert ahead in begun
    assert begun == [timestamp(start + number * timedelta(minutes=30)) for number in range(1, count + 1)]


@pytest.mark.spec("M12")
@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(days=1)], ids=["hours", "days"])
def test_a_clock_that_is_set_back_repeats_no_cycle(team: Team, clock: StoppedClock, jump: timedelta) -> None:
    worker, start = periodic_tasks(team.store), clock.now
    ticks = int(jump / timedelta(minutes=30)) + 2
    for number in range(1, ticks):
        clock.now = start + number * timedelta(minutes=30)
        asyncio.run(worker.run())
        end_cycles(team)
    before = [run.id for run in cycles(team.store)]
    for number in range(1, ticks):
        clock.now = start + number * timedelta(minutes=30)
        asyncio.run(periodic_tasks(team.store).run())
        end_cycles(team)
    assert [run.id for run in cycles(team.store)] == before


@pytest.mark.spec("M12")
def test_many_who_look_at_once_begin_one_cycle(team: Team, clock: StoppedClock) -> None:
    clock.advance(minutes=31)
    for _ in range(3):
        crowd = [periodic_tasks(team.store) for _ in range(8)]
        start = Barrier(len(crowd))

        def look(one: PeriodicTasks, start: Barrier = start) -> None:
            start.wait(30)
            asyncio.run(one.run())

        with ThreadPoolExecutor(len(crowd)) as pool:
            list(pool.map(look, crowd))
        end_cycles(team)
        clock.advance(minutes=30)
    assert len(cycles(team.store)) == 3


@pytest.mark.spec("M12")
def test_two_cycles_at_once_are_refused(team: Team) -> None:
    start = Barrier(8)

    def try_it(_: int) -> str:
        start.wait(30)
        try:
            return enqueue_cycle(team.store, team.person, team.mission).status.value
        except Conflict as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        came = list(pool.map(try_it, range(8)))
    assert came.count("queued") == 1, came
    assert len(cycles(team.store)) == 1
    assert sum("is still open" in text for text in came) == 7
    end_cycles(team)
    assert enqueue_cycle(team.store, team.person, team.mission).status == "queued"


@pytest.mark.spec("M10")
def test_what_is_written_in_a_chat_is_answered_by_one_run(team: Team) -> None:
    chat = team.mission.conversation_id
    for number in range(3):
        MessageQueue(team.store).add(Scope(chat, team.person.actor), f"Message {number}")
    crowd = [periodic_tasks(team.store) for _ in range(8)]
    start = Barrier(len(crowd))

    def look(one: PeriodicTasks) -> None:
        start.wait(30)
        asyncio.run(one.run())

    with ThreadPoolExecutor(len(crowd)) as pool:
        list(pool.map(look, crowd))
    assert [run.kind for run in Runs(team.store).list(ended=True)] == ["chat"]


# --- failed cycles ---------------------------------------------------------------------------------------


def failed_cycle(team: Team) -> Run:
    run = enqueue_cycle(team.store, team.system, team.mission)
    fail(team, run)
    return run


def fail(team: Team, run: Run) -> None:
    queue = RunQueue(team.store, "worker")
    assert queue.dispatch(run)
    assert queue.begin(run.id)
    queue.fail(run.id, "the model is busy")


@pytest.mark.spec("M12")
def test_a_failed_cycle_is_retried_after_minutes_and_less_often_each_time(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store)
    run, worker, runs = failed_cycle(team), periodic_tasks(team.store), Runs(team.store)
    for number, delay in enumerate(DELAYS, start=1):
        clock.now += delay - timedelta(seconds=1)
        asyncio.run(worker.run())
        assert runs.get(run.id).status == "failed"
        clock.now += timedelta(seconds=1)
        for _ in range(2):
            asyncio.run(worker.run())
        assert (runs.get(run.id).status, runs.get(run.id).leg) == ("queued", number)
        fail(team, runs.get(run.id))
    clock.now += timedelta(hours=2)
    asyncio.run(worker.run())
    assert runs.get(run.id).status == "failed"
    assert check(team.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("M12")
def test_a_failed_cycle_is_not_retried_when_a_newer_one_exists(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store)
    old = failed_cycle(team)
    clock.now += timedelta(seconds=1)
    enqueue_cycle(team.store, team.system, team.mission)
    clock.now += timedelta(minutes=30)
    asyncio.run(periodic_tasks(team.store).run())
    assert Runs(team.store).get(old.id).status == "failed"


@pytest.mark.spec("M12")
def test_since_means_since_the_last_successful_cycle(store: Store, clock: StoppedClock) -> None:
    """One whose review was left out does not count: the Lead has not seen what happened until then."""
    team = developer_experience(store)
    queue = RunQueue(team.store, "worker")

    def done(reviewed: bool) -> Run:
        clock.now += timedelta(hours=1)
        run = enqueue_cycle(team.store, team.system, team.mission)
        assert queue.dispatch(run)
        assert queue.begin(run.id)
        if reviewed:
            queue.set_turn(run.id, Conversations(store).open_turn(team.lead).id)
        return queue.finish(run.id, "done")

    good = done(reviewed=True)
    done(reviewed=False)
    clock.now += timedelta(hours=1)
    failed_cycle(team)
    assert last_cycle(team.store, team.mission) == good.created_at


@pytest.mark.spec("M12")
def test_the_first_worker_that_lives_does_the_periodic_tasks(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store, cadence={"cron": CRON, "timezone": "UTC"})
    WorkerRegistration(store, "elsewhere:1:1", 8).renew()
    clock.now += timedelta(days=1)
    WorkerRegistration(store, "elsewhere:1:1", 8).renew()
    clock.now += timedelta(seconds=50)
    WorkerRegistration(store, "test", 8).renew()
    asyncio.run(periodic_tasks(store).run())
    assert Runs(store).list(mission_id=team.mission.id) == []
    # The other worker is not seen any more.
    clock.now += timedelta(seconds=11)
    asyncio.run(periodic_tasks(store).run())
    assert [run.kind for run in Runs(store).list(mission_id=team.mission.id)] == [RunKind.CYCLE]


@pytest.mark.spec("M12")
def test_a_cycle_that_rests_for_long_does_not_stop_the_next_ones(store: Store, clock: StoppedClock) -> None:
    team = developer_experience(store)
    queue = RunQueue(team.store, "worker")
    for _ in range(5):
        run = enqueue_cycle(team.store, team.system, team.mission)
        queue.dispatch(run)
        queue.begin(run.id)
        queue.pause(run.id)
        with pytest.raises(Conflict, match="is still open"):
            enqueue_cycle(team.store, team.system, team.mission)
        clock.now += timedelta(minutes=11)
    assert enqueue_cycle(team.store, team.system, team.mission).status is RunStatus.QUEUED


@pytest.mark.spec("M12")
def test_a_cycle_goes_on_without_planning_that_rests_for_long(store: Store) -> None:
    team = developer_experience(store)
    run = enqueue_cycle(team.store, team.system, team.mission)
    resting = run._replace(status=RunStatus.WAITING, changed_at="2026-01-01T00:00:00.000Z")
    resting = resting._replace(created_at="2026-01-01T00:00:00.000Z")
    assert is_skipped(resting, "2026-01-01T00:10:00.000Z")
    assert not is_skipped(resting, "2025-12-31T00:10:00.000Z")
    assert not is_skipped(resting._replace(status=RunStatus.RUNNING), "2026-01-01T00:10:00.000Z")
