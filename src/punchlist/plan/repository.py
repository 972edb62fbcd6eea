"""SQL of `turn_todos`. The caller owns the transaction.

`TurnTodoRepository` is public (T6). The functions below it lock the turn and read what the services need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from punchlist.claims.model import ListKind
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import StoredTurn, TurnScope
from punchlist.errors import IllegalTransition, NotFound, StoreDamaged
from punchlist.kernel.events import Role
from punchlist.plan import condition_repository, conditions
from punchlist.plan.lifecycle import OPEN, PlanAction, PlanStatus
from punchlist.plan.model import (
    COLUMNS,
    PRIORITY_UNIT,
    Condition,
    PlanSnapshot,
    TurnTodo,
    numbered_title,
    parse_todo_row,
    plan_stream,
    todo_from_row,
)
from punchlist.plan.references import resolve_id
from punchlist.plan.validation import Shift
from punchlist.storage.statements import Statement, columns, insert, literals, select, update
from punchlist.storage.store import Transaction

Rows = Sequence[tuple[Any, ...]]

WIDTH: Final = len(COLUMNS)
_PRIORITY: Final = COLUMNS.index("priority")
_ROW: Final = select("turn_todos", COLUMNS)
_ORDER: Final = "ORDER BY priority, created_at, id"

INSERT: Final = insert("turn_todos", COLUMNS)
BY_ID: Final = Statement(f"{_ROW} WHERE id = :id")
BY_ID_WITH_CONDITIONS: Final = Statement(
    f"SELECT {columns(COLUMNS)}, EXISTS (SELECT 1 FROM todo_conditions "
    "WHERE todo_conditions.turn_id = turn_todos.turn_id AND todo_conditions.todo_id = turn_todos.id) "
    "FROM turn_todos WHERE id = :id"
)
BY_TURN: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id {_ORDER}")
OPEN_BY_TURN: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id AND status IN ({literals(sorted(OPEN))}) {_ORDER}")
BY_STATUS: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id AND status = :status {_ORDER}")
_PAGE: Final = f"AND priority > :after {_ORDER} LIMIT :limit"
PAGE_BY_TURN: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id {_PAGE}")
_AFTER: Final = "turn_id = :turn_id AND priority > :after"
# The partial index over pending todos is sorted by priority; at most one todo is in progress.
OPEN_PAGE: Final = Statement(
    f"SELECT {columns(COLUMNS)} FROM (SELECT * FROM ({_ROW} WHERE {_AFTER} AND status = '{PlanStatus.PENDING}' "
    f"ORDER BY priority LIMIT :limit) AS pending UNION ALL {_ROW} WHERE {_AFTER} "
    f"AND status = '{PlanStatus.IN_PROGRESS}') AS open_todos {_ORDER} LIMIT :limit"
)
PAGE_BY_STATUS: Final = Statement(f"{_ROW} WHERE turn_id = :turn_id AND status = :status {_PAGE}")
COUNTS_UP_TO: Final = Statement(
    "SELECT status, count(*) FROM turn_todos WHERE turn_id = :turn_id AND priority <= :after GROUP BY status"
)
_TITLES: Final = "SELECT id, status, title FROM turn_todos WHERE turn_id = :turn_id"
TITLES: Final = Statement(_TITLES)
ORDERED_TITLES: Final = Statement(f"{_TITLES} {_ORDER}")
TITLES_IF_TURN_OPEN: Final = Statement(
    f"{_TITLES} AND EXISTS (SELECT 1 FROM turns "
    "WHERE id = :turn_id AND conversation_id = :conversation_id AND ended_at IS NULL)"
)
# The events of the plan from a version on; none if the turn is not open.
EVENTS_IF_TURN_OPEN: Final = Statement(
    "SELECT version, subject, action, to_status, data FROM events "
    "WHERE stream = :stream AND version >= :since AND EXISTS (SELECT 1 FROM turns "
    "WHERE id = :turn_id AND conversation_id = :conversation_id AND ended_at IS NULL) ORDER BY version"
)
COUNTS: Final = Statement("SELECT status, count(*) FROM turn_todos WHERE turn_id = :turn_id GROUP BY status")
_ALL: Final = "all"
_CONDITIONS: Final = "EXISTS (SELECT 1 FROM todo_conditions WHERE turn_id = :turn_id)"
_CLAIMS: Final = f"EXISTS (SELECT 1 FROM claims WHERE list = '{ListKind.PLAN}' AND owner_id = :turn_id)"
# Counts through another index than the statement around it.
_COUNT: Final = "SELECT count(*) FROM turn_todos WHERE conversation_id = :conversation_id AND turn_id = :turn_id"
VERIFIED_COUNTS: Final = Statement(
    "SELECT status, count(*), FALSE FROM turn_todos WHERE turn_id = :turn_id GROUP BY status "
    f"UNION ALL SELECT '{_ALL}', ({_COUNT}), {_CONDITIONS} OR {_CLAIMS}"
)
# Everything that the agent loop reads before each model request, in one statement.
SNAPSHOT: Final = Statement(
    f"SELECT {columns(COLUMNS)}, ({_COUNT}), {_CONDITIONS} FROM turn_todos WHERE turn_id = :turn_id {_ORDER}"
)
EMPTY_SNAPSHOT: Final = Statement(f"SELECT conversation_id, ({_COUNT}) FROM turns WHERE id = :turn_id")
SHIFT: Final = Statement(
    f"UPDATE turn_todos SET priority = priority + :by, checksum = checksum + :by * {PRIORITY_UNIT} "
    "WHERE turn_id = :turn_id AND priority >= :start AND priority < :end"
)
_MUTABLE: Final = ("status", "outcome", "started_at", "completed_at", "verification", "checksum")
_UNCHANGED: Final = "id = :todo_id AND status = :from_status"
UPDATE: Final = update("turn_todos", _MUTABLE, where=_UNCHANGED)
# Separate, because an UPDATE that names the priority updates one more index.
UPDATE_TEXT: Final = update("turn_todos", (*_MUTABLE, "title", "priority"), where=_UNCHANGED)
COUNT_EVENTS: Final = Statement(
    "SELECT count(*) FROM events WHERE stream = :stream AND subject = :subject AND action = :action"
)
NOT_PLANNED_BY_PERSON: Final = Statement(
    f"SELECT 1 FROM events WHERE stream = :stream AND action = '{PlanAction.CREATE}' "
    f"AND (actor NOT LIKE '{Role.PERSON}:%' OR at <= :since) LIMIT 1"
)
CREATED_BY_PERSON: Final = Statement(
    f"SELECT subject FROM events WHERE stream = :stream AND action = '{PlanAction.CREATE}' "
    f"AND actor LIKE '{Role.PERSON}:%'"
)
ANY_CONDITIONS: Final = Statement("SELECT id FROM todo_conditions WHERE turn_id = :turn_id LIMIT 1")
# A page at a time, with claims: most claimed todos are at the beginning. Excluding them in the same statement makes
# PostgreSQL, while it has no statistics, scan the claims for each row. The status is a literal so that the partial
# index over pending todos applies.
PENDING_PAGE: Final = Statement(
    f"SELECT {columns(COLUMNS, of='page')}, claims.holder, claims.lease_until FROM ("
    f"SELECT {columns(COLUMNS)} FROM turn_todos "
    f"WHERE turn_id = :turn_id AND status = '{PlanStatus.PENDING}' AND priority > :after ORDER BY priority LIMIT 50"
    ") AS page LEFT JOIN claims ON claims.todo_id = page.id ORDER BY page.priority"
)

_ZERO_COUNTS: Final = dict.fromkeys(PlanStatus, 0)


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
        """The turn's todos in order: all, or those in one of the given states."""
        states = frozenset(PlanStatus if status is None else status)
        if states == OPEN:
            rows = self._tx.all(OPEN_BY_TURN, turn_id=turn_id)
        elif len(states) == 1:
            rows = self._tx.all(BY_STATUS, turn_id=turn_id, status=next(iter(states)).value)
        else:
            rows = [row for row in self._tx.all(BY_TURN, turn_id=turn_id) if row[7] in states]
        return [todo_from_row(row) for row in rows]

    def find_page(self, turn_id: str, states: frozenset[PlanStatus], after: int, limit: int) -> list[TurnTodo]:
        """Up to `limit` of the turn's todos behind the position `after`: the open ones, those in one state, or all."""
        if states == OPEN:
            rows = self._tx.all(OPEN_PAGE, turn_id=turn_id, after=after, limit=limit)
        elif len(states) == 1:
            status = next(iter(states)).value
            rows = self._tx.all(PAGE_BY_STATUS, turn_id=turn_id, status=status, after=after, limit=limit)
        elif states == frozenset(PlanStatus):
            rows = self._tx.all(PAGE_BY_TURN, turn_id=turn_id, after=after, limit=limit)
        else:
            raise ValueError(f"a page of {sorted(states)} is not supported")
        return [todo_from_row(row) for row in rows]

    def count_up_to(self, turn_id: str, states: Collection[PlanStatus], position: int) -> int:
        """How many of the turn's todos in these states are at or before a position."""
        rows = self._tx.all(COUNTS_UP_TO, turn_id=turn_id, after=position)
        return sum(count for status, count in rows if status in states)

    def find_by_id(self, todo_id: str) -> TurnTodo | None:
        row = self._tx.one(BY_ID, id=todo_id)
        return todo_from_row(row) if row else None

    def update(self, todo: TurnTodo, **changes: Any) -> TurnTodo | None:
        """Write the changes if the todo still has the status it was read with; None otherwise."""
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
            verification=changed.verification,
            checksum=changed.checksum(),
        )
        return changed if rows else None

    def count_by_status(self, turn_id: str) -> dict[PlanStatus, int]:
        counts = _ZERO_COUNTS.copy()
        for status, count in self._tx.all(COUNTS, turn_id=turn_id):
            if status not in counts:
                raise StoreDamaged.not_as_written("The state of a todo")
            counts[PlanStatus(status)] = count
        return counts

    def verified_counts(self, conversation_id: str, turn_id: str) -> tuple[dict[PlanStatus, int], bool, bool]:
        """The counts by status, whether a second index has the same total, and whether conditions or claims exist.

        A damaged index would otherwise hide todos.
        """
        # PostgreSQL may return the rows in any order.
        rows = self._tx.all(VERIFIED_COUNTS, conversation_id=conversation_id, turn_id=turn_id)
        counts, total, has_more = _ZERO_COUNTS.copy(), 0, False
        for status, count, more in rows:
            if status == _ALL:
                total, has_more = count, more
            elif status in counts:
                counts[status] = count
            else:
                raise StoreDamaged.not_as_written("The state of a todo")
        return counts, sum(counts.values()) == total, bool(has_more)


def _values(todo: TurnTodo) -> dict[str, Any]:
    # A plain string: the SQLite driver is slow with subclasses of str.
    return {**todo._asdict(), "status": todo.status.value, "checksum": todo.checksum()}


def count_statuses(statuses: Iterable[str]) -> dict[PlanStatus, int]:
    counts = _ZERO_COUNTS.copy()
    try:
        for status in statuses:
            counts[status] += 1  # type: ignore[index]  # a StrEnum member equals its text
    except KeyError:
        raise StoreDamaged.not_as_written("The state of a todo") from None
    return counts


def lock_turn(tx: Transaction, scope: TurnScope) -> StoredTurn:
    """Lock the turn, which serializes writers of its plan; raises unless it is open.

    A person's change adds a message, so that it locks the conversation first, in the order of all writers.
    """
    if scope.actor.role is Role.PERSON and not tx.exclusive:
        conversation_repository.lock_conversation(tx, scope.conversation_id)
    return check_open(conversation_repository.lock_turn(tx, scope.turn_id), scope)


def check_open(turn: StoredTurn | None, scope: TurnScope) -> StoredTurn:
    if turn is None or turn.conversation_id != scope.conversation_id:
        raise turn_not_found(scope)
    if not turn.open:
        raise IllegalTransition(f"Turn {scope.turn_id} has ended ({turn.end_reason}); its plan cannot change.")
    return turn


def turn_not_found(scope: TurnScope) -> NotFound:
    return NotFound(f"Session {scope.conversation_id!r} has no turn {scope.turn_id!r}.")


def lock_and_read_titles(tx: Transaction, scope: TurnScope) -> Rows:
    """Lock the turn; id, status and title of each todo, without verification.

    On SQLite a write transaction is the only writer from its start, so one statement both checks the
    turn and reads the titles. On PostgreSQL it would return the todos from before the wait for the lock.
    """
    if tx.exclusive:
        rows = tx.all(TITLES_IF_TURN_OPEN, conversation_id=scope.conversation_id, turn_id=scope.turn_id)
        if rows:
            return rows
    lock_turn(tx, scope)
    return tx.all(TITLES, turn_id=scope.turn_id)


def lock_and_read_events(tx: Transaction, scope: TurnScope, since: int) -> Rows:
    """Lock the turn; version, subject, action, new status and data of the plan's events from `since` on."""
    if not tx.exclusive:
        lock_turn(tx, scope)
    return tx.all(
        EVENTS_IF_TURN_OPEN,
        stream=plan_stream(scope.turn_id),
        since=since,
        turn_id=scope.turn_id,
        conversation_id=scope.conversation_id,
    )


def find_todo(tx: Transaction, scope: TurnScope, reference: str) -> TurnTodo:
    """The todo of the turn with this id, number or part of an id (`references.resolve_id`)."""
    return find_with_conditions(tx, scope, reference)[0]


def find_with_conditions(tx: Transaction, scope: TurnScope, reference: str) -> tuple[TurnTodo, bool]:
    """As `find_todo`, and whether the todo has conditions."""
    row = tx.one(BY_ID_WITH_CONDITIONS, id=reference)
    if row is None:
        todo_id = resolve_id(tx.all(ORDERED_TITLES, turn_id=scope.turn_id), reference)
        row = tx.one(BY_ID_WITH_CONDITIONS, id=todo_id)
        assert row is not None
    todo = todo_from_row(row[:WIDTH])
    if todo.turn_id != scope.turn_id:
        raise NotFound(f"Todo {todo.id!r} belongs to another turn. Call list_todo for the ids of this turn's todos.")
    return todo, bool(row[WIDTH])


def count_retries(tx: Transaction, todo: TurnTodo) -> int:
    """How often a failed todo was returned to pending, according to the event log."""
    row = tx.one(COUNT_EVENTS, stream=plan_stream(todo.turn_id), subject=todo.id, action=PlanAction.RETRY.value)
    return int(row[0]) if row else 0


def planned_by_person(tx: Transaction, stream: str, since: str) -> bool:
    """Whether a person created every todo of a plan, after `since`."""
    return tx.one(NOT_PLANNED_BY_PERSON, stream=stream, since=since) is None


def created_by_person(tx: Transaction, turn_id: str) -> frozenset[str]:
    """Ids of the todos that a person added."""
    return frozenset(str(row[0]) for row in tx.all(CREATED_BY_PERSON, stream=plan_stream(turn_id)))


def has_conditions(tx: Transaction, turn_id: str) -> bool:
    return tx.one(ANY_CONDITIONS, turn_id=turn_id) is not None


def first_unclaimed(tx: Transaction, turn_id: str) -> TurnTodo | None:
    """The first pending todo without a live claim, in a plan without conditions."""
    after, now = -1, tx.now()
    while rows := tx.all(PENDING_PAGE, turn_id=turn_id, after=after):
        for *todo, holder, lease_until in rows:
            if holder is None or lease_until <= now:
                return todo_from_row(tuple(todo))
        after = rows[-1][_PRIORITY]
    return None


def read_todos(tx: Transaction, turn_id: str) -> list[TurnTodo]:
    """All readable todos of a turn, in order."""
    return parse_todo_rows(tx.all(BY_TURN, turn_id=turn_id), [])


def read_titles_and_todos(tx: Transaction, turn_id: str) -> tuple[Rows, list[TurnTodo]]:
    """Id, status and title of every row, as `lock_and_read_titles`, and the readable todos."""
    rows = tx.all(BY_TURN, turn_id=turn_id)
    return [(row[0], row[7], row[3]) for row in rows], parse_todo_rows(rows, [])


def parse_todo_rows(rows: Iterable[tuple[Any, ...]], problems: list[str]) -> list[TurnTodo]:
    todos = []
    for row in rows:
        todo = parse_todo_row(row)
        if isinstance(todo, str):
            problems.append(todo)
        else:
            todos.append(todo)
    return todos


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


def condition_state(
    todos: Sequence[TurnTodo],
    found: Sequence[Condition],
    now: str,
    name: conditions.TodoName = numbered_title,
) -> tuple[Any, Any, Any]:
    """Waiting reasons, answers and cancellation notes, each by todo id."""
    return (
        conditions.waiting_reasons(todos, found, now, name),
        conditions.collect_answers(found),
        conditions.cancellation_notes(todos, found, name),
    )
