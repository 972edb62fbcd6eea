"""The SQL of conditions, inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.plan.lifecycle import RESOLVABLE, ConditionStatus
from punchlist.plan.model import BlockedTodo, Condition, parse_condition_row, todo_from_row
from punchlist.plan.repository import COLUMNS
from punchlist.storage.statements import Statement, columns, insert, literals, update
from punchlist.storage.store import Transaction

_WIDTH: Final = len(Condition._fields)
_ROW: Final = f"SELECT {columns(Condition._fields)} FROM todo_conditions"
_ORDER: Final = "todo_conditions.created_at, todo_conditions.id"

INSERT: Final = insert("todo_conditions", Condition._fields)
OF_TURN: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id ORDER BY {_ORDER}")
BY_ID: Final = Statement(f"{_ROW} WHERE id = :id")
OPEN_HELD: Final = Statement(
    f"SELECT {columns(Condition._fields, of='todo_conditions')}, {columns(COLUMNS, of='turn_todos')} "
    "FROM todo_conditions JOIN turn_todos ON turn_todos.id = todo_conditions.todo_id "
    "JOIN turns ON turns.id = todo_conditions.turn_id "
    f"WHERE todo_conditions.conversation_id = :conversation_id AND todo_conditions.status = '{ConditionStatus.OPEN}' "
    f"AND turns.ended_at IS NULL ORDER BY turns.started_at, turns.id, turn_todos.priority, {_ORDER}"
)
ANSWERABLE: Final = Statement(
    f"{_ROW} WHERE conversation_id = :conversation_id AND kind IN ({literals(sorted(RESOLVABLE))}) ORDER BY {_ORDER}"
)
RESOLVE: Final = update(
    "todo_conditions",
    ("status", "answer", "resolved_by", "resolved_at"),
    where=f"id = :condition_id AND status = '{ConditionStatus.OPEN}'",
)


def add(tx: Transaction, conditions: Sequence[Condition]) -> None:
    # Plain strings: the SQLite driver is slow with subclasses.
    tx.run_many(INSERT, [{**one._asdict(), "kind": one.kind.value, "status": one.status.value} for one in conditions])


def rows_of_turn(tx: Transaction, turn_id: str) -> list[tuple[Any, ...]]:
    return tx.all(OF_TURN, turn_id=turn_id)


def of_turn(tx: Transaction, turn_id: str) -> list[Condition]:
    return [_sound(row) for row in rows_of_turn(tx, turn_id)]


def find(tx: Transaction, condition_id: str) -> Condition | None:
    row = tx.one(BY_ID, id=condition_id)
    return _sound(row) if row else None


def open_in(tx: Transaction, conversation_id: str) -> list[BlockedTodo]:
    """What is open in the turns of a conversation that have not ended, with the todos that it holds up.

    In the order of the plan.
    """
    rows = tx.all(OPEN_HELD, conversation_id=conversation_id)
    return [BlockedTodo(_sound(row[:_WIDTH]), todo_from_row(row[_WIDTH:])) for row in rows]


def answerable(tx: Transaction, conversation_id: str) -> list[Condition]:
    """Whatever a person can answer or could have, of all turns."""
    return [_sound(row) for row in tx.all(ANSWERABLE, conversation_id=conversation_id)]


def resolve(tx: Transaction, condition: Condition) -> bool:
    """Write down how it was resolved, unless somebody else has done so."""
    return bool(
        tx.run(
            RESOLVE,
            condition_id=condition.id,
            status=condition.status.value,
            answer=condition.answer,
            resolved_by=condition.resolved_by,
            resolved_at=condition.resolved_at,
        )
    )


def _sound(row: tuple[Any, ...]) -> Condition:
    read = parse_condition_row(row)
    if isinstance(read, str):
        raise StoreDamaged.not_as_written(f"Condition {row[0]!r} of todo {row[3]!r}")
    return read
