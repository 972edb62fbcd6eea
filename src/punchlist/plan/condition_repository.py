"""SQL of `todo_conditions`. The caller owns the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.plan.lifecycle import RESOLVABLE, ConditionStatus
from punchlist.plan.model import COLUMNS, BlockedTodo, Condition, parse_condition_row, todo_from_row
from punchlist.storage.statements import SelectAll, SelectOne, Statement, columns, insert, literals, select, update
from punchlist.storage.store import Transaction

_WIDTH: Final = len(Condition._fields)
_ROW: Final = select("todo_conditions", Condition._fields)
_ORDER: Final = "todo_conditions.created_at, todo_conditions.id"


def _parse(row: tuple[Any, ...]) -> Condition:
    condition = parse_condition_row(row)
    if isinstance(condition, str):
        raise StoreDamaged.not_as_written(f"Condition {row[0]!r} of todo {row[3]!r}")
    return condition


INSERT: Final = insert("todo_conditions", Condition._fields)
find_by_turn: Final = SelectAll(_parse, f"{_ROW} WHERE turn_id = :turn_id ORDER BY {_ORDER}")
"""All conditions of a turn; raises if one is damaged."""
find_by_id: Final = SelectOne(_parse, f"{_ROW} WHERE id = :id")
OPEN_WITH_TODO: Final = Statement(
    f"SELECT {columns(Condition._fields, of='todo_conditions')}, {columns(COLUMNS, of='turn_todos')} "
    "FROM todo_conditions JOIN turn_todos ON turn_todos.id = todo_conditions.todo_id "
    "JOIN turns ON turns.id = todo_conditions.turn_id "
    f"WHERE todo_conditions.conversation_id = :conversation_id AND todo_conditions.status = '{ConditionStatus.OPEN}' "
    f"AND turns.ended_at IS NULL ORDER BY turns.started_at, turns.id, turn_todos.priority, {_ORDER}"
)
find_resolvable: Final = SelectAll(
    _parse,
    f"{_ROW} WHERE conversation_id = :conversation_id AND kind IN ({literals(sorted(RESOLVABLE))}) ORDER BY {_ORDER}",
)
"""Conditions on persons and events in all turns, open or resolved."""
RESOLVE: Final = update(
    "todo_conditions",
    ("status", "answer", "resolved_by", "resolved_at"),
    where=f"id = :condition_id AND status = '{ConditionStatus.OPEN}'",
)


def insert_conditions(tx: Transaction, conditions: Sequence[Condition]) -> None:
    # Plain strings: the SQLite driver is slow with subclasses of str.
    rows = [{**each._asdict(), "kind": each.kind.value, "status": each.status.value} for each in conditions]
    tx.run_many(INSERT, rows)


def read_conditions(tx: Transaction, turn_id: str, problems: list[str] | None = None) -> list[Condition]:
    """All readable conditions of a turn; what is wrong with the others is added to `problems`."""
    conditions = []
    for row in tx.all(find_by_turn, turn_id=turn_id):
        condition = parse_condition_row(row)
        if not isinstance(condition, str):
            conditions.append(condition)
        elif problems is not None:
            problems.append(condition)
    return conditions


def find_open(tx: Transaction, conversation_id: str) -> list[BlockedTodo]:
    """Open conditions in open turns of a conversation with the todos they block, in plan order."""
    rows = tx.all(OPEN_WITH_TODO, conversation_id=conversation_id)
    return [BlockedTodo(_parse(row[:_WIDTH]), todo_from_row(row[_WIDTH:])) for row in rows]


def update_resolved(tx: Transaction, condition: Condition, changes: dict[str, Any]) -> Condition | None:
    """Resolve a condition that is still open; None if it is not."""
    resolved = condition._replace(**changes)
    rows = tx.run(
        RESOLVE,
        condition_id=condition.id,
        status=resolved.status.value,
        answer=resolved.answer,
        resolved_by=resolved.resolved_by,
        resolved_at=resolved.resolved_at,
    )
    return resolved if rows else None
