"""`TurnTodoRepository`: the SQL of the plan, inside somebody's transaction (T6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from punchlist.claims.model import ListKind
from punchlist.errors import StoreDamaged
from punchlist.kernel.actors import Role
from punchlist.plan.lifecycle import OPEN, PlanAction, PlanStatus
from punchlist.plan.model import TurnTodo, todo_from_row
from punchlist.plan.validation import Shift
from punchlist.storage.statements import Statement, columns, insert, literals, update
from punchlist.storage.store import Transaction

COLUMNS: Final = (*TurnTodo._fields, "checksum")
_ROW: Final = f"SELECT {columns(COLUMNS)} FROM turn_todos"
_ORDER: Final = "ORDER BY priority, created_at, id"

INSERT: Final = insert("turn_todos", COLUMNS)
BY_ID: Final = Statement(f"{_ROW} WHERE id = :id")
BY_TURN: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id {_ORDER}")
OPEN_BY_TURN: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id AND status IN ({literals(sorted(OPEN))}) {_ORDER}")
BY_STATUS: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id AND status = :status {_ORDER}")
_NAMES: Final = "SELECT id, status, title FROM turn_todos WHERE turn_id = :turn_id"
NAMES: Final = Statement(_NAMES)
NAMES_IF_OPEN: Final = Statement(
    f"{_NAMES} AND EXISTS (SELECT 1 FROM turns "
    "WHERE id = :turn_id AND conversation_id = :conversation_id AND ended_at IS NULL)"
)
COUNTS: Final = Statement("SELECT status, count(*) FROM turn_todos WHERE turn_id = :turn_id GROUP BY status")
_ALL: Final = "all"
_CONDITIONS: Final = "EXISTS (SELECT 1 FROM todo_conditions WHERE turn_id = :turn_id)"
_CLAIMS: Final = f"EXISTS (SELECT 1 FROM claims WHERE list = '{ListKind.PLAN}' AND owner_id = :turn_id)"
# The count of all is told by another index.
_COUNT: Final = "SELECT count(*) FROM turn_todos WHERE conversation_id = :conversation_id AND turn_id = :turn_id"
VERIFIED_COUNTS: Final = Statement(
    "SELECT status, count(*), FALSE FROM turn_todos WHERE turn_id = :turn_id GROUP BY status "
    f"UNION ALL SELECT '{_ALL}', ({_COUNT}), {_CONDITIONS} OR {_CLAIMS}"
)
# All that the loop asks before each request, at once.
SNAPSHOT: Final = Statement(
    f"SELECT {columns(COLUMNS)}, ({_COUNT}), {_CONDITIONS} FROM turn_todos WHERE turn_id = :turn_id {_ORDER}"
)
EMPTY_SNAPSHOT: Final = Statement(f"SELECT conversation_id, ({_COUNT}) FROM turns WHERE id = :turn_id")
SHIFT: Final = Statement(
    "UPDATE turn_todos SET priority = priority + :by "
    "WHERE turn_id = :turn_id AND priority >= :start AND priority < :end"
)
_MUTABLE: Final = ("status", "outcome", "started_at", "completed_at", "checksum")
UPDATE: Final = update("turn_todos", _MUTABLE, where="id = :todo_id AND status = :from_status")
# Separate, since a statement that names the priority updates an index more.
UPDATE_TEXT: Final = update(
    "turn_todos", (*_MUTABLE, "title", "priority"), where="id = :todo_id AND status = :from_status"
)


_NONE: Final = dict.fromkeys(PlanStatus, 0)


class TurnTodoRepository:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def create(self, todo: TurnTodo) -> TurnTodo:
        self._tx.run(INSERT, **_values(todo))
        return todo

    def create_batch(self, todos: Sequence[TurnTodo]) -> list[TurnTodo]:
        self._tx.run_many(INSERT, [_values(todo) for todo in todos])
        return list(todos)

    def shift_priorities(self, turn_id: str, shifts: Iterable[Shift]) -> None:
        for shift in shifts:
            self._tx.run(SHIFT, turn_id=turn_id, start=shift.start, end=shift.end, by=shift.by)

    def find_by_turn(self, turn_id: str, status: Collection[PlanStatus] | None = None) -> list[TurnTodo]:
        """A turn's todos in their order: all, or those in one of the given states."""
        wanted = frozenset(PlanStatus if status is None else status)
        if wanted == OPEN:
            rows = self._tx.all(OPEN_BY_TURN, turn_id=turn_id)
        elif len(wanted) == 1:
            rows = self._tx.all(BY_STATUS, turn_id=turn_id, status=next(iter(wanted)).value)
        else:
            rows = [row for row in self._tx.all(BY_TURN, turn_id=turn_id) if row[7] in wanted]
        return [todo_from_row(row) for row in rows]

    def find_by_id(self, todo_id: str) -> TurnTodo | None:
        row = self._tx.one(BY_ID, id=todo_id)
        return todo_from_row(row) if row else None

    def update(self, todo: TurnTodo, **changes: Any) -> TurnTodo | None:
        """Write the changes if the todo is still in the state it was read in; None when it is not."""
        changed = todo._replace(**changes)
        edited = "title" in changes or "priority" in changes
        more: dict[str, Any] = {"title": changed.title, "priority": changed.priority} if edited else {}
        rows = self._tx.run(
            UPDATE_TEXT if edited else UPDATE,
            **more,
            todo_id=todo.id,
            from_status=todo.status.value,
            status=changed.status.value,
            outcome=changed.outcome,
            started_at=changed.started_at,
            completed_at=changed.completed_at,
            checksum=changed.checksum(),
        )
        return changed if rows else None

    def count_by_status(self, turn_id: str) -> dict[PlanStatus, int]:
        return counted(self._tx.all(COUNTS, turn_id=turn_id))

    def find_titles(self, turn_id: str) -> list[tuple[Any, ...]]:
        """Id, status and title of each todo, which are not checked: enough to count them and to tell them apart."""
        return self._tx.all(NAMES, turn_id=turn_id)

    def find_titles_if_turn_open(self, conversation_id: str, turn_id: str) -> list[tuple[Any, ...]]:
        """As `names`; none when the turn has ended or is another conversation's."""
        return self._tx.all(NAMES_IF_OPEN, conversation_id=conversation_id, turn_id=turn_id)

    def verified_counts(self, conversation_id: str, turn_id: str) -> tuple[dict[PlanStatus, int], bool]:
        """As `count_by_status`, but told by two indexes: damage to one of them would hide todos.

        And whether any todo has conditions or was ever claimed, which in most plans none has been.
        """
        # In no order that could be relied on: PostgreSQL may ask several workers.
        rows = self._tx.all(VERIFIED_COUNTS, conversation_id=conversation_id, turn_id=turn_id)
        counts, total, more = _NONE.copy(), 0, False
        for status, count, any_more in rows:
            if status == _ALL:
                total, more = count, any_more
            elif status in counts:
                counts[status] = count
            else:
                raise StoreDamaged.not_as_written("The state of a todo")
        if sum(counts.values()) != total:
            raise StoreDamaged.not_as_written(f"The plan of turn {turn_id}")
        return counts, bool(more)


def counted(rows: Iterable[tuple[Any, ...]]) -> dict[PlanStatus, int]:
    counts = _NONE.copy()
    for status, count in rows:
        if status not in counts:
            raise StoreDamaged.not_as_written("The state of a todo")
        counts[PlanStatus(status)] = count
    return counts


def tallied(statuses: Iterable[str]) -> dict[PlanStatus, int]:
    """How many there are in each state."""
    counts = _NONE.copy()
    try:
        for status in statuses:
            counts[status] += 1  # type: ignore[index]  # a state is equal to its text
    except KeyError:
        raise StoreDamaged.not_as_written("The state of a todo") from None
    return counts


def _values(todo: TurnTodo) -> dict[str, Any]:
    # A plain string: the SQLite driver is slow with subclasses.
    return {**todo._asdict(), "status": todo.status.value, "checksum": todo.checksum()}


_NOT_PLANNED_BY_PERSON: Final = Statement(
    f"SELECT 1 FROM events WHERE stream = :stream AND action = '{PlanAction.CREATE}' "
    f"AND (actor NOT LIKE '{Role.PERSON}:%' OR at <= :since) LIMIT 1"
)


def planned_by_person(tx: Transaction, stream: str, since: str) -> bool:
    """Whether a person created every item of a plan, after `since`."""
    return tx.one(_NOT_PLANNED_BY_PERSON, stream=stream, since=since) is None
