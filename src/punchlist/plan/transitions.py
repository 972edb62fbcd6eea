"""Steps shared by the plan's transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from punchlist.conversations.model import TurnScope
from punchlist.kernel.events import Role
from punchlist.kernel.ids import new_id
from punchlist.plan.lifecycle import PLAN, ConditionStatus, PlanAction
from punchlist.plan.model import Condition, NewCondition, TurnTodo, todo_change
from punchlist.plan.person_changes import add_change_message
from punchlist.plan.repository import TurnTodoRepository
from punchlist.storage.store import Transaction
from punchlist.storage.transitions import transition


def advance_todo(
    tx: Transaction,
    scope: TurnScope,
    todo: TurnTodo,
    action: PlanAction,
    reason: str,
    *,
    guard: Callable[[TurnTodo], Mapping[str, Any] | None] | None = None,
    **changes: Any,
) -> TurnTodo:
    """Take a todo one step along its lifecycle. The caller has locked the turn."""
    after = transition(
        tx,
        PLAN,
        action,
        scope.actor.role,
        lock=lambda _: todo,
        update=_update,
        event=lambda before, after, data: todo_change(
            scope, action, before.status, after, reason, {"title": todo.title, **data}
        ),
        guard=guard,
        changes=changes,
    )
    if scope.actor.role is Role.PERSON:
        add_change_message(tx, scope, action, todo, after)
    return after


def _update(tx: Transaction, todo: TurnTodo, changes: dict[str, Any]) -> TurnTodo | None:
    return TurnTodoRepository(tx).update(todo, **changes)


def new_conditions(todo: TurnTodo, conditions: Iterable[NewCondition], now: str) -> list[Condition]:
    unique = list(dict.fromkeys(conditions))
    # Sorted ids: conditions are read back in the order of their ids.
    return [
        Condition(
            id,
            todo.conversation_id,
            todo.turn_id,
            todo.id,
            condition.kind,
            condition.subject,
            ConditionStatus.OPEN,
            created_at=now,
        )
        for id, condition in zip(sorted(new_id() for _ in unique), unique, strict=True)
    ]
