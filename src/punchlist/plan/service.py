"""Transactions of the plan: create, list, start and end the todos of one turn.

Waiting is in `condition_service.py`, claiming in `claim_service.py`, checks and acceptance in
`verification_service.py`. The turn comes from the caller's scope (T7). Writers of one plan are serialized
by a lock on the turn's row; the UPDATE of a todo checks its status again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from punchlist.claims import repository as claim_repository
from punchlist.claims.model import Claim, ListKind
from punchlist.claims.service import check_use, end_claim
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition, InvalidInput, StoreDamaged
from punchlist.kernel.events import Change, Role
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt
from punchlist.plan import condition_repository, repository
from punchlist.plan import validation as plan_validation
from punchlist.plan.claim_service import (
    PlanClaims,
    check_not_waiting,
    waiting_reasons_for,
    while_waiting,
    with_claimed_in_progress,
)
from punchlist.plan.condition_service import ConditionService
from punchlist.plan.conditions import explain_conflicts
from punchlist.plan.lifecycle import OPEN, PLAN, ConditionKind, PlanAction, PlanStatus
from punchlist.plan.model import (
    Condition,
    CreatedTodos,
    EndedTodo,
    FailedTodo,
    NewCondition,
    NewTodo,
    Plan,
    PlanSnapshot,
    TurnTodo,
    title_for,
    todo_change,
)
from punchlist.plan.person_changes import add_creation_message
from punchlist.plan.plan_index import MIN_INDEXED, PlanIndex, keep
from punchlist.plan.references import TodoReferences
from punchlist.plan.repository import (
    TurnTodoRepository,
    condition_state,
    find_todo,
    find_with_conditions,
    lock_turn,
    take_snapshot,
)
from punchlist.plan.transitions import advance_todo, new_conditions
from punchlist.plan.verification_service import VerificationService
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.verification.model import Verification

_NO_DATA: Final[Mapping[str, Any]] = {}


class Plans(ConditionService, PlanClaims, VerificationService):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._indexes: dict[str, PlanIndex] = {}

    def create(self, scope: TurnScope, items: Sequence[NewTodo], *, reason: str = "create_todo") -> CreatedTodos:
        """Add items to the turn's plan, all or none (T2)."""
        PLAN.check_role(PlanAction.CREATE, scope.actor.role)
        with self._store.write() as tx:
            created, index = _create_todos(tx, scope, items, reason, self._indexes.pop(scope.turn_id, None))
        if index is not None:
            keep(self._indexes, scope.turn_id, index)
        return created

    def list(
        self,
        scope: TurnScope,
        status: Collection[PlanStatus] | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Plan:
        """The turn's todos, by default the open ones, and the counts of all of them (T3).

        `limit` and `cursor` select a page; the cursor is that of the page before.
        """
        states = OPEN if status is None else frozenset(status)
        with self._store.read() as tx:
            todo_repository = TurnTodoRepository(tx)
            counts, consistent, has_more = todo_repository.verified_counts(scope.conversation_id, scope.turn_id)
            after = -1 if cursor is None else _position_of(tx, scope, cursor)
            expected = sum(counts[state] for state in states)
            if has_more:
                # Waiting reasons depend on every todo of the plan.
                todos = repository.read_todos(tx, scope.turn_id)
                items = [todo for todo in todos if todo.status in states]
            elif limit is None:
                todos = items = todo_repository.find_by_turn(scope.turn_id, states)
            else:
                todos = items = todo_repository.find_page(scope.turn_id, states, after, limit + 1)
                if cursor is not None:
                    expected -= todo_repository.count_up_to(scope.turn_id, states, after)
                expected = min(expected, limit + 1)
            # A todo names its conversation; only an empty list needs the turn itself.
            owner = todos[0] if todos else conversation_repository.find_turn(tx, scope.turn_id)
            if owner is None or owner.conversation_id != scope.conversation_id:
                raise repository.turn_not_found(scope)
            if not consistent or len(items) != expected or not _positions_valid(items, sum(counts.values())):
                raise StoreDamaged.not_as_written(f"The plan of turn {scope.turn_id}")
            items, following = _page([todo for todo in items if todo.priority > after], limit)
            if not has_more:
                return Plan(items, counts, next_cursor=following)
            claims = claim_repository.find_live(tx, ListKind.PLAN, scope.turn_id)
            conditions = condition_repository.read_conditions(tx, scope.turn_id)
            if not conditions:
                return Plan(items, counts, claims=claims, next_cursor=following)
            name = title_for(scope.actor.role)
            state = condition_state(with_claimed_in_progress(todos, claims), conditions, tx.now(), name)
            return Plan(items, counts, *state, claims, following)

    def snapshot(self, scope: TurnScope) -> PlanSnapshot:
        """The whole plan for the agent loop; damaged rows are reported instead of raising (C11)."""
        with self._store.read() as tx:
            return take_snapshot(tx, scope)

    def find(self, scope: TurnScope, todo_id: str) -> TurnTodo:
        """One todo of the turn."""
        with self._store.read() as tx:
            return find_todo(tx, scope, todo_id)

    def added_by_person(self, scope: TurnScope) -> frozenset[str]:
        """Ids of the todos that a person added to the plan."""
        with self._store.read() as tx:
            return repository.created_by_person(tx, scope.turn_id)

    def find_completable(self, scope: TurnScope, todo_id: str) -> TurnTodo:
        """As `find`; raises if the todo waits, so that it cannot be completed."""
        with self._store.read() as tx:
            todo, has_conditions = find_with_conditions(tx, scope, todo_id)
            if has_conditions:
                check_not_waiting(tx, scope, todo)
            return todo

    def start(
        self, scope: TurnScope, todo_id: str, *, reason: str = "start_todo", fence: int | None = None
    ) -> TurnTodo:
        """Mark a todo as in progress; one at a time per turn (T5). A claimed todo needs its fence (X3)."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            return start_todo(tx, scope, find_todo(tx, scope, todo_id), reason, fence=fence)

    def end(
        self,
        scope: TurnScope,
        todo_id: str,
        outcome: str,
        action: PlanAction = PlanAction.COMPLETE,
        *,
        fence: int | None = None,
        verification: Verification | None = None,
    ) -> EndedTodo:
        """Complete or cancel a todo with its outcome (T4). A claimed todo needs its fence (X3).

        `verification` replaces that of the todo; without it, the todo keeps its own.
        """
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo, has_conditions = find_with_conditions(tx, scope, todo_id)
            if has_conditions and action is PlanAction.COMPLETE:
                PLAN.advance(todo.status, action, scope.actor.role)
                check_not_waiting(tx, scope, todo)
            ended = end_todo(tx, scope, todo, action, outcome, outcome=outcome, fence=fence, verification=verification)
            return EndedTodo(ended, _remaining(tx, scope))

    def edit(self, scope: TurnScope, todo_id: str, title: str, *, reason: str) -> TurnTodo:
        """Change the title of an open todo."""
        (item,) = plan_validation.parse_items([{"title": title}])
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(tx, scope, todo_id)
            return advance_todo(tx, scope, todo, PlanAction.EDIT, reason, title=item.title)

    def move(self, scope: TurnScope, todo_id: str, position: int, *, reason: str) -> TurnTodo:
        """Move an open todo to a 1-indexed position; a position past the end means the end."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(tx, scope, todo_id)
            return move_todo(tx, scope, todo, position, reason)

    def fail(self, scope: TurnScope, todo_id: str, error: str, *, fence: int | None = None) -> FailedTodo:
        """Record that the work on a todo failed: it is retried once, then skipped with the error (C8)."""
        error = plan_validation.storable_text(error, "no details were given")
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo, has_conditions = find_with_conditions(tx, scope, todo_id)
            if has_conditions:
                PLAN.advance(todo.status, PlanAction.RETRY, scope.actor.role)
                check_not_waiting(tx, scope, todo, "marked as failed")
            retry = not repository.count_retries(tx, todo)
            if retry:
                # The claim ends, so the next attempt needs a new one.
                failed = advance_todo(
                    *(tx, scope, todo, PlanAction.RETRY, error),
                    guard=_claim_guard(tx, scope, fence),
                    started_at=None,
                    verification=todo.verified().failed(error).encode(),
                )
            else:
                skipped = f"Skipped after two attempts: {error}"
                failed = end_todo(tx, scope, todo, PlanAction.CANCEL, error, outcome=skipped, fence=fence)
            return FailedTodo(failed, retry, _remaining(tx, scope))

    def report(self, scope: TurnScope, todo_id: str, report: str) -> TurnTodo:
        """Record the report of a todo's worker: the todo is pending with it until it is completed (T12)."""
        report = plan_validation.storable_text(report, "The report is empty.")
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(tx, scope, todo_id)
            return advance_todo(tx, scope, todo, PlanAction.REPORT, "delegate", outcome=report)


def create_todos(tx: Transaction, scope: TurnScope, items: Sequence[NewTodo], reason: str) -> CreatedTodos:
    """`Plans.create` inside the caller's transaction."""
    return _create_todos(tx, scope, items, reason, None)[0]


def _create_todos(
    tx: Transaction, scope: TurnScope, items: Sequence[NewTodo], reason: str, index: PlanIndex | None
) -> tuple[CreatedTodos, PlanIndex | None]:
    """Also returns the index of a large plan, to be used after the commit."""
    status = PLAN.advance(NEW, PlanAction.CREATE, scope.actor.role)
    has_conditions = any(item.blocked_by or item.resources for item in items)
    existing: Sequence[TurnTodo] = ()
    titles: repository.Rows = ()
    if has_conditions:
        # Conflicts involve every todo of the plan, so whole rows are read instead of titles.
        lock_turn(tx, scope)
        index = None
        titles, existing = repository.read_titles_and_todos(tx, scope.turn_id)
    elif index is None or not index.catch_up(repository.lock_and_read_events(tx, scope, index.version)):
        index = None
        titles = repository.lock_and_read_titles(tx, scope)
    if index is not None:
        total, pending = index.total, index.pending
    else:
        total, pending = len(titles), repository.count_statuses(row[1] for row in titles)[PlanStatus.PENDING]
    positions, shifts = plan_validation.assign_positions(_check_room(total, len(items)), items)
    now = tx.now()
    todos = [_new_todo(scope, item, status, position, now) for item, position in zip(items, positions, strict=True)]
    ordered = sorted([*_shifted(existing, shifts), *todos], key=lambda todo: todo.priority) if has_conditions else []
    conditions = _conditions(items, todos, titles, ordered, now) if has_conditions else {}
    todo_repository = TurnTodoRepository(tx)
    todo_repository.shift_priorities(scope.turn_id, shifts)
    todo_repository.create_batch(todos)
    changes = [todo_change(scope, PlanAction.CREATE, None, todo, reason, todo.creation_data()) for todo in todos]
    if shifts:
        changes[0].data["shifts"] = [[shift.start, shift.end, shift.by] for shift in shifts]
    open_ids = index.open_ids if index else plan_validation.open_ids_by_title(titles, todos).__getitem__
    conflicts = plan_validation.duplicate_titles(open_ids, todos)
    if conditions:
        stored = _insert_conditions(tx, scope.turn_id, conditions, changes)
        conflicts += explain_conflicts(ordered, stored, conditions, now)
    version = event_log.append(tx, *changes)
    if scope.actor.role is Role.PERSON:
        add_creation_message(tx, scope, todos)
    if index is None and total >= MIN_INDEXED:
        index = PlanIndex(titles)
    if index is not None:
        index.add(todos, version)
    return CreatedTodos(todos, pending + len(todos), plan_validation.limit_conflicts(conflicts)), index


def _insert_conditions(
    tx: Transaction, turn_id: str, conditions: Mapping[str, Sequence[Condition]], changes: Sequence[Change]
) -> list[Condition]:
    """Store the conditions of new todos, also in the todos' events; returns all conditions of the turn."""
    before = condition_repository.read_conditions(tx, turn_id)
    added = [condition for of_todo in conditions.values() for condition in of_todo]
    condition_repository.insert_conditions(tx, added)
    for change in changes:
        if change.subject in conditions:
            change.data["conditions"] = [condition.event_data() for condition in conditions[change.subject]]
    return [*before, *added]


def start_todo(tx: Transaction, scope: TurnScope, todo: TurnTodo, reason: str, *, fence: int | None = None) -> TurnTodo:
    """`Plans.start` inside the caller's transaction, which has locked the turn."""

    name = title_for(scope.actor.role)

    def check(todo: TurnTodo) -> None:
        for running in TurnTodoRepository(tx).find_by_turn(scope.turn_id, {PlanStatus.IN_PROGRESS}):
            raise IllegalTransition(
                f"{name(running)} is in progress, and a turn works on one todo at a time. Complete or cancel it first."
            )
        _check_claim(tx, scope, todo, fence)
        if reasons := waiting_reasons_for(tx, scope, todo):
            raise IllegalTransition(
                f"{name(todo)} cannot be started yet. It waits for {'; for '.join(reasons)}. {while_waiting(scope)}"
            )

    return advance_todo(tx, scope, todo, PlanAction.START, reason, guard=check, started_at=tx.now())


def move_todo(tx: Transaction, scope: TurnScope, todo: TurnTodo, position: int, reason: str, **data: Any) -> TurnTodo:
    """`Plans.move` inside the caller's transaction, which has locked the turn. `data` is added to the event."""
    todo_repository = TurnTodoRepository(tx)
    total = sum(todo_repository.count_by_status(scope.turn_id).values())
    old, new = todo.priority, min(position, total) - 1
    shift = plan_validation.Shift(new, old, 1) if new < old else plan_validation.Shift(old + 1, new + 1, -1)

    def make_room(_: TurnTodo) -> Mapping[str, Any]:
        todo_repository.shift_priorities(scope.turn_id, [shift])
        return {"shifts": [[shift.start, shift.end, shift.by]], **data}

    if new == old:
        PLAN.advance(todo.status, PlanAction.MOVE, scope.actor.role)
        return todo
    return advance_todo(tx, scope, todo, PlanAction.MOVE, reason, guard=make_room, priority=new)


def end_todo(
    tx: Transaction,
    scope: TurnScope,
    todo: TurnTodo,
    action: PlanAction,
    reason: str,
    *,
    outcome: str,
    fence: int | None = None,
    verification: Verification | None = None,
    **data: Any,
) -> TurnTodo:
    """`Plans.end` inside the caller's transaction, which has locked the turn. `data` is added to the event."""
    changes: dict[str, str | None] = {"outcome": outcome, "completed_at": tx.now()}
    if (verified := todo.verification_at_end(scope.actor, action, verification)) != todo.verification:
        changes["verification"] = verified
    return advance_todo(tx, scope, todo, action, reason, guard=_claim_guard(tx, scope, fence, data), **changes)


def _claim_guard(tx: Transaction, scope: TurnScope, fence: int | None, data: Mapping[str, Any] = _NO_DATA) -> Any:
    def check(todo: TurnTodo) -> Mapping[str, Any]:
        claim = _check_claim(tx, scope, todo, fence)
        return {**(end_claim(tx, claim) if claim else {}), **data}

    return check


def _remaining(tx: Transaction, scope: TurnScope) -> int:
    counts = TurnTodoRepository(tx).count_by_status(scope.turn_id)
    return counts[PlanStatus.PENDING] + counts[PlanStatus.IN_PROGRESS]


def _position_of(tx: Transaction, scope: TurnScope, cursor: str) -> int:
    """The position of the last todo of the page before. It may have changed since; so the cursor is its id."""
    todo = TurnTodoRepository(tx).find_by_id(cursor)
    if todo is None or todo.turn_id != scope.turn_id:
        raise InvalidInput(
            f"cursor: {excerpt(cursor)!r} is not a nextCursor of this plan. Leave it out to begin with the first page."
        )
    return todo.priority


def _page(items: list[TurnTodo], limit: int | None) -> tuple[list[TurnTodo], str | None]:
    """The todos of a page, and the cursor of the next one."""
    if limit is None or len(items) <= limit:
        return items, None
    return items[:limit], items[limit - 1].id


def _positions_valid(items: Sequence[TurnTodo], total: int) -> bool:
    """Whether positions are unique and in range: a row that was put back from an earlier time has a valid checksum."""
    positions = {todo.priority for todo in items}
    return len(positions) == len(items) and (not positions or (min(positions) >= 0 and max(positions) < total))


def _check_room(existing: int, new: int) -> int:
    if existing + new > plan_validation.MAX_PLAN:
        raise InvalidInput(
            f"items: a plan holds at most {plan_validation.MAX_PLAN} todos; "
            f"this one has {existing} and {new} more were sent"
        )
    return existing


def _shifted(todos: Sequence[TurnTodo], shifts: Sequence[plan_validation.Shift]) -> Sequence[TurnTodo]:
    for shift in shifts:
        todos = [
            todo._replace(priority=todo.priority + shift.by) if shift.start <= todo.priority < shift.end else todo
            for todo in todos
        ]
    return todos


def _conditions(
    items: Sequence[NewTodo],
    todos: Sequence[TurnTodo],
    titles: repository.Rows,
    ordered: Sequence[TurnTodo],
    now: str,
) -> dict[str, list[Condition]]:
    """The conditions of the new todos by todo id; todos without any are absent."""
    references = TodoReferences(titles, [(todo.id, todo.title) for todo in todos])
    references.set_order([todo.id for todo in ordered])
    problems: list[str] = []
    found: dict[str, list[Condition]] = {}
    for index, (item, todo) in enumerate(zip(items, todos, strict=True)):
        conditions = [
            references.resolve(condition, todo.id, f"items[{index}].blockedBy[{number}]", problems)
            for number, condition in enumerate(item.blocked_by)
        ]
        conditions += [NewCondition(ConditionKind.RESOURCE, resource) for resource in item.resources]
        if conditions:
            found[todo.id] = new_conditions(todo, conditions, now)
    if problems:
        raise InvalidInput(problems)
    return found


def _new_todo(scope: TurnScope, item: NewTodo, status: PlanStatus, position: int, now: str) -> TurnTodo:
    return TurnTodo(
        id=item.id or new_id(),
        conversation_id=scope.conversation_id,
        turn_id=scope.turn_id,
        title=item.title,
        context=item.context,
        completion_criteria=item.completion_criteria,
        agent_type=item.agent_type,
        status=status,
        priority=position,
        created_at=now,
        verification=item.verification(scope.actor.role),
    )


def _check_claim(tx: Transaction, scope: TurnScope, todo: TurnTodo, fence: int | None) -> Claim | None:
    """The claim on a todo that is about to be started or ended; raises if the caller may not do that."""
    claim = claim_repository.lock(tx, todo.id)
    if claim is None and fence is None:
        return None
    return check_use(tx, claim, title_for(scope.actor.role)(todo), fence, scope.actor.role)
