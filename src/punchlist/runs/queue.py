"""The engine's side of the list of runs: given out, begun, at rest, ended. Every step names the worker that takes it,
so that one who was thought dead and wakes again changes nothing any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict
from punchlist.kernel.actors import SYSTEM
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import OPEN, OWNED, RunAction, RunStatus
from punchlist.runs.model import Run, UsageIncrement, append_text, remaining_text
from punchlist.runs.service import end_turn, event_stream, transition
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction


class RunNotOwned(Conflict):
    """Another worker has the run in hand, or it has ended."""


class RunQueue:
    def __init__(self, store: Store, executor: str) -> None:
        self._store = store
        self.executor = executor

    def ready(self, limit: int) -> list[Run]:
        """Those that can be given to the engine, oldest first; no more than `limit` are on their way at a time."""
        if limit <= 0:
            return []
        with self._store.read() as tx:
            on_their_way = len(run_repository.select(tx, run_repository.BY_STATUS, status=RunStatus.DISPATCHED.value))
            return (
                run_repository.select(tx, run_repository.READY, limit=limit - on_their_way)
                if on_their_way < limit
                else []
            )

    def dispatch(self, run: Run) -> Run | None:
        """Take it off the queue; None when somebody else did, or when its chat is no longer free."""
        try:
            with self._store.write() as tx:
                now = run_repository.lock(tx, run.id)
                if now is None or now.status is not RunStatus.QUEUED or now.wish is not None:
                    return None
                if run_repository.chat_is_busy(tx, now):
                    return None
                return self._transition(tx, now, RunAction.DISPATCH, f"given to the engine by {self.executor}")
        except Conflict:
            # Another worker has given out another run of this chat: the database lets one through.
            return None

    def dispatched(self) -> list[Run]:
        """Those that the engine must know."""
        with self._store.read() as tx:
            return [
                run
                for status in (RunStatus.DISPATCHED, *OWNED)
                for run in run_repository.select(tx, run_repository.BY_STATUS, status=status.value)
            ]

    def fail_lost(self, run: Run, why: str) -> bool:
        """Whoever had it does not have it any more; False when that is not so."""
        with self._store.write() as tx:
            now = run_repository.lock(tx, run.id)
            if now is None or (now.status, now.executor, now.leg) != (run.status, run.executor, run.leg):
                return False
            self._transition(tx, now, RunAction.FAIL, why, why=why, ended_at=tx.now(), executor=None)
            return True

    def with_requests(self) -> list[Run]:
        """Those in our hands of which people want something."""
        with self._store.read() as tx:
            return run_repository.select(tx, run_repository.WITH_REQUESTS, executor=self.executor)

    def begin(self, run_id: str) -> Run | None:
        """We have it in hand now; None when it has ended."""
        with self._store.write() as tx:
            run = run_repository.lock(tx, run_id)
            if run is None or run.status not in OPEN or run.status is RunStatus.QUEUED:
                return None
            if run.executor == self.executor and run.status in OWNED:
                return run
            first = {"started_at": tx.now()} if run.started_at is None else {}
            return self._transition(
                tx,
                run,
                RunAction.BEGIN,
                f"worker {self.executor}",
                executor=self.executor,
                attempts=run.attempts + 1,
                **first,
            )

    def get_owned(self, run_id: str) -> Run:
        with self._store.read() as tx:
            run = run_repository.find(tx, run_id)
        if run is None or run.executor != self.executor or run.status not in OWNED:
            raise _not_owned(run_id, run)
        return run

    def fence(self, run_id: str) -> Callable[[Transaction], None]:
        """For those who write elsewhere on behalf of a run: raises when it is not ours any more."""

        def check(tx: Transaction) -> None:
            self._require_owned(run_id, run_repository.find(tx, run_id))

        return check

    def set_turn(self, run_id: str, turn_id: str) -> Run:
        """The turn it is at, so that people find it."""
        with self._store.write() as tx:
            return self._transition(tx, self._locked(tx, run_id), RunAction.SET_TURN, "at work", turn_id=turn_id)

    def add_usage(self, run_id: str, turn_id: str, used: UsageIncrement) -> Run:
        """What a turn has used, counted once however often it is said."""
        reason = f"turn {turn_id}"
        with self._store.write() as tx:
            run = self._locked(tx, run_id)
            trail = event_log.of_stream(tx, event_stream(run_id))
            if any(event.action == RunAction.ADD_USAGE and event.reason == reason for event in trail):
                return run
            total = {name: getattr(run, name) + value for name, value in used._asdict().items()}
            return self._transition(tx, run, RunAction.ADD_USAGE, reason, **total)

    def wait(self, run_id: str, why: str) -> Run:
        return self._transition_once(run_id, RunStatus.WAITING, RunAction.WAIT, why, why=why)

    def wake(self, run_id: str, why: str) -> Run:
        return self._transition_once(run_id, RunStatus.RUNNING, RunAction.WAKE, why, why="")

    def pause(self, run_id: str) -> Run:
        return self._transition_once(run_id, RunStatus.PAUSED, RunAction.PAUSE, "as somebody wanted")

    def resume(self, run_id: str) -> Run:
        return self._transition_once(run_id, RunStatus.RUNNING, RunAction.RESUME, "as somebody wanted", why="")

    def message_delivered(self, run_id: str, message: str, left: str | None = None) -> None:
        """Its agent was told a message, but for what is left of it; what was said since then stays."""
        with self._store.write() as tx:
            run = self._locked(tx, run_id)
            since = remaining_text(run.message, message) if run.message else None
            if left == message or run.message is None or since == run.message:
                return
            still = append_text(left, since) if since else left
            self._transition(tx, run, RunAction.CONTROL, "its agent was told", message=still)

    def finish(self, run_id: str, result: str) -> Run:
        return self._transition_once(run_id, RunStatus.DONE, RunAction.FINISH, "done", result=result)

    def fail(self, run_id: str, why: str) -> Run:
        return self._transition_once(run_id, RunStatus.FAILED, RunAction.FAIL, why, why=why)

    def stop(self, run_id: str, why: str) -> Run:
        """With the turn that it was at."""
        with self._store.write() as tx:
            run = run_repository.lock(tx, run_id)
            if run is not None and run.status is RunStatus.STOPPED:
                return run
            run = self._require_owned(run_id, run)
            end_turn(tx, Scope(run.conversation_id, SYSTEM), run, why)
            return self._transition(tx, run, RunAction.STOP, why, why=why, wish=None, ended_at=tx.now())

    def _transition_once(self, run_id: str, to: RunStatus, action: RunAction, reason: str, **changes: Any) -> Run:
        """A step that is taken once, however often it is asked for."""
        with self._store.write() as tx:
            run = run_repository.lock(tx, run_id)
            if run is not None and run.status is to and run.executor in (self.executor, None):
                return run
            run = self._require_owned(run_id, run)
            if to not in OPEN:
                changes = {"ended_at": tx.now(), **changes}
            return self._transition(tx, run, action, reason, **changes)

    def _locked(self, tx: Transaction, run_id: str) -> Run:
        return self._require_owned(run_id, run_repository.lock(tx, run_id))

    def _require_owned(self, run_id: str, run: Run | None) -> Run:
        if run is None or run.executor != self.executor or run.status not in OPEN:
            raise _not_owned(run_id, run)
        return run

    def _transition(self, tx: Transaction, run: Run, action: RunAction, reason: str, **changes: Any) -> Run:
        return transition(tx, Scope(run.conversation_id, SYSTEM), run, action, reason, **changes)


def _not_owned(run_id: str, run: Run | None) -> RunNotOwned:
    if run is None:
        return RunNotOwned(f"Run {run_id} is gone.")
    return RunNotOwned(f"Run {run_id} is {run.status}, in the hand of {run.executor or 'nobody'}.")
