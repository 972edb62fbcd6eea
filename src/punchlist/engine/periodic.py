"""Periodic work: start cycles that are due, sweep deadlines, and queue runs that answer chat messages.

One worker does it, the first of those that live, so that the cost does not grow with their number. Two may do it at
once for a moment, for example when a clock was moved: all of it can be repeated.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from punchlist.agent.definitions import LEAD, OWNER
from punchlist.conversations import repository as conversation_repository
from punchlist.engine.workflows.cycle import PLANNING_GRACE
from punchlist.errors import Conflict, IllegalTransition, PunchlistError
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.events import SYSTEM
from punchlist.missions import repository as mission_repository
from punchlist.missions.budgets.service import Budgets
from punchlist.missions.changes import check_active
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.planning import cadence
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.planning.retries import RETRY_PERIOD, is_retried, retry_at
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs import repository as run_repository
from punchlist.runs import service as runs
from punchlist.runs.lifecycle import RESTING
from punchlist.runs.model import Run, RunKind
from punchlist.runs.workers import live_workers
from punchlist.storage.store import Store, Transaction

if TYPE_CHECKING:
    from punchlist.app import Services

SWEEP_INTERVAL: Final = timedelta(hours=1)


def enqueue_cycle(store: Store, scope: MissionScope, mission: Mission, id: str | None = None) -> Run:
    """Queue a planning cycle, unless one is open. Those that have waited for a person for long do not count."""
    with store.write() as tx:
        # The lock serialises concurrent starts.
        locked = mission_repository.lock_mission(tx, mission.id)
        check_active(locked or mission)
        if locked is not None and locked.paused_at is not None:
            raise IllegalTransition(
                f"Mission {mission.slug!r} is paused since {locked.paused_at}. `punchlist mission resume "
                f"{mission.slug}` continues it."
            )
        if (cycle := _open_cycle(tx, mission)) is not None and cycle.id != id:
            raise Conflict(
                f"A planning cycle of mission {mission.slug!r} is still open. `punchlist mission runs` shows it; a new "
                "one can start when it has ended."
            )
        return runs.enqueue(
            tx,
            scope,
            kind=RunKind.CYCLE,
            conversation_id=mission.conversation_id,
            agent=LEAD,
            request={"mission": mission.slug},
            mission_id=mission.id,
            id=id,
        )


def _open_cycle(tx: Transaction, mission: Mission) -> Run | None:
    """The cycle that a new one would get in the way of."""
    cycles = run_repository.open_of_kind(tx, mission.id, RunKind.CYCLE.value)
    since = timestamp(parse_timestamp(tx.now()) - PLANNING_GRACE)
    return next((cycle for cycle in cycles if cycle.status not in RESTING or cycle.changed_at > since), None)


class PeriodicTasks:
    def __init__(self, services: Services, executor: str) -> None:
        self._services = services
        self._executor = executor
        self._overdue = OverdueService(services.store)
        self._budgets = Budgets(services.store)
        self._swept: dict[str, datetime] = {}
        self._taken: dict[str, str] = {}
        """By mission: a tick that has had its cycle, so that its events are read once per tick."""

    async def run(self) -> None:
        # In a thread, because it reads all missions.
        await asyncio.to_thread(self._run)

    def _is_first(self) -> bool:
        """Whether no worker that lives began before this one."""
        with self._services.store.read() as tx:
            alive = live_workers(tx, self._services.store.clock())
        return not alive or alive[0].id == self._executor

    def _run(self) -> None:
        if not self._is_first():
            return
        first_error: PunchlistError | None = None
        for mission in self._services.missions.list():
            try:
                self._maintain(mission)
            except PunchlistError as error:
                # An error in one mission must not stop the others.
                first_error = first_error or error
        self._answer_chats()
        if first_error is not None:
            raise first_error

    def _maintain(self, mission: Mission) -> None:
        if mission.paused_at is not None:
            return
        now, scope = self._services.store.clock(), MissionScope(mission.conversation_id, SYSTEM)
        self._start_due_cycle(scope, mission, now)
        self._retry_failed(scope, mission, now)
        last = self._swept.get(mission.id)
        # A clock that was set back also causes a sweep.
        if last is None or not last <= now < last + SWEEP_INTERVAL:
            self._overdue.process_mission(scope, mission.id)
            self._budgets.end_stops(mission.id)
            self._swept[mission.id] = now

    def _start_due_cycle(self, scope: MissionScope, mission: Mission, now: datetime) -> None:
        schedule = cadence_of(mission)
        if schedule.cron is None:
            return
        # A clock was ahead when the last cycle was started: the ticks until then have not had theirs.
        ahead = mission.last_tick is not None and mission.last_tick > timestamp(now)
        last_tick = None if ahead else mission.last_tick
        tick = cadence.due_tick(schedule.cron, schedule.timezone, last_tick, mission.created_at, now)
        if tick is None or (ahead and self._is_taken(mission, tick)):
            return
        # A worker that dies before `take_tick` queues the same run again, which is idempotent. A tick that falls into
        # an open cycle is served by that cycle.
        try:
            enqueue_cycle(self._services.store, scope, mission, f"cycle-{mission.slug}-{tick}")
        except Conflict:
            pass
        except IllegalTransition:
            # Paused or archived since the mission was read.
            return
        self._services.missions.take_tick(scope, mission.id, tick)

    def _retry_failed(self, scope: MissionScope, mission: Mission, now: datetime) -> None:
        """Queue failed cycles and planning runs again, and runs that the model was not available for, with back-off."""
        with self._services.store.read() as tx:
            since = timestamp(now - RETRY_PERIOD)
            found = [
                *run_repository.failed_planning(tx, mission.id, since),
                *run_repository.failed_work(tx, mission.id, since),
                *run_repository.failed_answers(tx, 0, mission.id, since),
            ]
            failed = [run for run in found if is_retried(run.kind, run.why, run.leg) and _is_wanted(tx, run)]
        for run in failed:
            at = retry_at(run.ended_at or run.changed_at, run.leg)
            if at is None or now < at:
                continue
            with self._services.store.write() as tx:
                mission_repository.lock_mission(tx, mission.id)
                locked = run_repository.lock(tx, run.id)
                # Another worker may have retried it, or another cycle may have started.
                started = run.kind is RunKind.CYCLE and _open_cycle(tx, mission) is not None
                if locked is not None and (locked.status, locked.leg) == (run.status, run.leg) and not started:
                    runs.retry_run(tx, scope, locked, f"retry {run.leg + 1} after a failure")

    def _is_taken(self, mission: Mission, tick: str) -> bool:
        if self._taken.get(mission.id) != tick and self._services.missions.is_taken(mission.id, tick):
            self._taken[mission.id] = tick
        return self._taken.get(mission.id) == tick

    def _answer_chats(self) -> None:
        with self._services.store.read() as tx:
            chats = run_repository.unanswered_chats(tx)
        for conversation_id, mission_id, pillar_id in chats:
            with self._services.store.write() as tx:
                conversation_repository.lock_conversation(tx, conversation_id)
                if run_repository.is_answered(tx, conversation_id):
                    continue
                runs.enqueue(
                    tx,
                    MissionScope(conversation_id, SYSTEM),
                    kind=RunKind.CHAT,
                    conversation_id=conversation_id,
                    agent=OWNER if pillar_id else LEAD,
                    request={},
                    mission_id=mission_id,
                    pillar_id=pillar_id,
                    reason="a person sent a message",
                )


def _is_wanted(tx: Transaction, run: Run) -> bool:
    """Whether the todo that the run works on, if any, is in progress."""
    if run.todo_id is None:
        return True
    todo = todo_repository.find(tx, str(run.todo_id))
    return todo is not None and todo.status is TodoStatus.IN_PROGRESS
