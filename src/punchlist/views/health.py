"""Health of missions: live workers, the last successful cycle, missed cycles, the next one, and what is spent (I3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions import repository as mission_repository
from punchlist.missions.budgets import repository as budget_repository
from punchlist.missions.budgets.repository import BudgetStop, Spend
from punchlist.missions.budgets.service import spent_today
from punchlist.missions.changes import find_mission
from punchlist.missions.config.policy import MissionLimits, cadence_of, limits_of, next_cycle
from punchlist.missions.model import Mission
from punchlist.missions.planning.cadence import next_tick
from punchlist.missions.planning.skipped_reviews import MAX_RESTING, waiting_reviews
from punchlist.runs.lifecycle import OPEN, RESTING, RunStatus
from punchlist.runs.model import Run
from punchlist.runs.worker_repository import WorkerRecord
from punchlist.runs.workers import live_workers
from punchlist.storage.store import Store, Transaction
from punchlist.views import health_repository

CYCLE_GRACE: Final = timedelta(minutes=10)
"""How late a cycle may be before it counts as missed."""
_ALWAYS: Final = "~"
"""Later than every timestamp."""
MAX_MISSED: Final = 100
"""Missed cycles are counted up to this number."""


@dataclass(frozen=True, slots=True)
class MissionHealth:
    mission: Mission
    workers: int
    """Live workers. Every worker serves all missions."""
    last_cycle: str | None
    """When the last successful cycle ended."""
    newest_cycle: Run | None
    waiting_reviews: Sequence[Run]
    """Cycles whose review waits for a person or is paused, oldest first."""
    missed_cycles: int
    """Times of the cadence since the last successful cycle that had none; at most `MAX_MISSED`. A time that fell into
    an open cycle is served by that cycle."""
    next_cycle: str | None
    queued_runs: int
    open_runs: int
    today: Spend
    """What the mission used today, in its time zone."""
    limits: MissionLimits
    stops: Sequence[BudgetStop]
    """Budgets that are reached now."""

    @property
    def problems(self) -> tuple[str, ...]:
        return (*_worker_problem(self), *self.other_problems)

    @property
    def other_problems(self) -> tuple[str, ...]:
        """Without that no worker is alive."""
        return tuple(_problems(self))

    def as_json(self) -> dict[str, Any]:
        mission, newest = self.mission, self.newest_cycle
        return {
            "mission": mission.slug,
            "status": mission.status,
            "paused": _paused_json(mission),
            **camel_json(self, "workers", "last_cycle", "missed_cycles", "next_cycle", "queued_runs", "open_runs"),
            "waitingReviews": [camel_json(run, "id", "status", "why", "changed_at") for run in self.waiting_reviews],
            "newestCycle": newest and {"id": newest.id, "status": newest.status.value, "why": newest.why},
            "today": camel_json(self.today),
            "limits": {name: value for name, value in camel_json(self.limits).items() if value is not None},
            "budgetsReached": [camel_json(stop, "id", "todo_id", "explanation", "reached_at") for stop in self.stops],
            "problems": list(self.problems),
        }


def has_worker(store: Store) -> bool:
    with store.read() as tx:
        return bool(live_workers(tx, parse_timestamp(tx.now())))


@dataclass(frozen=True, slots=True)
class SystemHealth:
    workers: Sequence[WorkerRecord]
    missions: Sequence[MissionHealth]
    """Active ones, by slug."""

    def as_json(self) -> dict[str, Any]:
        return {
            "workers": [camel_json(worker, "id", "slots", "started_at", "seen_at") for worker in self.workers],
            "missions": [mission.as_json() for mission in self.missions],
        }


def read_health(store: Store, slug: str | None = None) -> SystemHealth:
    """The health of one mission, archived or not, or of all active ones."""
    now = store.clock()
    with store.read() as tx:
        workers = live_workers(tx, now)
        found = [find_mission(tx, slug)] if slug is not None else mission_repository.all_missions(tx)
        missions = [mission for mission in found if slug is not None or mission.status == "active"]
        return SystemHealth(workers, [_health(tx, mission, len(workers), now) for mission in missions])


def _health(tx: Transaction, mission: Mission, workers: int, now: datetime) -> MissionHealth:
    done, newest = health_repository.last_done_cycle(tx, mission.id), health_repository.newest_cycle(tx, mission.id)
    queued, open_runs = health_repository.count_runs(tx, mission.id) or (0, 0)
    active = mission.status == "active" and mission.paused_at is None
    cadence = cadence_of(mission)
    # The cycle served the times until its end.
    since = (done.ended_at or done.created_at) if done else mission.created_at
    return MissionHealth(
        mission,
        workers,
        done and done.ended_at,
        newest,
        waiting_reviews(tx, mission.id),
        count_missed(cadence.cron, cadence.timezone, since, now, _served(newest)) if active else 0,
        next_cycle(mission, now),
        int(queued or 0),
        int(open_runs or 0),
        spent_today(tx, mission),
        limits_of(mission),
        budget_repository.open_stops(tx, mission.id),
    )


def _served(newest: Run | None) -> tuple[str, str] | None:
    """The times that an open cycle serves: those since it began, and while it has not rested for long."""
    if newest is None or newest.status not in OPEN:
        return None
    begun = newest.created_at
    # The id ends with the time that the cycle was started for, unless a person started it.
    with suppress(ValueError):
        begun = min(begun, timestamp(parse_timestamp(newest.id[-len(begun) :])))
    if newest.status not in RESTING:
        return begun, _ALWAYS
    return begun, timestamp(parse_timestamp(newest.changed_at) + CYCLE_GRACE)


def count_missed(
    cron: str | None, timezone: str, since: str, now: datetime, served: tuple[str, str] | None = None
) -> int:
    """Times of a cadence after `since` that are over for longer than the grace period, without those that an open
    cycle serves: from the first of `served` to the second."""
    if cron is None:
        return 0
    until, at, missed = now - CYCLE_GRACE, parse_timestamp(since), 0
    while missed < MAX_MISSED:
        tick = next_tick(cron, timezone, at)
        if parse_timestamp(tick) > until:
            break
        if served is not None and served[0] <= tick <= served[1]:
            if served[1] == _ALWAYS:
                break
            at = max(parse_timestamp(tick), parse_timestamp(served[1]))
        else:
            at = parse_timestamp(tick)
            missed += 1
    return missed


def _worker_problem(health: MissionHealth) -> Iterator[str]:
    if health.workers or health.mission.status != "active" or health.mission.paused_at is not None:
        return
    number = "1 run is" if health.queued_runs == 1 else f"{health.queued_runs} runs are"
    waiting = f" {number} queued." if health.queued_runs else ""
    yield f"No worker is alive, so no work is done.{waiting} Start one with `punchlist worker` or `punchlist serve`."


def _problems(health: MissionHealth) -> Iterator[str]:
    mission = health.mission
    if mission.status != "active":
        return
    if mission.paused_at is not None:
        yield f"Paused since {mission.paused_at} by {mission.paused_by}: {mission.pause_reason}."
        return
    if health.missed_cycles:
        number = f"at least {MAX_MISSED}" if health.missed_cycles == MAX_MISSED else str(health.missed_cycles)
        why = f": {health.newest_cycle.why}" if health.newest_cycle and health.newest_cycle.why else ""
        state = f" The newest cycle is {health.newest_cycle.status}{why}." if health.newest_cycle else ""
        yield f"Cycles missed since the last successful one: {number}.{state}"
    elif health.newest_cycle is not None and health.newest_cycle.status is RunStatus.FAILED:
        yield f"The newest cycle failed at {health.newest_cycle.ended_at}: {health.newest_cycle.why}."
    if len(health.waiting_reviews) >= MAX_RESTING:
        oldest = health.waiting_reviews[0]
        yield (
            f"{len(health.waiting_reviews)} reviews of cycles wait for a person, so later cycles have none. The oldest "
            f"is {oldest.status} since {oldest.changed_at}: {oldest.why}. Answer with `punchlist inbox`."
        )
    for stop in health.stops:
        until = "tomorrow" if stop.todo_id is None else "when the limit of the todo is raised"
        yield f"Budget reached: {stop.explanation}. Work continues {until}."


def _paused_json(mission: Mission) -> dict[str, Any] | None:
    if mission.paused_at is None:
        return None
    return {"at": mission.paused_at, "by": mission.paused_by, "reason": mission.pause_reason}
