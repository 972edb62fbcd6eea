"""The whole plan at one moment, for the agent loop and the stop hook.

Damaged rows are reported and skipped, so that one bad row does not hide the rest of the plan (C11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from punchlist.conversations.model import TurnScope
from punchlist.errors import StoreDamaged
from punchlist.plan import condition_repository, conditions
from punchlist.plan.model import Condition, PlanSnapshot, TurnTodo
from punchlist.plan.repository import EMPTY_SNAPSHOT, SNAPSHOT, WIDTH, Rows, parse_todo_rows, turn_not_found
from punchlist.storage.store import Transaction


def read_snapshot_rows(tx: Transaction, scope: TurnScope) -> Rows:
    """The stored plan. While these rows are equal, so is the snapshot, unless todos wait for something."""
    return tx.all(SNAPSHOT, conversation_id=scope.conversation_id, turn_id=scope.turn_id)


def rows_have_conditions(rows: Rows) -> bool:
    return bool(rows and rows[0][-1])


def take_snapshot(tx: Transaction, scope: TurnScope, rows: Rows | None = None) -> PlanSnapshot:
    """Runs before each model request: one statement, and a second one if the plan has conditions."""
    if rows is None:
        rows = read_snapshot_rows(tx, scope)
    if not rows:
        return _empty_snapshot(tx, scope)
    if all(row[1] != scope.conversation_id for row in rows):
        raise turn_not_found(scope)
    problems: list[str] = []
    todos = parse_todo_rows((row[:WIDTH] for row in rows), problems)
    count, any_conditions = rows[0][WIDTH:]
    if count != len(rows):
        problems.append(_incomplete(scope))
    if not any_conditions:
        return PlanSnapshot(todos, problems=problems)
    found = condition_repository.read_conditions(tx, scope.turn_id, problems)
    return PlanSnapshot(todos, *condition_state(todos, found, tx.now()), problems)


def _empty_snapshot(tx: Transaction, scope: TurnScope) -> PlanSnapshot:
    row = tx.one(EMPTY_SNAPSHOT, conversation_id=scope.conversation_id, turn_id=scope.turn_id)
    if row is None or row[0] != scope.conversation_id:
        raise turn_not_found(scope)
    return PlanSnapshot([], problems=[_incomplete(scope)] if row[1] else [])


def _incomplete(scope: TurnScope) -> str:
    return str(StoreDamaged.not_as_written(f"The plan of turn {scope.turn_id}"))


def condition_state(todos: Sequence[TurnTodo], found: Sequence[Condition], now: str) -> tuple[Any, Any, Any]:
    """Waiting reasons, answers and cancellation notes, each by todo id."""
    return (
        conditions.waiting_reasons(todos, found, now),
        conditions.collect_answers(found),
        conditions.cancellation_notes(todos, found),
    )
