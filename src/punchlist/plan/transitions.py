"""What every change of a plan has in common, inside its transaction: the turn's lock, the todo, row and event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import StoredTurn, TurnScope
from punchlist.errors import Conflict, IllegalTransition, NotFound
from punchlist.kernel.events import Change
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import visible
from punchlist.plan.lifecycle import ConditionStatus, PlanAction, PlanStatus
from punchlist.plan.model import Condition, NewCondition, TurnTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.storage import event_log
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

TAKEN: Final = Statement(
    "SELECT count(*) FROM events WHERE stream = :stream AND subject = :subject AND action = :action"
)


def plan_stream(turn_id: str) -> str:
    return f"plan:{turn_id}"


def lock_turn(tx: Transaction, scope: TurnScope) -> StoredTurn:
    return check_open(conversation_repository.lock_turn(tx, scope.turn_id), scope)


def lock_and_read_titles(tx: Transaction, scope: TurnScope) -> list[tuple[Any, ...]]:
    """Lock a turn; id, status and title of each todo on its plan.

    On SQLite a write is alone from its beginning, so that one statement sees to both. On PostgreSQL it
    would see the todos as they were before the wait for the lock.
    """
    repository = TurnTodoRepository(tx)
    if tx.exclusive and (names := repository.find_titles_if_turn_open(scope.conversation_id, scope.turn_id)):
        return names
    lock_turn(tx, scope)
    return repository.find_titles(scope.turn_id)


def check_open(turn: StoredTurn | None, scope: TurnScope) -> StoredTurn:
    if turn is None or turn.conversation_id != scope.conversation_id:
        raise turn_not_found(scope)
    if not turn.open:
        raise IllegalTransition(f"Turn {scope.turn_id} has ended ({turn.end_reason}); its plan no longer changes.")
    return turn


def turn_not_found(scope: TurnScope) -> NotFound:
    return NotFound(f"Session {scope.conversation_id!r} has no turn {scope.turn_id!r}.")


def find_todo(repository: TurnTodoRepository, scope: TurnScope, todo_id: str) -> TurnTodo:
    todo = repository.find_by_id(todo_id)
    if todo is None:
        raise NotFound(f"There is no todo {visible(todo_id)!r}. Call list_todo for the ids of this turn's todos.")
    if todo.turn_id != scope.turn_id:
        raise NotFound(f"Todo {todo_id!r} belongs to another turn. Call list_todo for the ids of this turn's todos.")
    return todo


def count_retries(tx: Transaction, todo: TurnTodo) -> int:
    """How often the work on a todo has failed and was to be tried again; the trail knows."""
    row = tx.one(TAKEN, stream=plan_stream(todo.turn_id), subject=todo.id, action=PlanAction.RETRY.value)
    return int(row[0]) if row else 0


def new_conditions(todo: TurnTodo, needs: Iterable[NewCondition], now: str) -> list[Condition]:
    needs = list(dict.fromkeys(needs))
    # In the order of their ids, since that is the order in which they are read back.
    return [
        Condition(
            id,
            todo.conversation_id,
            todo.turn_id,
            todo.id,
            need.kind,
            need.subject,
            ConditionStatus.OPEN,
            answer=None,
            resolved_by=None,
            resolved_at=None,
            created_at=now,
        )
        for id, need in zip(sorted(new_id() for _ in needs), needs, strict=True)
    ]


def apply_change(
    tx: Transaction,
    scope: TurnScope,
    action: PlanAction,
    todo: TurnTodo,
    reason: str,
    told: dict[str, Any] | None = None,
    **changes: Any,
) -> TurnTodo:
    """Change a todo that is still as it was read. `told` is what the event says besides."""
    changed = TurnTodoRepository(tx).update(todo, **changes)
    if changed is None:
        raise Conflict(f"Todo {todo.id!r} was changed by somebody else at the same moment. List it again and retry.")
    data = {"title": todo.title, **changes, **(told or {})}
    event_log.append(tx, todo_change(scope, action, todo.status, changed, reason, data))
    return changed


def todo_change(
    scope: TurnScope, action: PlanAction, before: PlanStatus | None, todo: TurnTodo, reason: str, data: dict[str, Any]
) -> Change:
    return Change(
        stream=plan_stream(scope.turn_id),
        conversation_id=scope.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=todo.id,
        from_status=before,
        to_status=todo.status,
        reason=reason,
        data=data,
    )
