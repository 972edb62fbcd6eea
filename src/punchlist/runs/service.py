"""Runs: asked for, listed, and told what people want of them. The engine's side is in `working.py`."""

from __future__ import annotations

import re
from typing import Any, Final

from punchlist.conversations import repository as conversation_records
from punchlist.conversations.model import Scope
from punchlist.conversations.service import LONGEST_TITLE
from punchlist.conversations.service import end_turn as end_conversation_turn
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.kernel.events import Change
from punchlist.kernel.ids import new_id
from punchlist.kernel.json_encoder import compact
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.process_id import lives
from punchlist.runs import repository as run_repository
from punchlist.runs.lifecycle import OPEN, OWNED, RUN, ControlRequest, RunAction, RunStatus
from punchlist.runs.model import Run, RunKind, append_text
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

MAX_MESSAGE_LENGTH: Final = 50_000
MAX_REASON_LENGTH: Final = 2_000
_ENCODE: Final = compact(ensure_ascii=False)
_END_OF_ID: Final = re.compile(r"[0-9A-Za-z:.-]{1,100}")
"""Nothing that means something in a search."""


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
    """Put a run on the list, inside of the transaction of whatever it follows from. The same id makes one run."""
    if id is not None and (there := run_repository.find(tx, id)):
        return there
    kind = RunKind(kind)
    status = RUN.advance(NEW, RunAction.QUEUE, scope.actor.role)
    now = tx.now()
    made = Run(
        id=id or new_id(),
        kind=kind,
        status=status,
        mission_id=mission_id,
        pillar_id=pillar_id,
        todo_id=todo_id,
        conversation_id=conversation_id,
        agent=agent,
        request=_ENCODE(request),
        created_by=str(scope.actor),
        leg=0,
        attempts=0,
        executor=None,
        turn_id=None,
        wish=None,
        message=None,
        why="",
        result=None,
        created_at=now,
        changed_at=now,
        started_at=None,
        ended_at=None,
        input_tokens=0,
        output_tokens=0,
        cost=0.0,
        calls=0,
        seconds=0.0,
    )
    run_repository.insert_run(tx, made)
    event_log.append(tx, run_change(scope, RunAction.QUEUE, None, made, reason or f"to {kind.value}", made._asdict()))
    return made


def transition(tx: Transaction, scope: Scope, run: Run, action: RunAction, reason: str, **changes: Any) -> Run:
    """Take a run, as it was just read, one step along: its row, and the event."""
    status = RUN.advance(run.status, action, scope.actor.role)
    after = run._replace(**{"status": status, "changed_at": tx.now(), **changes})
    if not run_repository.update_run(tx, run, after):
        raise Conflict(f"Run {run.id} was changed by somebody else at the same moment. Look again and retry.")
    told = {name: value for name, value in after._asdict().items() if value != getattr(run, name)}
    event_log.append(tx, run_change(scope, action, run.status, after, text.excerpt(reason, 2_000), told))
    return after


def stop_for_todo(tx: Transaction, scope: Scope, todo_id: str, reason: str) -> None:
    """The work on a todo is to end, since the todo has."""
    for run in run_repository.select(tx, run_repository.BY_TODO, todo_id=todo_id):
        if run.status in OPEN and (locked := run_repository.lock(tx, run.id)) and locked.status in OPEN:
            request_control(
                tx, scope, locked, reason, wish=ControlRequest.STOP, why=text.excerpt(reason, MAX_REASON_LENGTH)
            )


def request_control(tx: Transaction, scope: Scope, run: Run, reason: str, **wanted: Any) -> Run:
    """Say what is wanted of a run that is locked; a stop of one that nobody has in hand is done at once."""
    if wanted.get("wish") is ControlRequest.STOP and (run.status not in OWNED or _owner_is_dead(run)):
        end_turn(tx, scope, run, reason)
        return transition(
            tx, scope, run, RunAction.STOP, reason, wish=None, why=reason, ended_at=tx.now(), executor=None
        )
    return transition(tx, scope, run, RunAction.CONTROL, reason, **wanted)


def end_turn(tx: Transaction, scope: Scope, run: Run, why: str) -> None:
    """Nobody goes on with the turn that a run was at."""
    if run.turn_id is None or conversation_records.lock_conversation(tx, run.conversation_id) is None:
        return
    turn = conversation_records.turn(tx, run.turn_id)
    if turn is not None and turn.open:
        there = Scope(turn.conversation_id, scope.actor)
        end_conversation_turn(tx, there, turn, text.excerpt(f"cancelled: {why}", LONGEST_TITLE))


def _owner_is_dead(run: Run) -> bool:
    return run.executor is None or lives(run.executor) is False


class Runs:
    def __init__(self, store: Store) -> None:
        self._store = store

    def queue(self, scope: Scope, **wanted: Any) -> Run:
        """As `queue`, in a transaction of its own."""
        with self._store.write() as tx:
            return enqueue(tx, scope, **wanted)

    def get(self, id: str) -> Run:
        with self._store.read() as tx:
            found = run_repository.find(tx, id)
        if found is None:
            raise _unknown_run(id)
        return found

    def find(self, wanted: str) -> Run:
        """By its id, or by the end of that."""
        with self._store.read() as tx:
            if found := run_repository.find(tx, wanted):
                return found
            ends = (
                run_repository.select(tx, run_repository.BY_ID_SUFFIX, like=f"%{wanted}")
                if _END_OF_ID.fullmatch(wanted)
                else []
            )
        if len(ends) > 1:
            raise InvalidInput(f"{text.excerpt(wanted)!r} is the end of several ids; give more of it.")
        if not ends:
            raise _unknown_run(wanted)
        return ends[0]

    def for_todo(self, todo_id: str) -> list[Run]:
        with self._store.read() as tx:
            return run_repository.select(tx, run_repository.BY_TODO, todo_id=todo_id)

    def list(self, *, mission_id: str | None = None, ended: bool = False, limit: int = 50) -> list[Run]:
        """Newest first; those that have not ended, unless `ended`."""
        with self._store.read() as tx:
            if not ended:
                any_mission = 0 if mission_id else 1
                return run_repository.select(
                    tx, run_repository.OPEN_RUNS, any=any_mission, mission_id=mission_id or "", limit=limit
                )
            if mission_id is None:
                return run_repository.select(tx, run_repository.NEWEST, limit=limit)
            return run_repository.select(tx, run_repository.BY_MISSION, mission_id=mission_id, limit=limit)

    # --- what people want (M11) ---------------------------------------------------------------------------

    def pause(self, scope: Scope, id: str, reason: str = "") -> Run:
        """It comes to rest where it is; nothing of it is lost."""
        _check_reason(reason)
        with self._store.write() as tx:
            run = self._locked(tx, id)
            _check_open(run, "pause")
            if run.wish is ControlRequest.STOP:
                raise IllegalTransition(f"Run {run.id} is about to be stopped; `punchlist runs show` says when it is.")
            if run.wish is ControlRequest.PAUSE:
                raise IllegalTransition(f"Run {run.id} is paused already, or about to be.")
            return request_control(
                tx,
                scope,
                run,
                reason or "a person wants it to pause",
                wish=ControlRequest.PAUSE,
                why=reason or "paused",
            )

    def resume(self, scope: Scope, id: str, reason: str = "") -> Run:
        """It goes on: after a pause where it was, after a failure or a stop anew."""
        _check_reason(reason)
        with self._store.write() as tx:
            run = self._locked(tx, id)
            if run.status in (RunStatus.FAILED, RunStatus.STOPPED):
                anew = {"leg": run.leg + 1, "executor": None, "ended_at": None, "why": "", "wish": None}
                return transition(tx, scope, run, RunAction.RETRY, reason or "to be tried again", **anew)
            _check_open(run, "resume")
            if run.wish is not ControlRequest.PAUSE:
                raise IllegalTransition(f"Run {run.id} is {run.status}, and nobody wants it paused: it goes on.")
            return request_control(tx, scope, run, reason or "a person lets it go on", wish=None, why="")

    def redirect(self, scope: Scope, id: str, message: str) -> Run:
        """Its agent is told at once; what it is at is interrupted for that."""
        if problem := text.raw_problem(message, longest=MAX_MESSAGE_LENGTH):
            raise InvalidInput(f"message: {problem}")
        if not message.strip():
            raise InvalidInput("message: must not be empty")
        with self._store.write() as tx:
            run = self._locked(tx, id)
            if run.kind not in (RunKind.EXECUTE, RunKind.DELEGATE, RunKind.CHAT):
                raise IllegalTransition(f"Run {run.id} is a {run.kind}: there is no agent in it that could be told.")
            _check_open(run, "redirect")
            said = append_text(run.message, message.strip())
            if len(said) > MAX_MESSAGE_LENGTH:
                raise IllegalTransition(f"Run {run.id} has not heard what was said before. Wait until it has.")
            return request_control(tx, scope, run, "a person has said something", message=said)

    def stop(self, scope: Scope, id: str, reason: str = "") -> Run:
        """It ends where it is; `resume` begins it anew."""
        _check_reason(reason)
        with self._store.write() as tx:
            run = self._locked(tx, id)
            why = reason or "a person stopped it"
            return request_control(tx, scope, run, why, wish=ControlRequest.STOP, why=why)

    def _locked(self, tx: Transaction, id: str) -> Run:
        run = run_repository.lock(tx, id)
        if run is None:
            raise _unknown_run(id)
        return run


def _check_open(run: Run, what: str) -> None:
    if run.status not in OPEN:
        raise IllegalTransition(f"Cannot {what} run {run.id}: it is {run.status}. `punchlist runs` lists those open.")


def _check_reason(reason: str) -> None:
    if problem := text.block_problem(reason, longest=MAX_REASON_LENGTH):
        raise InvalidInput(f"reason: {problem}")


def _unknown_run(id: str) -> NotFound:
    return NotFound(f"There is no run {text.excerpt(id)!r}. `punchlist runs` lists those there are.")


def run_change(
    scope: Scope, action: RunAction, before: RunStatus | None, run: Run, reason: str, data: dict[str, Any]
) -> Change:
    return Change(
        stream=event_stream(run.id),
        conversation_id=run.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=run.id,
        from_status=before,
        to_status=run.status,
        reason=reason,
        data=data,
    )
