"""Enqueue, list and control runs. The worker's side is `queue.py`."""

from __future__ import annotations

import re
from typing import Any, Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Scope
from punchlist.conversations.service import MAX_TITLE_LENGTH
from punchlist.conversations.service import end_turn as end_conversation_turn
from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import Change, compact_encoder
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.processes import is_running
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import OPEN, OWNED, RUN, ControlRequest, RunAction, RunStatus
from punchlist.runs.model import Run, RunKind, append_text
from punchlist.runs.workers import alive_since, last_seen
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.storage.transitions import transition

MAX_MESSAGE_LENGTH: Final = 50_000
MAX_REASON_LENGTH: Final = 2_000
_ENCODE: Final = compact_encoder(ensure_ascii=False)
_ID_SUFFIX: Final = re.compile(r"[0-9A-Za-z:.-]{1,100}")
"""No wildcard of LIKE."""


def event_stream(run_id: str) -> str:
    return f"run:{run_id}"


def enqueue(
    tx: Transaction,
    scope: Scope,
    *,
    kind: RunKind | str,
    conversation_id: str,
    agent: str,
    request: dict[str, Any],
    mission_id: str | None = None,
    pillar_id: str | None = None,
    todo_id: str | None = None,
    id: str | None = None,
    reason: str = "",
) -> Run:
    """Queue a run in the caller's transaction. Idempotent per `id`."""
    if id is not None and (existing := run_repository.find(tx, id)):
        return existing
    kind = RunKind(kind)
    now = tx.now()
    run = Run(
        id=id or new_id(),
        kind=kind,
        status=RUN.advance(NEW, RunAction.QUEUE, scope.actor.role),
        mission_id=mission_id,
        pillar_id=pillar_id,
        todo_id=todo_id,
        conversation_id=conversation_id,
        agent=agent,
        request=_ENCODE(request),
        created_by=str(scope.actor),
        created_at=now,
        changed_at=now,
    )
    run_repository.insert_run(tx, run)
    event_log.append(tx, _change(scope, RunAction.QUEUE, None, run, reason or f"to {kind.value}", run._asdict()))
    return run


def advance_run(tx: Transaction, scope: Scope, run: Run, action: RunAction, reason: str, **changes: Any) -> Run:
    """Advance a locked run: its row and the event."""

    def event(before: Run, after: Run, _written: dict[str, Any]) -> Change:
        data = {name: value for name, value in after._asdict().items() if value != getattr(before, name)}
        return _change(scope, action, before.status, after, text.excerpt(reason, MAX_REASON_LENGTH), data)

    return transition(
        tx,
        RUN,
        action,
        scope.actor.role,
        lock=lambda _: run,
        update=run_repository.update_run,
        event=event,
        changes={"changed_at": tx.now(), **changes},
    )


def stop_for_todo(tx: Transaction, scope: Scope, todo_id: str, reason: str) -> None:
    """Stop the runs of a todo that has ended."""
    why = text.excerpt(reason, MAX_REASON_LENGTH)
    for run in run_repository.by_todo(tx, todo_id):
        if run.status in OPEN and (locked := run_repository.lock(tx, run.id)) and locked.status in OPEN:
            request_control(tx, scope, locked, reason, wish=ControlRequest.STOP, why=why)


def request_control(tx: Transaction, scope: Scope, run: Run, reason: str, **changes: Any) -> Run:
    """Record a request to the owner of a locked run. A run without a live owner stops at once."""
    if changes.get("wish") is ControlRequest.STOP and (run.status not in OWNED or _owner_is_dead(tx, run)):
        end_turn(tx, scope, run, f"cancelled: {reason}")
        ended = {"wish": None, "why": reason, "ended_at": tx.now(), "executor": None}
        return advance_run(tx, scope, run, RunAction.STOP, reason, **ended)
    return advance_run(tx, scope, run, RunAction.CONTROL, reason, **changes)


def end_turn(tx: Transaction, scope: Scope, run: Run, reason: str) -> None:
    """End the open turn of a run that ends: `run.turn_id`, or one that its worker has begun since."""
    if conversation_repository.lock_conversation(tx, run.conversation_id) is None:
        return
    turn = conversation_repository.find_open_turn(tx, run.conversation_id, run.id)
    if turn is not None:
        turn_scope = Scope(turn.conversation_id, scope.actor)
        end_conversation_turn(tx, turn_scope, turn, text.excerpt(reason, MAX_TITLE_LENGTH))


def _owner_is_dead(tx: Transaction, run: Run) -> bool:
    """Also when its worker, perhaps on another machine, has not been seen for long. If it wakes up, it is refused."""
    if run.executor is None or is_running(run.executor) is False:
        return True
    seen_at = last_seen(tx, run.executor)
    return (seen_at or run.changed_at) <= alive_since(parse_timestamp(tx.now()))


class Runs:
    def __init__(self, store: Store) -> None:
        self._store = store

    def enqueue(self, scope: Scope, **values: Any) -> Run:
        with self._store.write() as tx:
            return enqueue(tx, scope, **values)

    def get(self, id: str) -> Run:
        with self._store.read() as tx:
            run = run_repository.find(tx, id)
        if run is None:
            raise _unknown_run(id)
        return run

    def find(self, id_or_suffix: str) -> Run:
        with self._store.read() as tx:
            if run := run_repository.find(tx, id_or_suffix):
                return run
            valid = _ID_SUFFIX.fullmatch(id_or_suffix)
            matches = run_repository.by_id_suffix(tx, f"%{id_or_suffix}") if valid else []
        if len(matches) > 1:
            raise InvalidInput(f"{text.excerpt(id_or_suffix)!r} matches several ids. Give more characters.")
        if not matches:
            raise _unknown_run(id_or_suffix)
        return matches[0]

    def for_todo(self, todo_id: str) -> list[Run]:
        with self._store.read() as tx:
            return run_repository.by_todo(tx, todo_id)

    def list(self, *, mission_id: str | None = None, ended: bool = False, limit: int = 50) -> list[Run]:
        """Newest first; only open runs unless `ended`."""
        with self._store.read() as tx:
            if not ended:
                return run_repository.open_runs(tx, 0 if mission_id else 1, mission_id or "", limit)
            if mission_id is None:
                return run_repository.newest(tx, limit)
            return run_repository.of_mission(tx, mission_id, limit)

    # --- control (M11) ------------------------------------------------------------------------------------

    def pause(self, scope: Scope, id: str, reason: str = "") -> Run:
        _check_reason(reason)
        with self._store.write() as tx:
            run = _lock(tx, id)
            _check_open(run, "pause")
            if run.wish is ControlRequest.STOP:
                raise IllegalTransition(f"Run {run.id} is being stopped. `punchlist mission runs show` shows when.")
            if run.wish is ControlRequest.PAUSE:
                raise IllegalTransition(f"Run {run.id} is already paused or pausing.")
            why = reason or "paused"
            return request_control(tx, scope, run, reason or "a person paused it", wish=ControlRequest.PAUSE, why=why)

    def resume(self, scope: Scope, id: str, reason: str = "") -> Run:
        """Continue a paused run; queue a failed or stopped one again."""
        _check_reason(reason)
        with self._store.write() as tx:
            run = _lock(tx, id)
            if run.status in (RunStatus.FAILED, RunStatus.STOPPED):
                return retry_run(tx, scope, run, reason or "a person retried it")
            _check_open(run, "resume")
            if run.wish is not ControlRequest.PAUSE:
                raise IllegalTransition(f"Run {run.id} is {run.status} and not paused. There is nothing to resume.")
            return request_control(tx, scope, run, reason or "a person resumed it", wish=None, why="")

    def redirect(self, scope: Scope, id: str, message: str) -> Run:
        """Interrupt the run's agent with a message."""
        if problem := text.raw_problem(message, max_length=MAX_MESSAGE_LENGTH):
            raise InvalidInput(f"message: {problem}")
        if not message.strip():
            raise InvalidInput("message: must not be empty")
        with self._store.write() as tx:
            return tell(tx, scope, id, message)

    def stop(self, scope: Scope, id: str, reason: str = "") -> Run:
        """Without the effects on a mission: `missions/run_control.py` has those."""
        with self._store.write() as tx:
            return stop_locked_run(tx, scope, id, reason)


def tell(tx: Transaction, scope: Scope, id: str, message: str) -> Run:
    """Interrupt the agent of a run with a message, in the caller's transaction."""
    run = _lock(tx, id)
    if run.kind not in (RunKind.EXECUTE, RunKind.DELEGATE, RunKind.CHAT):
        raise IllegalTransition(f"Run {run.id} is a {run.kind} run. It has no agent to redirect.")
    _check_open(run, "redirect")
    combined = append_text(run.message, message.strip())
    if len(combined) > MAX_MESSAGE_LENGTH:
        raise IllegalTransition(
            f"The agent of run {run.id} has not received your earlier messages yet. Retry when it has."
        )
    return request_control(tx, scope, run, f"{scope.actor} sent a message", message=combined)


def retry_run(tx: Transaction, scope: Scope, run: Run, reason: str) -> Run:
    """Queue a locked run that failed or was stopped again."""
    # The result of a retried delegation is a new one.
    reset = {"leg": run.leg + 1, "executor": None, "ended_at": None, "why": "", "wish": None, "delivered_to": None}
    return advance_run(tx, scope, run, RunAction.RETRY, reason, **reset)


def stop_locked_run(tx: Transaction, scope: Scope, id: str, reason: str = "") -> Run:
    _check_reason(reason)
    run = _lock(tx, id)
    why = reason or "a person stopped it"
    return request_control(tx, scope, run, why, wish=ControlRequest.STOP, why=why)


def _lock(tx: Transaction, id: str) -> Run:
    run = run_repository.lock(tx, id)
    if run is None:
        raise _unknown_run(id)
    return run


def _check_open(run: Run, action: str) -> None:
    if run.status not in OPEN:
        raise IllegalTransition(
            f"Cannot {action} run {run.id}: it is {run.status}. `punchlist mission runs` lists open runs."
        )


def _check_reason(reason: str) -> None:
    if problem := text.block_problem(reason, max_length=MAX_REASON_LENGTH):
        raise InvalidInput(f"reason: {problem}")


def _unknown_run(id: str) -> NotFound:
    return NotFound(f"There is no run {text.excerpt(id)!r}. `punchlist mission runs --all` lists all runs.")


def _change(
    scope: Scope, action: RunAction, before: RunStatus | None, run: Run, reason: str, data: dict[str, Any]
) -> Change:
    # The event belongs to the run's chat, wherever the caller is.
    at_run = Scope(run.conversation_id, scope.actor)
    return at_run.change(event_stream(run.id), action, run.id, reason, data, from_status=before, to_status=run.status)
