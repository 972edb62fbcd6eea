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
from punchlist.plan.model import Condition, PlanSnapshot, TurnTodo, read_condition, read_todo
from punchlist.plan.repository import BY_TURN, COLUMNS, LOOK, LOOK_AT_NONE
from punchlist.plan.transitions import no_turn
from punchlist.storage.store import Transaction

_WIDTH: Final = len(COLUMNS)


Rows = Sequence[tuple[Any, ...]]


def rows_of(tx: Transaction, scope: TurnScope) -> Rows:
    """The plan as it is stored: as long as these are the same, so is what `look` sees, but for what waits."""
    return tx.all(LOOK, conversation_id=scope.conversation_id, turn_id=scope.turn_id)


def has_conditions(rows: Rows) -> bool:
    return bool(rows and rows[0][-1])


def look(tx: Transaction, scope: TurnScope, rows: Rows | None = None) -> PlanSnapshot:
    """Called before each request to a model: one statement, and one more when the plan has conditions."""
    if rows is None:
        rows = rows_of(tx, scope)
    if not rows:
        return _look_at_none(tx, scope)
    if all(row[1] != scope.conversation_id for row in rows):
        raise no_turn(scope)
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
    row = tx.one(LOOK_AT_NONE, conversation_id=scope.conversation_id, turn_id=scope.turn_id)
    if row is None or row[0] != scope.conversation_id:
        raise no_turn(scope)
    return PlanSnapshot([], problems=[_not_all(scope)] if row[1] else [])


def _not_all(scope: TurnScope) -> str:
    return str(StoreDamaged.not_as_written(f"The plan of turn {scope.turn_id}"))


def standing(todos: Sequence[TurnTodo], found: Sequence[Condition], now: str) -> tuple[Any, Any, Any]:
    """What todos wait for, what was answered, and what is to be known of those that they waited for."""
    return conditions.waits(todos, found, now), conditions.answers(found), conditions.notes(todos, found)


def todos_of(tx: Transaction, turn_id: str) -> list[TurnTodo]:
    return _todos(tx.all(BY_TURN, turn_id=turn_id), [])


def conditions_of(tx: Transaction, turn_id: str) -> list[Condition]:
    return _conditions(tx, turn_id, [])


def _todos(rows: Iterable[tuple[Any, ...]], problems: list[str]) -> list[TurnTodo]:
    todos = []
    for row in rows:
        read = read_todo(row)
        if isinstance(read, str):
            problems.append(read)
        else:
            todos.append(read)
    return todos


def _conditions(tx: Transaction, turn_id: str, problems: list[str]) -> list[Condition]:
    found = []
    for row in condition_repository.rows_of_turn(tx, turn_id):
        read = read_condition(row)
        if isinstance(read, str):
            problems.append(read)
        else:
            found.append(read)
    return found
