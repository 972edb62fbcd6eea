"""The plan's transactions: create, list, start and end the todos of one turn.

Waiting is in `waiting.py`, claiming in `claiming.py`.

The turn comes from the caller's scope (T7). Writers of one plan take turns on the turn's row; the
todo's own state is checked again in the UPDATE that changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from punchlist.claims import repository as claim_records
from punchlist.claims.model import ListKind
from punchlist.claims.service import end_claim
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition, InvalidInput, StoreDamaged
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import visible
from punchlist.plan import condition_repository
from punchlist.plan import snapshot as plan_snapshot
from punchlist.plan import validation as plan_validation
from punchlist.plan.claims import PlanClaims, check_claim, waiting_reasons_for, with_claimed_in_progress
from punchlist.plan.condition_input import TodoReferences
from punchlist.plan.condition_service import ConditionService, resolve_reference
from punchlist.plan.conflicts import duplicate_titles, explain_conflicts, limit_conflicts
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
)
from punchlist.plan.repository import TurnTodoRepository, tallied
from punchlist.plan.transitions import (
    apply_change,
    count_retries,
    find_todo,
    lock_and_read_titles,
    lock_turn,
    new_conditions,
    plan_stream,
    todo_change,
    turn_not_found,
)
from punchlist.storage import event_log
from punchlist.storage.store import Transaction

__all__ = ["Plans", "plan_stream"]


class Plans(ConditionService, PlanClaims):
    def create(self, scope: TurnScope, items: Sequence[NewTodo], *, reason: str = "create_todo") -> CreatedTodos:
        """Add items to the turn's plan, all or none (T2)."""
        status = PLAN.advance(NEW, PlanAction.CREATE, scope.actor.role)
        with self._store.write() as tx:
            known = lock_and_read_titles(tx, scope)
            repository = TurnTodoRepository(tx)
            counts = tallied(row[1] for row in known)
            positions, shifts = plan_validation.assign_positions(_room(counts, len(items)), items)
            now = tx.now()
            todos = [
                _new_todo(scope, item, status, position, now) for item, position in zip(items, positions, strict=True)
            ]
            conditions = _conditions(items, todos, known, now)
            repository.shift_priorities(scope.turn_id, shifts)
            repository.create_batch(todos)
            changes = [
                todo_change(scope, PlanAction.CREATE, None, todo, reason, todo.creation_data()) for todo in todos
            ]
            if shifts:
                changes[0].data["shifts"] = [[shift.start, shift.end, shift.by] for shift in shifts]
            for made in changes:
                if made.subject in conditions:
                    made.data["conditions"] = [one.event_data() for one in conditions[made.subject]]
            condition_repository.add(tx, [one for of_todo in conditions.values() for one in of_todo])
            event_log.append(tx, *changes)
            conflicts = duplicate_titles(known, todos)
            if conditions:
                conflicts += _conflicts(tx, scope, conditions)
            return CreatedTodos(todos, counts[PlanStatus.PENDING] + len(todos), limit_conflicts(conflicts))

    def list(self, scope: TurnScope, status: Collection[PlanStatus] | None = None) -> Plan:
        """The turn's todos, by default what remains, and the counts of all of them (T3)."""
        with self._store.read() as tx:
            repository = TurnTodoRepository(tx)
            wanted = OPEN if status is None else frozenset(status)
            items = repository.find_by_turn(scope.turn_id, wanted)
            # An item tells whose turn it is; only without any does the turn have to be asked.
            owner = items[0] if items else conversation_repository.find_turn(tx, scope.turn_id)
            if owner is None or owner.conversation_id != scope.conversation_id:
                raise turn_not_found(scope)
            counts, more = repository.verified_counts(scope.conversation_id, scope.turn_id)
            if len(items) != sum(counts[state] for state in wanted) or not _in_order(items, sum(counts.values())):
                raise StoreDamaged.not_as_written(f"The plan of turn {scope.turn_id}")
            if not more:
                return Plan(items, counts)
            claims = claim_records.find_live(tx, ListKind.PLAN, scope.turn_id)
            found = plan_snapshot.read_conditions(tx, scope.turn_id)
            if not found:
                return Plan(items, counts, claims=claims)
            todos = with_claimed_in_progress(plan_snapshot.read_todos(tx, scope.turn_id), claims)
            return Plan(items, counts, *plan_snapshot.standing(todos, found, tx.now()), claims)

    def snapshot(self, scope: TurnScope) -> PlanSnapshot:
        """The whole plan for the loop, with what is wrong with it instead of an error (C11)."""
        with self._store.read() as tx:
            return plan_snapshot.take_snapshot(tx, scope)

    def start(
        self, scope: TurnScope, todo_id: str, *, reason: str = "start_todo", fence: int | None = None
    ) -> TurnTodo:
        """Mark an item in progress; one at a time per turn (T5). One that is claimed needs its fence (X3)."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            repository = TurnTodoRepository(tx)
            todo = find_todo(repository, scope, todo_id)
            status = PLAN.advance(todo.status, PlanAction.START, scope.actor.role)
            for running in repository.find_by_turn(scope.turn_id, {PlanStatus.IN_PROGRESS}):
                raise IllegalTransition(
                    f"“{visible(running.title)}” ({running.id}) is in progress, and a turn works on one todo at a "
                    "time. Complete or cancel it first."
                )
            check_claim(tx, scope, todo, fence)
            _check_free(tx, todo)
            return apply_change(tx, scope, PlanAction.START, todo, reason, status=status, started_at=tx.now())

    def end(
        self,
        scope: TurnScope,
        todo_id: str,
        outcome: str,
        action: PlanAction = PlanAction.COMPLETE,
        *,
        fence: int | None = None,
    ) -> EndedTodo:
        """Complete or cancel an item, with what came of it (T4). One that is claimed needs its fence (X3)."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            repository = TurnTodoRepository(tx)
            todo = find_todo(repository, scope, todo_id)
            status = PLAN.advance(todo.status, action, scope.actor.role)
            told = end_claim(tx, check_claim(tx, scope, todo, fence))
            ended = apply_change(
                tx, scope, action, todo, outcome, told, status=status, outcome=outcome, completed_at=tx.now()
            )
            counts = repository.count_by_status(scope.turn_id)
            return EndedTodo(ended, counts[PlanStatus.PENDING] + counts[PlanStatus.IN_PROGRESS])

    def edit(self, scope: TurnScope, todo_id: str, title: str, *, reason: str) -> TurnTodo:
        """Change the title of an open item."""
        (item,) = plan_validation.parse_items([{"title": title}])
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(TurnTodoRepository(tx), scope, todo_id)
            status = PLAN.advance(todo.status, PlanAction.EDIT, scope.actor.role)
            return apply_change(tx, scope, PlanAction.EDIT, todo, reason, status=status, title=item.title)

    def move(self, scope: TurnScope, todo_id: str, position: int, *, reason: str) -> TurnTodo:
        """Put an open item at a position, counted from 1; a position past the end is the end."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            repository = TurnTodoRepository(tx)
            todo = find_todo(repository, scope, todo_id)
            status = PLAN.advance(todo.status, PlanAction.MOVE, scope.actor.role)
            total = sum(repository.count_by_status(scope.turn_id).values())
            old, new = todo.priority, min(position, total) - 1
            if new == old:
                return todo
            shift = plan_validation.Shift(new, old, 1) if new < old else plan_validation.Shift(old + 1, new + 1, -1)
            repository.shift_priorities(scope.turn_id, [shift])
            data = {"shifts": [[shift.start, shift.end, shift.by]]}
            return apply_change(tx, scope, PlanAction.MOVE, todo, reason, data, status=status, priority=new)

    def fail(self, scope: TurnScope, todo_id: str, error: str, *, fence: int | None = None) -> FailedTodo:
        """The work on an item failed: it is tried once more, then skipped with the error (C8)."""
        error = plan_validation.storable_error(error)
        with self._store.write() as tx:
            lock_turn(tx, scope)
            repository = TurnTodoRepository(tx)
            todo = find_todo(repository, scope, todo_id)
            retry = not count_retries(tx, todo)
            action = PlanAction.RETRY if retry else PlanAction.CANCEL
            status = PLAN.advance(todo.status, action, scope.actor.role)
            # Whoever tries again claims again.
            told = end_claim(tx, check_claim(tx, scope, todo, fence))
            changes: dict[str, Any] = {"status": status, "started_at": None}
            if not retry:
                outcome = f"Skipped after two attempts: {error}"
                changes = {"status": status, "outcome": outcome, "completed_at": tx.now()}
            failed = apply_change(tx, scope, action, todo, error, told, **changes)
            counts = repository.count_by_status(scope.turn_id)
            return FailedTodo(failed, retry, counts[PlanStatus.PENDING] + counts[PlanStatus.IN_PROGRESS])


def _in_order(items: Sequence[TurnTodo], total: int) -> bool:
    """Whether their positions can be those that were given out: each once, and none beyond the end. A todo's checksum
    does not have its position, which changes with others."""
    places = {todo.priority for todo in items}
    return len(places) == len(items) and (not places or (min(places) >= 0 and max(places) < total))


def _room(counts: dict[PlanStatus, int], more: int) -> int:
    """How many todos the plan has, when it can take more of them."""
    already = sum(counts.values())
    if already + more > plan_validation.MAX_PLAN:
        raise InvalidInput(
            f"items: a plan holds at most {plan_validation.MAX_PLAN} todos; "
            f"this one has {already} and {more} more were sent"
        )
    return already


def _check_free(tx: Transaction, todo: TurnTodo) -> None:
    """A todo that waits cannot be started."""
    if waits_for := waiting_reasons_for(tx, todo):
        raise IllegalTransition(
            f"“{visible(todo.title)}” ({todo.id}) cannot be started yet. It waits for {'; for '.join(waits_for)}. "
            "Go on with another todo; when all that is left waits, end your turn."
        )


def _conditions(
    items: Sequence[NewTodo], todos: Sequence[TurnTodo], known: Sequence[Sequence[str]], now: str
) -> dict[str, list[Condition]]:
    """What the new todos wait for and claim, by id; those with nothing are not in it."""
    if not any(item.blocked_by or item.resources for item in items):
        return {}
    names = TodoReferences(known, [(todo.id, todo.title) for todo in todos])
    problems: list[str] = []
    made: dict[str, list[Condition]] = {}
    for index, (item, todo) in enumerate(zip(items, todos, strict=True)):
        needs = [
            resolve_reference(need, todo.id, names, f"items[{index}].blockedBy[{number}]", problems)
            for number, need in enumerate(item.blocked_by)
        ]
        needs += [NewCondition(ConditionKind.RESOURCE, resource) for resource in item.resources]
        if needs:
            made[todo.id] = new_conditions(todo, needs, now)
    if problems:
        raise InvalidInput(problems)
    return made


def _conflicts(tx: Transaction, scope: TurnScope, about: Collection[str]) -> Sequence[str]:
    return explain_conflicts(
        plan_snapshot.read_todos(tx, scope.turn_id), plan_snapshot.read_conditions(tx, scope.turn_id), about, tx.now()
    )


def _new_todo(scope: TurnScope, item: NewTodo, status: PlanStatus, position: int, now: str) -> TurnTodo:
    return TurnTodo(
        id=new_id(),
        conversation_id=scope.conversation_id,
        turn_id=scope.turn_id,
        title=item.title,
        context=item.context,
        completion_criteria=item.completion_criteria,
        agent_type=item.agent_type,
        status=status,
        priority=position,
        outcome=None,
        created_at=now,
        started_at=None,
        completed_at=None,
    )
