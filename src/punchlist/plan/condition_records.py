"""The SQL of conditions, inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, insert, literal_column, select, update

from punchlist.errors import StoreDamaged
from punchlist.plan.lifecycle import RESOLVABLE, ConditionStatus
from punchlist.plan.model import Condition, Held, from_row, read_condition
from punchlist.storage.schema import todo_conditions, turn_todos, turns
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

_WIDTH: Final = len(todo_conditions.c)
_ROW = select(*todo_conditions.c)
_HELD = select(*todo_conditions.c, *turn_todos.c).join(turn_todos, turn_todos.c.id == todo_conditions.c.todo_id)
_ORDER = (todo_conditions.c.created_at, todo_conditions.c.id)
_OF_CONVERSATION = todo_conditions.c.conversation_id == bindparam("conversation_id")
# Written out, so that the index over open conditions is seen to serve.
_IS_OPEN = todo_conditions.c.status == literal_column(f"'{ConditionStatus.OPEN}'")
_CAN_BE_ANSWERED = todo_conditions.c.kind.in_([literal_column(f"'{kind}'") for kind in sorted(RESOLVABLE)])

INSERT: Final = Statement(insert(todo_conditions).values({c.name: bindparam(c.name) for c in todo_conditions.c}))
OF_TURN: Final = Statement(_ROW.where(todo_conditions.c.turn_id == bindparam("turn_id")).order_by(*_ORDER))
BY_ID: Final = Statement(_ROW.where(todo_conditions.c.id == bindparam("id")))
OPEN_HELD: Final = Statement(
    _HELD.join(turns, turns.c.id == todo_conditions.c.turn_id)
    .where(_OF_CONVERSATION, _IS_OPEN, turns.c.ended_at.is_(None))
    .order_by(turns.c.started_at, turns.c.id, turn_todos.c.priority, *_ORDER)
)
ANSWERABLE: Final = Statement(_ROW.where(_OF_CONVERSATION, _CAN_BE_ANSWERED).order_by(*_ORDER))
RESOLVE: Final = Statement(
    update(todo_conditions)
    .where(todo_conditions.c.id == bindparam("condition_id"), _IS_OPEN)
    .values({name: bindparam(name) for name in ("status", "answer", "resolved_by", "resolved_at")})
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


def open_in(tx: Transaction, conversation_id: str) -> list[Held]:
    """What is open in the turns of a conversation that have not ended, with the todos that it holds up.

    In the order of the plan.
    """
    rows = tx.all(OPEN_HELD, conversation_id=conversation_id)
    return [Held(_sound(row[:_WIDTH]), from_row(row[_WIDTH:])) for row in rows]


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
    read = read_condition(row)
    if isinstance(read, str):
        raise StoreDamaged.not_as_written(f"Condition {row[0]!r} of todo {row[3]!r}")
    return read
