"""The run queue as workers use it: dispatch, ownership, progress, end.

Every change checks that this worker still owns the run. A worker that was declared dead and wakes up again therefore
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict
from punchlist.kernel.events import SYSTEM
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import OPEN, OWNED, RunAction, RunStatus
from punchlist.runs.model import Run, UsageIncrement, append_text, remaining_text
from punchlist.runs.service import advance_run, end_turn, event_stream
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

CHAT_IN_USE: Final = "its turn in the chat"


class RunNotOwned(Conflict):
    """The run ended, or another worker owns it."""


class RunQueue:
    def __init__(self, store: Store, executor: str) -> None:
        self._store = store
        self.executor = executor

    def ready(self, limit: int) -> list[Run]:
        """Queued runs that can be dispatched now, oldest first. At most `limit` runs are dispatched at a time."""
        if limit <= 0:
            return []
        with self._store.read() as tx:
            room = limit - len(run_repository.by_status(tx, RunStatus.DISPATCHED.value))
            return run_repository.ready(tx, room) if room > 0 else []

    def dispatch(self, run: Run) -> Run | None:
        """Take a run off the queue; None when another worker did so first, its chat is busy or its mission paused."""
        try:
            with self._store.write() as tx:
                # The mission is locked before the run, as every writer does.
                if not run_repository.lock_unpaused_mission(tx, run):
                    return None
                now = run_repository.lock(tx, run.id)
                if now is None or now.status is not RunStatus.QUEUED or now.wish is not None:
                    return None
                if run_repository.working_in_chat(tx, now) is not None:
                    return None
                return self._transition(tx, now, RunAction.DISPATCH, f"dispatched by {self.executor}")
        except Conflict:
            # A unique index allows one dispatched run per chat; another worker dispatched a different one.
            return None

    def dispatched(self) -> list[Run]:
        """Runs for which the durable engine must have a workflow."""
        with self._store.read() as tx:
            return [
                run for status in (RunStatus.DISPATCHED, *OWNED) for run in run_repository.by_status(tx, status.value)
            ]

    def fail_lost(self, run: Run, why: str) -> bool:
        """Fail a run that lost its workflow; False when the run changed since `run` was read."""
        with self._store.write() as tx:
            now = run_repository.lock(tx, run.id)
            if now is None or (now.status, now.executor, now.leg) != (run.status, run.executor, run.leg):
                return False
            end_turn(tx, Scope(now.conversation_id, SYSTEM), now, f"error: {why}")
            self._transition(tx, now, RunAction.FAIL, why, why=why, ended_at=tx.now(), executor=None)
            return True

    def with_requests(self) -> list[Run]:
        """Runs of this worker that have a control request or a message."""
        with self._store.read() as tx:
            return run_repository.with_requests(tx, self.executor)

    def begin(self, run_id: str) -> Run | None:
        """Take ownership of a run; None when it has ended."""
        with self._store.write() as tx:
            run = run_repository.lock(tx, run_id)
            if run is None or run.status not in OPEN or run.status is RunStatus.QUEUED:
                return None
            if run.executor == self.executor and run.status in OWNED:
                return run
            changes: dict[str, Any] = {"executor": self.executor, "attempts": run.attempts + 1}
            if run.started_at is None:
                changes["started_at"] = tx.now()
            return self._transition(tx, run, RunAction.BEGIN, f"worker {self.executor}", **changes)

    def get_owned(self, run_id: str) -> Run:
        with self._store.read() as tx:
            run = run_repository.find(tx, run_id)
        if run is None or run.executor != self.executor or run.status not in OWNED:
            raise _not_owned(run_id, run)
        return run

    def fence(self, run_id: str) -> Callable[[Transaction], None]:
        """A check for other writers on behalf of a run: raises when this worker no longer owns it."""

        def check(tx: Transaction) -> None:
            self._require_owned(run_id, run_repository.find(tx, run_id))

        return check

    def set_turn(self, run_id: str, turn_id: str) -> Run:
        with self._store.write() as tx:
            return self._transition(tx, self._lock(tx, run_id), RunAction.SET_TURN, "working", turn_id=turn_id)

    def add_usage(self, run_id: str, turn_id: str, used: UsageIncrement) -> Run:
        """Add the usage of a turn. Idempotent per turn."""
        reason = f"turn {turn_id}"
        with self._store.write() as tx:
            run = self._lock(tx, run_id)
            events = event_log.read_stream(tx, event_stream(run_id))
            if any(event.action == RunAction.ADD_USAGE and event.reason == reason for event in events):
                return run
            totals = {name: getattr(run, name) + value for name, value in used._asdict().items()}
            return self._transition(tx, run, RunAction.ADD_USAGE, reason, **totals)

    def wait(self, run_id: str, why: str) -> Run:
        """Idempotent; a run that waits already can wait for something else."""
        with self._store.write() as tx:
            run = self._lock(tx, run_id)
            if run.status is RunStatus.WAITING and run.why == why:
                return run
            return self._transition(tx, run, RunAction.WAIT, why, why=why)

    def wake(self, run_id: str, why: str) -> Run | None:
        """Continue a run that waits; None while another run works in its chat."""
        return self._continue(run_id, RunAction.WAKE, why)

    def pause(self, run_id: str) -> Run:
        return self._transition_once(run_id, RunStatus.PAUSED, RunAction.PAUSE, "as requested")

    def resume(self, run_id: str) -> Run | None:
        """Continue a paused run; None while another run works in its chat."""
        return self._continue(run_id, RunAction.RESUME, "as requested")

    def _continue(self, run_id: str, action: RunAction, reason: str) -> Run | None:
        try:
            with self._store.write() as tx:
                run = self._lock(tx, run_id)
                if run.status is RunStatus.RUNNING:
                    return run
                if (other := run_repository.working_in_chat(tx, run)) is None:
                    return self._transition(tx, run, action, reason, why="")
                why = f"{CHAT_IN_USE} (run {other})"
                if run.status is RunStatus.WAITING and run.why != why:
                    self._transition(tx, run, RunAction.WAIT, why, why=why)
                return None
        except Conflict:
            # Another worker has just dispatched or continued a run of the same chat. `RunNotOwned` is a conflict too.
            self.get_owned(run_id)
            return None

    def message_delivered(self, run_id: str, message: str, undelivered: str | None = None) -> None:
        """Remove a delivered message, except its undelivered part. Text that was added since then stays."""
        with self._store.write() as tx:
            run = self._lock(tx, run_id)
            added = remaining_text(run.message, message) if run.message else None
            if undelivered == message or run.message is None or added == run.message:
                return
            rest = append_text(undelivered, added) if added else undelivered
            self._transition(tx, run, RunAction.CONTROL, "message delivered", message=rest)

    def mark_delivered(self, run_id: str, delegations: Sequence[str]) -> None:
        """Record that the agent of a run has got the results of delegations. Idempotent."""
        if not delegations:
            return
        with self._store.write() as tx:
            self._lock(tx, run_id)
            for id in delegations:
                run = run_repository.lock(tx, id)
                # A person can have retried it meanwhile: then there will be another result.
                if run is not None and run.delivered_to is None and run.status not in OPEN:
                    self._transition(tx, run, RunAction.DELIVER, f"to run {run_id}", delivered_to=run_id)

    def finish(self, run_id: str, result: str) -> Run:
        return self._transition_once(run_id, RunStatus.DONE, RunAction.FINISH, "done", result=result)

    def fail(self, run_id: str, why: str) -> Run:
        return self._transition_once(run_id, RunStatus.FAILED, RunAction.FAIL, why, why=why)

    def stop(self, run_id: str, why: str, effects: Callable[[Transaction], None] = lambda _: None) -> Run:
        """Stop the run and end its open turn. `effects` are part of the same transaction."""
        with self._store.write() as tx:
            # Before the run is locked: they lock the mission, as every writer does first.
            effects(tx)
            run = run_repository.lock(tx, run_id)
            if run is not None and run.status is RunStatus.STOPPED:
                return run
            run = self._require_owned(run_id, run)
            end_turn(tx, Scope(run.conversation_id, SYSTEM), run, f"cancelled: {why}")
            return self._transition(tx, run, RunAction.STOP, why, why=why, wish=None, ended_at=tx.now())

    def _transition_once(self, run_id: str, to: RunStatus, action: RunAction, reason: str, **changes: Any) -> Run:
        """Idempotent: a run that already has the status is returned unchanged."""
        with self._store.write() as tx:
            run = run_repository.lock(tx, run_id)
            if run is not None and run.status is to and run.executor in (self.executor, None):
                return run
            run = self._require_owned(run_id, run)
            if to not in OPEN:
                changes = {"ended_at": tx.now(), **changes}
            if to is RunStatus.FAILED:
                end_turn(tx, Scope(run.conversation_id, SYSTEM), run, f"error: {reason}")
            return self._transition(tx, run, action, reason, **changes)

    def _lock(self, tx: Transaction, run_id: str) -> Run:
        return self._require_owned(run_id, run_repository.lock(tx, run_id))

    def _require_owned(self, run_id: str, run: Run | None) -> Run:
        if run is None or run.executor != self.executor or run.status not in OPEN:
            raise _not_owned(run_id, run)
        return run

    def _transition(self, tx: Transaction, run: Run, action: RunAction, reason: str, **changes: Any) -> Run:
        return advance_run(tx, Scope(run.conversation_id, SYSTEM), run, action, reason, **changes)


def _not_owned(run_id: str, run: Run | None) -> RunNotOwned:
    if run is None:
        return RunNotOwned(f"Run {run_id} does not exist.")
    owner = f"owned by {run.executor}" if run.executor else "without an owner"
    return RunNotOwned(f"Run {run_id} is {run.status}, {owner}.")
