"""The plan's transactions: create, list, start and end the todos of one turn.

The turn comes from the caller's scope (T7). Writers of one plan take turns on the turn's row; the
todo's own state is checked again in the UPDATE that changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from punchlist.conversations import records
from punchlist.conversations.model import Turn, TurnScope
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotFound, StoreDamaged
from punchlist.kernel.events import Change
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import visible
from punchlist.plan import rules
from punchlist.plan.lifecycle import OPEN, PLAN, Action, Status
from punchlist.plan.model import Created, Ended, NewTodo, Plan, TurnTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.storage import eventlog
from punchlist.storage.store import Store, Transaction


def stream(turn_id: str) -> str:
    return f"plan:{turn_id}"


class Plans:
    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, scope: TurnScope, items: Sequence[NewTodo], *, reason: str = "create_todo") -> Created:
        """Add items to the turn's plan, all or none (T2)."""
        status = PLAN.advance(NEW, Action.CREATE, scope.actor.role)
        with self._store.write() as tx:
            _lock(tx, scope)
            repository = TurnTodoRepository(tx)
            counts = repository.count_by_status(scope.turn_id)
            positions, shifts = rules.place(_room(counts, len(items)), items)
            now = tx.now()
            todos = [
                _new_todo(scope, item, status, position, now) for item, position in zip(items, positions, strict=True)
            ]
            repository.make_room(scope.turn_id, shifts)
            if len(todos) == 1:
                repository.create(todos[0])
            else:
                repository.create_batch(todos)
            room = [[shift.start, shift.end, shift.by] for shift in shifts]
            changes = [_change(scope, Action.CREATE, None, todo, reason, todo.described()) for todo in todos]
            if room:
                changes[0].data["shifts"] = room
            eventlog.append(tx, *changes)
            return Created(todos, counts[Status.PENDING] + len(todos))

    def list(self, scope: TurnScope, status: Collection[Status] | None = None) -> Plan:
        """The turn's todos, by default what remains, and the counts of all of them (T3)."""
        with self._store.read() as tx:
            repository = TurnTodoRepository(tx)
            wanted = OPEN if status is None else frozenset(status)
            items = repository.find_by_turn(scope.turn_id, wanted)
            # An item tells whose turn it is; only without any does the turn have to be asked.
            owner = items[0] if items else records.turn(tx, scope.turn_id)
            if owner is None or owner.conversation_id != scope.conversation_id:
                raise _no_turn(scope)
            counts = repository.verified_counts(scope.conversation_id, scope.turn_id)
            if len(items) != sum(counts[state] for state in wanted):
                raise StoreDamaged.not_as_written(f"The plan of turn {scope.turn_id}")
            return Plan(items, counts)

    def start(self, scope: TurnScope, todo_id: str, *, reason: str = "start_todo") -> TurnTodo:
        """Mark an item in progress; one at a time per turn (T5)."""
        with self._store.write() as tx:
            _lock(tx, scope)
            repository = TurnTodoRepository(tx)
            todo = _find(repository, scope, todo_id)
            status = PLAN.advance(todo.status, Action.START, scope.actor.role)
            for running in repository.find_by_turn(scope.turn_id, {Status.IN_PROGRESS}):
                raise IllegalTransition(
                    f"“{visible(running.title)}” ({running.id}) is in progress, and a turn works on one todo at a "
                    "time. Complete or cancel it first."
                )
            return _apply(tx, scope, Action.START, todo, reason, status=status, started_at=tx.now())

    def end(self, scope: TurnScope, todo_id: str, outcome: str, action: Action = Action.COMPLETE) -> Ended:
        """Complete or cancel an item, with what came of it (T4)."""
        with self._store.write() as tx:
            _lock(tx, scope)
            repository = TurnTodoRepository(tx)
            todo = _find(repository, scope, todo_id)
            status = PLAN.advance(todo.status, action, scope.actor.role)
            ended = _apply(tx, scope, action, todo, outcome, status=status, outcome=outcome, completed_at=tx.now())
            counts = repository.count_by_status(scope.turn_id)
            return Ended(ended, counts[Status.PENDING] + counts[Status.IN_PROGRESS])


def _room(counts: dict[Status, int], more: int) -> int:
    """How many todos the plan has, when it can take more of them."""
    already = sum(counts.values())
    if already + more > rules.MAX_PLAN:
        raise InvalidInput(
            f"items: a plan holds at most {rules.MAX_PLAN} todos; this one has {already} and {more} more were sent"
        )
    return already


def _lock(tx: Transaction, scope: TurnScope) -> Turn:
    turn = records.lock_turn(tx, scope.turn_id)
    if turn is None or turn.conversation_id != scope.conversation_id:
        raise _no_turn(scope)
    if not turn.open:
        raise IllegalTransition(f"Turn {scope.turn_id} has ended ({turn.end_reason}); its plan no longer changes.")
    return turn


def _no_turn(scope: TurnScope) -> NotFound:
    return NotFound(f"Session {scope.conversation_id!r} has no turn {scope.turn_id!r}.")


def _find(repository: TurnTodoRepository, scope: TurnScope, todo_id: str) -> TurnTodo:
    todo = repository.find_by_id(todo_id)
    if todo is None:
        raise NotFound(f"There is no todo {visible(todo_id)!r}. Call list_todo for the ids of this turn's todos.")
    if todo.turn_id != scope.turn_id:
        raise NotFound(f"Todo {todo_id!r} belongs to another turn. Call list_todo for the ids of this turn's todos.")
    return todo


def _new_todo(scope: TurnScope, item: NewTodo, status: Status, position: int, now: str) -> TurnTodo:
    return TurnTodo(
        id=new_id(),
        conversation_id=scope.conversation_id,
        turn_id=scope.turn_id,
        title=item.title,
        context=item.context,
        completion_criteria=item.completion_criteria,
        agent_type=item.agent_type,
        status=status,
        priority=position,
        outcome=None,
        created_at=now,
        started_at=None,
        completed_at=None,
    )


def _apply(tx: Transaction, scope: TurnScope, action: Action, todo: TurnTodo, reason: str, **changes: Any) -> TurnTodo:
    changed = TurnTodoRepository(tx).update(todo, **changes)
    if changed is None:
        raise Conflict(f"Todo {todo.id!r} was changed by somebody else at the same moment. List it again and retry.")
    eventlog.append(tx, _change(scope, action, todo.status, changed, reason, {"title": todo.title, **changes}))
    return changed


def _change(
    scope: TurnScope, action: Action, before: Status | None, todo: TurnTodo, reason: str, data: dict[str, Any]
) -> Change:
    return Change(
        stream=stream(scope.turn_id),
        conversation_id=scope.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=todo.id,
        from_status=before,
        to_status=todo.status,
        reason=reason,
        data=data,
    )
