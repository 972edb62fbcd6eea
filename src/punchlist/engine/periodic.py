"""What happens by itself: cycles that are due, deadlines between them, chats that somebody has written in."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from punchlist.agent.definitions import LEAD, OWNER
from punchlist.conversations import repository as conversation_records
from punchlist.engine.worker_services import WorkerServices
from punchlist.errors import Conflict, PunchlistError
from punchlist.kernel.actors import SYSTEM
from punchlist.kernel.clock import moment
from punchlist.missions import repository as mission_records
from punchlist.missions.changes import check_active
from punchlist.missions.config.json import cadence_of
from punchlist.missions.model import Mission, MissionScope
from punchlist.missions.planning import cadence
from punchlist.runs import repository as run_records
from punchlist.runs import service as runs
from punchlist.runs.model import Run, RunKind
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction

SWEEP_EVERY: Final = timedelta(hours=1)
_OPEN: Final = Statement(
    "SELECT id FROM runs WHERE ended_at IS NULL AND mission_id = :mission_id AND kind = :kind LIMIT 1"
)
# Chats of missions with messages that wait, in which no run will look for them.
_WRITTEN_IN: Final = Statement(
    "SELECT DISTINCT queued.conversation_id, missions.id, pillars.id FROM queued_messages AS queued "
    "LEFT JOIN pillars ON queued.conversation_id IN (pillars.conversation_id, pillars.todo_conversation_id) "
    "JOIN missions ON missions.id = pillars.mission_id OR missions.conversation_id = queued.conversation_id "
    "WHERE queued.status = 'queued' AND missions.status = 'active' "
    "AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.conversation_id = queued.conversation_id "
    f"AND runs.ended_at IS NULL AND runs.kind = '{RunKind.CHAT}')"
)


def enqueue_cycle(store: Store, scope: MissionScope, mission: Mission, id: str | None = None) -> Run:
    """Queue a cycle; while one is open, there is no second."""
    with store.write() as tx:
        # Who looks while another begins one waits until it is there.
        locked = mission_records.lock_mission(tx, mission.id)
        check_active(locked or mission)
        if (open_cycle := _open_cycle(tx, mission.id)) and open_cycle != id:
            raise Conflict(f"Cycle {open_cycle} of mission {mission.slug!r} is not over. `punchlist runs` shows it.")
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


def _open_cycle(tx: Transaction, mission_id: str) -> str | None:
    row = tx.one(_OPEN, mission_id=mission_id, kind=RunKind.CYCLE.value)
    return str(row[0]) if row else None


class PeriodicTasks:
    def __init__(self, premises: WorkerServices) -> None:
        self._premises = premises
        self._swept: dict[str, str] = {}

    async def tick(self) -> None:
        # In a thread: it looks at all missions, and nobody waits for it.
        await asyncio.to_thread(self._tick)

    def _tick(self) -> None:
        wrong: PunchlistError | None = None
        for mission in self._premises.missions.list():
            try:
                self._look_after(mission)
            except PunchlistError as error:
                # The others have nothing to do with it.
                wrong = wrong or error
        self._answer_chats()
        if wrong is not None:
            raise wrong

    def _look_after(self, mission: Mission) -> None:
        now, scope = self._premises.store.clock(), MissionScope(mission.conversation_id, SYSTEM)
        self._begin_what_is_due(scope, mission)
        last = self._swept.get(mission.id)
        if last is None or not moment(last) <= now < moment(last) + SWEEP_EVERY:
            self._premises.deadlines.sweep(scope, mission.id)
            self._swept[mission.id] = now.isoformat()

    def _begin_what_is_due(self, scope: MissionScope, mission: Mission) -> None:
        when, now = cadence_of(mission), self._premises.store.clock()
        if when.cron is None:
            return
        tick = cadence.due_tick(when.cron, when.timezone, mission.last_tick, mission.created_at, now)
        if tick is None:
            return
        # In this order: whoever dies in between queues the same run again, which is then there.
        with suppress(Conflict):
            # While one is being worked on, that one does what this one would.
            enqueue_cycle(self._premises.store, scope, mission, f"cycle-{mission.slug}-{tick}")
        self._premises.missions.take_tick(scope, mission.id, tick)

    def _answer_chats(self) -> None:
        with self._premises.store.read() as tx:
            found = tx.all(_WRITTEN_IN)
        for conversation_id, mission_id, pillar_id in found:
            with self._premises.store.write() as tx:
                conversation_records.lock_conversation(tx, conversation_id)
                if tx.one(run_records.OPEN_CHAT_RUN, conversation_id=conversation_id):
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
                    reason="somebody has written",
                )
