"""A plan as it stands at one moment, read in one transaction: todos, what they wait for, what was answered.

A row that is not what was written is reported and left out: one bad row must not keep an agent from
the rest of its plan (C11).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from punchlist.conversations.model import TurnScope
from punchlist.errors import StoreDamaged
from punchlist.plan import condition_repository, conditions
from punchlist.plan.model import Condition, PlanSnapshot, TurnTodo, parse_condition_row, parse_todo_row
from punchlist.plan.repository import BY_TURN, COLUMNS, EMPTY_SNAPSHOT, SNAPSHOT
from punchlist.plan.transitions import turn_not_found
from punchlist.storage.store import Transaction

_WIDTH: Final = len(COLUMNS)


Rows = Sequence[tuple[Any, ...]]


def read_snapshot_rows(tx: Transaction, scope: TurnScope) -> Rows:
    """The plan as it is stored: as long as these are the same, so is what `look` sees, but for what waits."""
    return tx.all(SNAPSHOT, conversation_id=scope.conversation_id, turn_id=scope.turn_id)


def has_conditions(rows: Rows) -> bool:
    return bool(rows and rows[0][-1])


def take_snapshot(tx: Transaction, scope: TurnScope, rows: Rows | None = None) -> PlanSnapshot:
    """Called before each request to a model: one statement, and one more when the plan has conditions."""
    if rows is None:
        rows = read_snapshot_rows(tx, scope)
    if not rows:
        return _look_at_none(tx, scope)
    if all(row[1] != scope.conversation_id for row in rows):
        raise turn_not_found(scope)
    problems: list[str] = []
    todos = _todos((row[:_WIDTH] for row in rows), problems)
    counted, any_conditions = rows[0][_WIDTH:]
    if counted != len(rows):
        problems.append(_not_all(scope))
    if not any_conditions:
        return PlanSnapshot(todos, problems=problems)
    found = _conditions(tx, scope.turn_id, problems)
    return PlanSnapshot(todos, *standing(todos, found, tx.now()), problems)


def _look_at_none(tx: Transaction, scope: TurnScope) -> PlanSnapshot:
    row = tx.one(EMPTY_SNAPSHOT, conversation_id=scope.conversation_id, turn_id=scope.turn_id)
    if row is None or row[0] != scope.conversation_id:
        raise turn_not_found(scope)
    return PlanSnapshot([], problems=[_not_all(scope)] if row[1] else [])


def _not_all(scope: TurnScope) -> str:
    return str(StoreDamaged.not_as_written(f"The plan of turn {scope.turn_id}"))


def standing(todos: Sequence[TurnTodo], found: Sequence[Condition], now: str) -> tuple[Any, Any, Any]:
    """What todos wait for, what was answered, and what is to be known of those that they waited for."""
    return (
        conditions.waiting_reasons(todos, found, now),
        conditions.collect_answers(found),
        conditions.cancellation_notes(todos, found),
    )


def read_todos(tx: Transaction, turn_id: str) -> list[TurnTodo]:
    return _todos(tx.all(BY_TURN, turn_id=turn_id), [])


def read_conditions(tx: Transaction, turn_id: str) -> list[Condition]:
    return _conditions(tx, turn_id, [])


def _todos(rows: Iterable[tuple[Any, ...]], problems: list[str]) -> list[TurnTodo]:
    todos = []
    for row in rows:
        read = parse_todo_row(row)
        if isinstance(read, str):
            problems.append(read)
        else:
            todos.append(read)
    return todos


def _conditions(tx: Transaction, turn_id: str, problems: list[str]) -> list[Condition]:
    found = []
    for row in condition_repository.rows_of_turn(tx, turn_id):
        read = parse_condition_row(row)
        if isinstance(read, str):
            problems.append(read)
        else:
            found.append(read)
    return found
