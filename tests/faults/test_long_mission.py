"""A mission over 120 simulated days with every fault: nothing is forgotten, doubled or left without a word.

Real workers, two of them, which are killed again and again; a real database of each kind; only the clock and the model
are made up. TRUST 39 and 41.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faults.long_mission import (
    ASKS_IN_PLANNING,
    DIRECTIVE,
    PILLARS,
    SLUG,
    MovedClock,
    is_lead,
    passes,
    requests,
)
from tests.faults.mission_worker import PERSON, Life, Nursery, Task, until
from tests.faults.processes import spin

from punchlist.app import Services
from punchlist.audit.check import check
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.config import file
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.runs.queue import RunQueue
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION

MAX_STATE_TOKENS: Final = 6_000
OUTAGE: Final = timedelta(hours=1)
WITHIN: Final = timedelta(minutes=70)
"""A model that is away for an hour delays work by this much at most: the hour, and one step of the back-off."""
GRACE: Final = timedelta(minutes=11)
PATIENCE: Final = 60.0
MISSION: Final[dict[str, Any]] = {
    "name": "Long",
    "slug": SLUG,
    "cadence": {"cron": "0 9 * * *", "timezone": "UTC"},
    "pillars": [
        {
            "name": slug.capitalize(),
            "slug": slug,
            "metrics": [{"name": f"{slug} time", "slug": f"{slug}-time", "target": 60, "direction": "down"}],
        }
        for slug in PILLARS
    ],
}


class LongMission:
    """The mission, its two workers, and a person who looks in once a day."""

    def __init__(self, nursery: Nursery, folder: Path, database: str, seed: int) -> None:
        folder.mkdir()
        (folder / ".git").mkdir()
        self.folder = folder
        self.dice = random.Random(seed)
        self.clock = MovedClock(folder)
        self.task = Task(str(folder), database, os.environ["HOME"], until_idle=False, mode="default", simulated=True)
        self.house = self.task.house()
        self.house._store = open_store(database, clock=self.clock, trust=self.house.trust)
        self.scope = MissionScope("cli", PERSON)
        text = json.dumps(MISSION)
        self.mission: Mission = self.house.missions.apply(self.scope, file.parse_mission(text), text).mission
        self.first = (self.clock() + timedelta(days=1)).replace(hour=9, minute=0, second=0, microsecond=0)
        self._nursery = nursery
        self.workers: list[Life] = [nursery.start(self.task) for _ in range(2)]
        self.kills = self.idle_calls = self.idle_checks = 0
        self.outages: list[timedelta] = []

    @property
    def runs(self) -> list[Run]:
        return self.house.runs.list(mission_id=self.mission.id, ended=True, limit=100_000)

    def tick(self, day: int) -> datetime:
        return self.first + timedelta(days=day - 1)

    def cycle(self, day: int) -> Run | None:
        id = f"cycle-{SLUG}-{timestamp(self.tick(day))}"
        with self.house.store.read() as tx:
            from punchlist.runs import repository as run_repository

            return run_repository.find(tx, id)

    def begin_day(self, day: int) -> None:
        """Readings, one of them from long ago; then the tick."""
        for number, slug in enumerate(PILLARS):
            self.house.metrics.record(self.scope, SLUG, f"{slug}-time", 100.0 - day / 2 + number)
        if day % 5 == 0:
            before = self.clock() - timedelta(days=400)
            self.house.metrics.record(self.scope, SLUG, f"{PILLARS[0]}-time", 9_999.0, at=before)
        self.clock.move_to(self.tick(day) + timedelta(seconds=1))

    def settle(self, day: int) -> None:
        """Until the day's cycle has ended and all that is left waits for a person."""
        until(partial(self._has_settled, day), partial(self._why_not, day), PATIENCE)

    def _has_settled(self, day: int) -> bool:
        cycle = self.cycle(day)
        if cycle is None:
            return False
        if cycle.status is RunStatus.WAITING:
            # Planning waits for a person: the cycle goes on without it after some minutes.
            self.clock.move_to(self.clock() + GRACE)
            return False
        return cycle.ended_at is not None and self._is_at_rest()

    def _is_at_rest(self) -> bool:
        rests = (RunStatus.WAITING, RunStatus.PAUSED, RunStatus.QUEUED)
        if any(run.status not in rests for run in self.house.runs.list(mission_id=self.mission.id, limit=1_000)):
            return False
        return not RunQueue(self.house.store, "the test").ready(100)

    def _why_not(self, day: int) -> str:
        open_runs = [f"{run.kind} {run.status} {run.why}" for run in self.house.runs.list(limit=100)]
        return f"day {day} ends; cycle {self.cycle(day)}\n{open_runs}\n{self.workers[0].said}"

    def kill(self, number: int) -> None:
        self.workers[number].end()
        self.workers[number] = self._nursery.start(self.task)
        self.kills += 1

    def disturb(self, day: int) -> None:
        """Kill workers at some moment of the day's work; every sixth time both."""
        if day % 3 == 0:
            spin(self.dice.uniform(0, 0.3))
            self.kill(day % 2)
            if day % 18 == 0:
                self.kill(1 - day % 2)

    def idle(self, day: int) -> None:
        """Hours in which nothing is due: no model is called."""
        before, seen = len(requests(self.folder)), passes(self.folder)
        self.clock.move_to(self.tick(day) + timedelta(hours=9))
        until(lambda: passes(self.folder) >= seen + 4, "the workers look for work", PATIENCE)
        until(self._is_at_rest, "all is at rest", PATIENCE)
        self.idle_calls += len(requests(self.folder)) - before
        self.idle_checks += 1

    def lose_the_model(self, day: int) -> None:
        """For an hour from the tick on; the time until the cycle is done."""
        until_when = self.tick(day) + OUTAGE
        (self.folder / "outage").write_text(until_when.isoformat())
        self.begin_day(day)
        failed: Callable[[], bool] = lambda: (found := self.cycle(day)) is not None and found.ended_at is not None
        until(failed, lambda: self._why_not(day), PATIENCE)
        while (found := self.cycle(day)) is not None and found.status is not RunStatus.DONE:
            assert self.clock() < until_when + WITHIN, self._why_not(day)
            seen = passes(self.folder)
            self.clock.move_to(self.clock() + timedelta(minutes=2))
            until(lambda seen=seen: passes(self.folder) >= seen + 3, "the workers look for work", PATIENCE)  # type: ignore[misc]
            until(self._is_at_rest, lambda: self._why_not(day), PATIENCE)
        assert found is not None
        self.outages.append(parse_timestamp(str(found.ended_at)) - self.tick(day))

    def answer(self, *, approvals: bool) -> int:
        """What a person does who looks in: questions about late todos, and approvals of work, not of planning."""
        answered = 0
        for escalation in self.house.escalations.list(SLUG):
            todo = self.house.mission_todos.get(escalation.todo_id)
            if todo.status in (TodoStatus.COMPLETED, TodoStatus.CANCELLED):
                self.house.escalations.answer(self.scope, escalation.id, "keep")
            else:
                self.house.escalations.answer(self.scope, escalation.id, "cancel", reason="Too late.")
            answered += 1
        return answered


def rehearse(mission: LongMission, days: int) -> None:
    outage_days = {5, *range(40, days + 1, 40)}
    paused: Run | None = None
    for day in range(1, days + 1):
        if day in outage_days:
            mission.lose_the_model(day)
        else:
            mission.begin_day(day)
            mission.disturb(day)
        mission.settle(day)
        if day == 3:
            mission.house.directives.add(mission.scope, SLUG, DIRECTIVE)
        if day == 6:
            # Left alone to the end: an owner's planning of another pillar goes on.
            paused = next(iter(mission.house.runs.list(mission_id=mission.mission.id)), None)
            if paused is not None:
                mission.house.runs.pause(mission.scope, paused.id, "a person looks first")
        mission.idle(day)
        if day % 7 == 0:
            mission.answer(approvals=False)


def check_all(mission: LongMission, days: int) -> None:
    runs, house = mission.runs, mission.house
    # Every cycle is accounted for.
    cycles = [mission.cycle(day) for day in range(1, days + 1)]
    assert [run.status for run in cycles if run is not None] == [RunStatus.DONE] * days
    assert len([run for run in runs if run.kind is RunKind.CYCLE]) == days
    # So is every planning: done, waiting for a person, or named by the cycles that went on without it.
    planning = [run for run in runs if run.kind is RunKind.PLAN]
    assert {run.status for run in planning} <= {RunStatus.DONE, RunStatus.WAITING, RunStatus.PAUSED}
    prompts = [
        message.content
        for message in house.conversations.messages(mission.mission.conversation_id)
        if message.content.startswith("## Mission Review Cycle")
    ]
    planned = Counter(run.parameters["cycle"] for run in planning)
    for run in cycles:
        assert run is not None
        assert planned[run.id] + (len(PILLARS) - planned[run.id]) == len(PILLARS)
    missing = sum(len(PILLARS) - planned[run.id] for run in cycles if run is not None)
    assert sum(prompt.count("(skipped: its planning run") for prompt in prompts) >= missing
    # Every question was asked.
    approvals = house.approvals.list_open() if hasattr(house.approvals, "list_open") else []
    del approvals
    overdue = [todo for todo in house.mission_todos.list(SLUG, status=set(TodoStatus), archived=True).items]
    asked = {one.todo_id for one in house.escalations.list(SLUG, open_only=False, limit=100_000)}
    assert {todo.id for todo in overdue if todo.overdue_at is not None} <= asked
    # Nothing was forgotten.
    lines = requests(mission.folder)
    after = [line for line in lines if is_lead(line) and line["at"] > mission.tick(4).isoformat()]
    assert after
    assert all(line["directive"] for line in after)
    assert after[-1]["at"] > mission.tick(days).isoformat()
    assert max(line["stateTokens"] for line in lines) <= MAX_STATE_TOKENS
    # A reading from long ago is history.
    (view,) = house.metrics.views(SLUG, f"{PILLARS[0]}-time")
    assert view.current is not None
    assert view.current.value < 200
    assert mission.idle_calls == 0
    assert all(outage <= WITHIN for outage in mission.outages)
    report = check(house.store, SCHEMA_VERSION)
    assert report.healthy, report


@pytest.mark.spec("M9", "M10", "M12", "M13", "M17")
@pytest.mark.parametrize("days", [12, pytest.param(120, marks=pytest.mark.soak)], ids=["short", "full"])
def test_a_mission_runs_for_months_through_every_fault(
    nursery: Nursery, tmp_path: Path, database: str, days: int
) -> None:
    """TRUST 39, 41."""
    begun = time.monotonic()
    mission = LongMission(nursery, tmp_path / "project", database, seed=days)
    rehearse(mission, days)
    seconds = time.monotonic() - begun
    lines = requests(mission.folder)
    print(
        f"{days} days in {seconds:.0f} s, {mission.kills} workers killed, {len(lines)} model requests, "
        f"{mission.idle_calls} while nothing was due (in {mission.idle_checks} checks), largest state "
        f"{max(line['stateTokens'] for line in lines)} tokens, largest request "
        f"{max(line['tokens'] for line in lines)} tokens, with a summary {sum(line['summary'] for line in lines)}, "
        f"delayed by outages of an hour: {[str(one) for one in mission.outages]}, "
        f"runs {dict(Counter(f'{run.kind} {run.status}' for run in mission.runs))}"
    )
    check_all(mission, days)
    assert days < 120 or seconds < 300
    mission.house.store.close()
