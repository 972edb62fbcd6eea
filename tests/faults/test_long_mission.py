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
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faults.long_mission import (
    DIRECTIVE,
    EDITED,
    GREETING,
    MEASURED,
    PILLARS,
    RESUMED,
    SLUG,
    MovedClock,
    is_lead,
    passes,
    requests,
)
from tests.faults.long_mission_people import PERIOD, People
from tests.faults.mission_worker import PERSON, Life, Nursery, Task, until
from tests.faults.processes import spin

from punchlist.audit.check import check
from punchlist.kernel.clock import timestamp
from punchlist.missions.config import file
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.todos import repository as todo_repository
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.runs.queue import RunQueue
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.views.health import read_health

MAX_STATE_TOKENS: Final = 6_000
MAX_PROMPT_TOKENS: Final = 6_000
MAX_CHAT_TOKENS: Final = 9_500
"""Of a summary and the newest messages of a chat."""
OUTAGE: Final = timedelta(hours=1)
WITHIN: Final = timedelta(minutes=70)
"""A model that is away for an hour delays work by this much at most: the hour, and one step of the back-off."""
GRACE: Final = timedelta(minutes=11)
PATIENCE: Final = 120.0
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
        (folder / "first").write_text(self.first.isoformat())
        self._nursery = nursery
        self.workers: list[Life] = [nursery.start(self.task) for _ in range(2)]
        self.kills = self.idle_checks = 0
        self.idle_calls: list[dict[str, Any]] = []
        self.people = People(self, MISSION)
        self.outages: list[timedelta] = []

    @property
    def runs(self) -> list[Run]:
        return self.house.runs.list(mission_id=self.mission.id, ended=True, limit=100_000)

    def tick(self, day: int) -> datetime:
        return self.first + timedelta(days=day - 1)

    def cycle(self, day: int) -> Run | None:
        with self.house.store.read() as tx:
            return run_repository.find(tx, f"cycle-{SLUG}-{timestamp(self.tick(day))}")

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

    def pause_the_mission(self, day: int) -> None:
        """From the evening before until after the tick: nothing starts, no model is called, the cycle follows."""
        before = len(requests(self.folder))
        self.house.missions.pause(self.scope, SLUG, "a holiday")
        self.begin_day(day)
        self._let_workers_look(4)
        assert self.cycle(day) is None
        assert len(requests(self.folder)) == before
        self.house.missions.resume(self.scope, SLUG, "back at work")

    def pause_a_run(self) -> None:
        """Left paused to the end."""
        run = next(run for run in self.house.runs.list(mission_id=self.mission.id) if run.kind is RunKind.EXECUTE)
        self.house.runs.pause(self.scope, run.id, "a person looks first")

    def kill(self, number: int) -> None:
        self.workers[number].end()
        self.workers[number] = self._nursery.start(self.task)
        self.kills += 1

    def end_workers(self) -> None:
        for worker in self.workers:
            worker.end()
        self.kills += len(self.workers)

    def start_workers(self) -> None:
        self.workers = [self._nursery.start(self.task) for _ in self.workers]

    def disturb(self, day: int) -> None:
        """Kill workers at some moment of the day's work; every sixth time both."""
        if day % 3 == 0:
            spin(self.dice.uniform(0, 0.3))
            self.kill(day % 2)
            if day % 18 == 0:
                self.kill(1 - day % 2)

    def idle(self, day: int) -> None:
        """Hours in which nothing is due: no model is called."""
        before = len(requests(self.folder))
        self.clock.move_to(self.tick(day) + timedelta(hours=9))
        self._let_workers_look(4)
        until(self._is_at_rest, "all is at rest", PATIENCE)
        self.idle_calls += requests(self.folder)[before:]
        self.idle_checks += 1

    def lose_the_model(self, day: int) -> None:
        """For an hour: from the tick on, or from some moment of the work. Until all that failed is done."""
        if day % 2:
            (self.folder / "outage").write_text((self.tick(day) + OUTAGE).isoformat())
            self.begin_day(day)
        else:
            self.begin_day(day)
            spin(self.dice.uniform(0.2, 0.6))
            (self.folder / "outage").write_text((self.clock() + OUTAGE).isoformat())
        until(lambda: self._has_ended(day) and self._is_at_rest(), partial(self._why_not, day), PATIENCE)
        while not self._is_made_up_for(day):
            assert self.clock() < self.tick(day) + 2 * WITHIN, self._why_not(day)
            self.clock.move_to(self.clock() + timedelta(minutes=3))
            # Passes that began before the clock moved count as well.
            self._let_workers_look(5)
            until(self._is_at_rest, partial(self._why_not, day), PATIENCE)
        self.outages.append(self.clock() - self.tick(day))

    def _has_ended(self, day: int) -> bool:
        return (cycle := self.cycle(day)) is not None and cycle.ended_at is not None

    def _is_made_up_for(self, day: int) -> bool:
        cycle, today = self.cycle(day), timestamp(self.tick(day))
        failed = [run for run in self.runs if run.status is RunStatus.FAILED and run.changed_at >= today]
        return cycle is not None and cycle.status is RunStatus.DONE and not failed

    def _let_workers_look(self, times: int) -> None:
        seen = passes(self.folder)
        until(lambda: passes(self.folder) >= seen + times, "the workers look for work", PATIENCE)

    def answer(self) -> None:
        """What a person does who looks in once a week: late todos are cancelled. Approvals, and one question, are not
        answered."""
        for escalation in self.house.escalations.list(SLUG)[1:]:
            todo = self.house.mission_todos.get(escalation.todo_id)
            answer = "keep" if todo.ended_at is not None else "cancel"
            self.house.escalations.answer(self.scope, escalation.id, answer, reason="It is too late.")


def rehearse(mission: LongMission, days: int) -> None:
    for day in range(1, days + 1):
        if day in (5, 20) or day % 40 == 0:
            mission.lose_the_model(day)
        elif day % 30 == 11:
            mission.pause_the_mission(day)
        else:
            mission.begin_day(day)
            mission.disturb(day)
        mission.settle(day)
        if day == 3:
            mission.house.directives.add(mission.scope, SLUG, DIRECTIVE)
        if day == 6:
            mission.pause_a_run()
        mission.people.on(day)
        mission.settle(day)
        mission.idle(day)
        if day % 7 == 0:
            mission.answer()


def check_all(mission: LongMission, days: int) -> None:
    check_every_cycle(mission, days)
    check_every_question(mission)
    check_every_request(mission, days)
    check_people(mission, days)
    house = mission.house
    # A reading from long ago is history.
    (view,) = house.metrics.views(SLUG, f"{PILLARS[0]}-time")
    assert view.current is not None
    assert view.current.value < 200
    assert mission.idle_calls == []
    (health,) = read_health(house.store, SLUG).missions
    assert (health.missed_cycles, health.workers) == (0, 2)
    assert mission.outages
    assert all(outage <= WITHIN for outage in mission.outages)
    report = check(house.store, SCHEMA_VERSION)
    assert report.healthy, report


def check_every_cycle(mission: LongMission, days: int) -> None:
    """Done; and each pillar was planned in it, or the Lead was told why not."""
    cycles = [run for day in range(1, days + 1) if (run := mission.cycle(day)) is not None]
    assert [run.status for run in cycles] == [RunStatus.DONE] * days
    assert len([run for run in mission.runs if run.kind is RunKind.CYCLE]) == days
    planning = [run for run in mission.runs if run.kind is RunKind.PLAN]
    assert {run.status for run in planning} <= {RunStatus.DONE, RunStatus.WAITING, RunStatus.PAUSED}
    planned = Counter(run.parameters["cycle"] for run in planning)
    chat = mission.house.conversations.messages(mission.mission.conversation_id)
    prompts = [one.content for one in chat if one.content.startswith("## Mission Review Cycle")]
    skipped = sum(len(PILLARS) - planned[run.id] for run in cycles)
    assert sum(prompt.count("(skipped: its planning run") for prompt in prompts) >= skipped
    # One turn for each cycle, and for each retry of one.
    assert len(prompts) == days + sum(run.leg for run in cycles)


def check_every_question(mission: LongMission) -> None:
    """Late todos are asked about, once each; runs that wait for a person have an open question."""
    house = mission.house
    asked = house.escalations.list(SLUG, open_only=False, limit=100_000)
    with house.store.read() as tx:
        todos = todo_repository.all_in_mission(tx, mission.mission.id)
    late = {todo.id for todo in todos if todo.overdue_at is not None}
    assert late
    assert late <= {one.todo_id for one in asked}
    assert max(Counter((one.todo_id, one.kind) for one in asked).values()) == 1
    waiting = [run for run in mission.runs if run.status is RunStatus.WAITING]
    assert waiting
    assert {run.conversation_id for run in waiting} <= {one.conversation_id for one in house.approvals.waiting()}
    # One question keeps only its own run: everything else was worked on until the end.
    last = mission.clock() - timedelta(days=5)
    done = [run for run in mission.runs if run.kind is RunKind.EXECUTE and run.status is RunStatus.DONE]
    assert max(str(run.ended_at) for run in done) > timestamp(last)


def check_every_request(mission: LongMission, days: int) -> None:
    lines = requests(mission.folder)
    since = [line for line in lines if is_lead(line) and line["at"] > mission.tick(4).isoformat()]
    assert since[-1]["at"] > mission.tick(days).isoformat()
    assert all(line["directive"] for line in since)
    assert max(line["stateTokens"] for line in lines) <= MAX_STATE_TOKENS
    assert max(line["promptTokens"] for line in lines) <= MAX_PROMPT_TOKENS
    assert max(line["tokens"] for line in lines) <= MAX_STATE_TOKENS + MAX_PROMPT_TOKENS + MAX_CHAT_TOKENS


def check_people(mission: LongMission, days: int) -> None:
    """What people wrote reached the agents, and everything that they started was completed."""
    people, lines = mission.people, requests(mission.folder)
    assert people.completed.keys() == {"delegated", "budget", "edited", "resumed", "question"}
    assert sum(map(len, people.completed.values())) >= days // 3
    assert len(people.answered) == 2 * ((days - 2) // PERIOD + 1)
    assert {run.started_at is None for run in people.stopped} == {True, False}, "queued runs, and such that waited"
    heard = Counter(words for line in lines if line["available"] for words in line["heard"])
    assert heard.keys() >= {MEASURED, EDITED, RESUMED, GREETING}
    delegated = [run for run in mission.runs if run.kind is RunKind.DELEGATE]
    assert [run.status for run in delegated] == [RunStatus.DONE] * len(people.completed["delegated"])
    for id in people.completed["delegated"]:
        # The Lead reviews once: after the result has arrived.
        said = mission.house.conversations.about_todo(id)
        assert "todo_feedback" not in [each.kind for each in said], [each.content for each in said]
        assert MEASURED in said[-1].content


def time_limit() -> float:
    """Five minutes, and more on a machine with other work."""
    return 300 * max(1.0, os.getloadavg()[1] / (os.cpu_count() or 1))


@pytest.mark.timeout(1_800)
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
    with mission.house.store.read() as tx:
        rows = {
            table: tx.raw(f"SELECT count(*) FROM {table}")[0][0] for table in ("events", "messages", "runs", "traces")
        }
    print(
        f"{days} days in {seconds:.0f} s, {mission.kills} workers killed, {len(lines)} model requests, "
        f"{len(mission.idle_calls)} while nothing was due (in {mission.idle_checks} checks), largest state "
        f"{max(line['stateTokens'] for line in lines)} tokens, largest request "
        f"{max(line['tokens'] for line in lines)} tokens, with a summary {sum(line['summary'] for line in lines)}, "
        f"delayed by outages of an hour: {[str(one) for one in mission.outages]}, "
        f"rows {rows}, runs {dict(Counter(f'{run.kind} {run.status}' for run in mission.runs))}"
    )
    check_all(mission, days)
    assert days < 120 or seconds < time_limit()
    mission.house.store.close()
