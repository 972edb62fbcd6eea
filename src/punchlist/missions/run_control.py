"""What the end of a run means for its mission, and how a person stops one.

A stop has the same effects whether a worker carries it out or the run had no live worker: the claim on the todo ends,
an open todo is escalated, and the delegated work of a todo and the planning runs of a cycle stop too. The mission is
locked before the run, in the order of all other writers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from punchlist.conversations.model import Scope
from punchlist.kernel.events import SYSTEM
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite
from punchlist.missions.escalations.service import escalate_stuck_work
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.claims import release_run_claim
from punchlist.missions.todos.lifecycle import OPEN as OPEN_TODO
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import OPEN, ControlRequest, RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.runs.service import Runs, request_control, stop_locked_run
from punchlist.storage.store import Store, Transaction


class MissionRuns(Runs):
    """Runs, with the effects of a stop on their missions."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store

    def stop(self, scope: Scope, id: str, reason: str = "") -> Run:
        mission_id = self.get(id).mission_id
        with self._store.write() as tx:
            if mission_id is not None:
                mission_repository.lock_mission(tx, mission_id)
            run = stop_locked_run(tx, scope, id, reason)
            if run.status is RunStatus.STOPPED:
                apply_stop(tx, run, run.why)
            return run


def apply_stop(tx: Transaction, run: Run, why: str) -> None:
    """The effects of a stop. Idempotent."""
    if run.kind is RunKind.CYCLE:
        _stop_planning(tx, run, why)
    if run.kind is RunKind.EXECUTE:
        end_work(tx, run, f"Its run was stopped: {why}")
        _stop_delegations(tx, run, why)


def end_work(tx: Transaction, run: Run, why: str) -> None:
    """End the claim of a run on its todo, and ask a person about the todo if it is open. Idempotent."""
    write = _write(tx, run)
    todo = todo_repository.find(tx, str(run.todo_id))
    if write is None or todo is None:
        return
    release_run_claim(write, todo, run.id)
    if todo.status in OPEN_TODO:
        escalate_stuck_work(write, todo, why)


def end_claim(tx: Transaction, run: Run) -> None:
    """End the claim of a run on its todo, if it works on one. Idempotent."""
    if run.kind is not RunKind.EXECUTE:
        return
    write = _write(tx, run)
    todo = todo_repository.find(tx, str(run.todo_id))
    if write is not None and todo is not None:
        release_run_claim(write, todo, run.id)


MISSION_PAUSED: Final = "its mission is paused"


def pause_runs(tx: Transaction, scope: Scope, mission_id: str, reason: str) -> None:
    """Pause the runs of a mission that have started. Queued ones do not start while the mission is paused."""
    for run in _started(tx, mission_id):
        if run.wish is None:
            why = f"{MISSION_PAUSED}: {reason}"
            request_control(tx, scope, run, why, wish=ControlRequest.PAUSE, why=why)


def resume_runs(tx: Transaction, scope: Scope, mission_id: str, reason: str) -> None:
    """Resume the runs that were paused with their mission; those that a person paused stay paused."""
    for run in _started(tx, mission_id):
        if run.wish is ControlRequest.PAUSE and run.why.startswith(MISSION_PAUSED):
            request_control(tx, scope, run, reason, wish=None, why="")


def stop_runs(tx: Transaction, scope: Scope, mission_id: str, why: str) -> None:
    """Stop the open runs of a mission that ends."""
    for run in run_repository.open_in_mission(tx, mission_id):
        _stop(tx, scope, run, why)


def _started(tx: Transaction, mission_id: str) -> Iterator[Run]:
    for run in run_repository.open_in_mission(tx, mission_id):
        locked = run_repository.lock(tx, run.id) if run.status is not RunStatus.QUEUED else None
        if locked is not None and locked.status in OPEN and locked.status is not RunStatus.QUEUED:
            yield locked


def _write(tx: Transaction, run: Run) -> MissionWrite | None:
    mission = mission_repository.lock_mission(tx, str(run.mission_id))
    return MissionWrite(tx, Scope(run.conversation_id, SYSTEM), mission) if mission is not None else None


def _stop_delegations(tx: Transaction, work: Run, why: str) -> None:
    """Stop the work that was delegated for a todo: no run waits for its results."""
    scope = Scope(work.conversation_id, SYSTEM)
    for delegation in run_repository.delegations_of_todo(tx, str(work.todo_id)):
        _stop(tx, scope, delegation, why)


def _stop_planning(tx: Transaction, cycle: Run, why: str) -> None:
    scope = Scope(cycle.conversation_id, SYSTEM)
    for planning in run_repository.open_of_kind(tx, str(cycle.mission_id), RunKind.PLAN.value):
        if planning.parameters.get("cycle") == cycle.id:
            _stop(tx, scope, planning, why)


def _stop(tx: Transaction, scope: Scope, run: Run, why: str) -> None:
    locked = run_repository.lock(tx, run.id)
    if locked is not None and locked.status in OPEN:
        request_control(tx, scope, locked, why, wish=ControlRequest.STOP, why=why)
