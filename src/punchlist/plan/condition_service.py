"""Transactions of conditions: make a todo wait, answer a question, report an event."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from punchlist.kernel.events import Actor, Change
from punchlist.kernel.text import excerpt, visible
from punchlist.plan import condition_repository, repository
from punchlist.plan import validation as plan_validation
from punchlist.plan.conditions import explain_conflicts, is_unmet, waiting_reasons
from punchlist.plan.lifecycle import CONDITION, OPEN, PLAN, ConditionAction, ConditionKind, ConditionStatus, PlanAction
from punchlist.plan.model import (
    BlockedTodo,
    Condition,
    NewCondition,
    TurnTodo,
    WaitingTodo,
    plan_stream,
    quoted_title,
    title_for,
)
from punchlist.plan.references import TodoReferences
from punchlist.plan.transitions import advance_todo, new_conditions
from punchlist.storage.store import Store, Transaction
from punchlist.storage.transitions import transition


class ConditionService:
    _store: Store

    def wait(
        self, scope: TurnScope, todo_id: str, condition: NewCondition, *, reason: str = "wait_todo"
    ) -> WaitingTodo:
        """Make a todo wait for something; one in progress returns to pending (C10)."""
        with self._store.write() as tx:
            repository.lock_turn(tx, scope)
            todo = repository.find_todo(tx, scope, todo_id)
            todos = repository.read_todos(tx, scope.turn_id)
            before = condition_repository.read_conditions(tx, scope.turn_id)
            status = PLAN.advance(todo.status, PlanAction.WAIT, scope.actor.role)
            problems: list[str] = []
            references = TodoReferences((each.id, each.status, each.title) for each in todos)
            resolved = references.resolve(condition, todo.id, "for", problems)
            if problems:
                raise InvalidInput(problems)
            added = [] if _is_present(before, todo, resolved) else new_conditions(todo, [resolved], tx.now())
            if added or todo.status is not status:
                condition_repository.insert_conditions(tx, added)
                data = {"conditions": [each.event_data() for each in added]}
                todo = advance_todo(tx, scope, todo, PlanAction.WAIT, reason, guard=lambda _: data, started_at=None)
            todos = [todo if each.id == todo.id else each for each in todos]
            conditions = [*before, *added]
            name = title_for(scope.actor.role)
            waits_for = waiting_reasons(todos, conditions, tx.now(), name).get(todo.id, [])
            conflicts = []
            if condition.kind is ConditionKind.TODO:
                conflicts = explain_conflicts(todos, conditions, {todo.id}, tx.now())
            return WaitingTodo(todo, waits_for, plan_validation.limit_conflicts(conflicts))

    def conditions(self, scope: TurnScope) -> list[Condition]:
        """All conditions of a turn's todos."""
        with self._store.read() as tx:
            return condition_repository.read_conditions(tx, scope.turn_id)

    def open_conditions(self, conversation_id: str) -> list[BlockedTodo]:
        """Unmet conditions on a person, an event or a time, in plan order."""
        with self._store.read() as tx:
            return [each for each in _find_blocking(tx, conversation_id) if is_unmet(each.condition, tx.now())]

    def resolve(self, conversation_id: str, reference: str, answer: str, by: Actor) -> BlockedTodo:
        """Answer the condition whose id is or ends with `reference`. Only the first answer counts."""
        answer = plan_validation.parse_answer(answer)
        with self._store.write() as tx:
            condition = _find(tx, conversation_id, reference)
            turn = conversation_repository.lock_turn(tx, condition.turn_id)
            # Read again: another answer may have been written before the lock was acquired.
            condition = condition_repository.find_by_id(tx, condition.id) or condition
            if condition.status is ConditionStatus.RESOLVED:
                raise _already_answered(condition)
            if turn is None or not turn.open:
                state = f"has ended ({turn.end_reason})" if turn else "does not exist any more"
                raise IllegalTransition(f"The turn that asked {state}; it needs no answer.")
            todo = repository.TurnTodoRepository(tx).find_by_id(condition.todo_id)
            if todo is None or todo.status not in OPEN:
                state = f"is {todo.status}" if todo else "does not exist any more"
                raise IllegalTransition(f"The todo that waited for this {state}; it needs no answer.")
            return BlockedTodo(_resolve(tx, condition, answer, by, "answer"), todo)

    def report_event(self, conversation_id: str, event: str, by: Actor, *, note: str = "") -> list[BlockedTodo]:
        """Resolve every condition on an event in the open turns of a session."""
        note = plan_validation.parse_note(note)
        with self._store.write() as tx:
            waiting = _find_waiting_for(tx, conversation_id, event)
            for turn_id in sorted({each.condition.turn_id for each in waiting}):
                conversation_repository.lock_turn(tx, turn_id)
            waiting = _find_waiting_for(tx, conversation_id, event)
            if not waiting:
                raise NotFound(
                    f"No todo waits for the event {excerpt(event)!r}. `punchlist wake` lists the events that todos "
                    "wait for."
                )
            return [BlockedTodo(_resolve(tx, each.condition, note, by, "wake"), each.todo) for each in waiting]


def _is_present(conditions: Iterable[Condition], todo: TurnTodo, new: NewCondition) -> bool:
    """Whether the todo already has the condition; raises if it has the maximum number of others."""
    own = [
        each
        for each in conditions
        if each.todo_id == todo.id and each.kind is not ConditionKind.RESOURCE and each.status is ConditionStatus.OPEN
    ]
    if any((each.kind, each.subject) == (new.kind, new.subject) for each in own):
        return True
    if len(own) >= plan_validation.MAX_CONDITIONS:
        raise InvalidInput(f"for: {quoted_title(todo)} waits for {len(own)} things already, which is the limit")
    return False


def _find_blocking(tx: Transaction, conversation_id: str) -> list[BlockedTodo]:
    return [each for each in condition_repository.find_open(tx, conversation_id) if each.todo.status in OPEN]


def _find_waiting_for(tx: Transaction, conversation_id: str, event: str) -> list[BlockedTodo]:
    subject = (ConditionKind.EVENT, event.strip())
    blocking = _find_blocking(tx, conversation_id)
    return [each for each in blocking if (each.condition.kind, each.condition.subject) == subject]


def _find(tx: Transaction, conversation_id: str, reference: str) -> Condition:
    """Find a condition by id, or by the end of it if only one open condition matches."""
    found = [
        each
        for each in condition_repository.find_resolvable(tx, conversation_id)
        if each.id == reference or (reference and each.id.endswith(reference))
    ]
    unanswered = [each for each in found if each.status is ConditionStatus.OPEN]
    if len(unanswered) > 1:
        raise InvalidInput(f"{len(unanswered)} ids end with {excerpt(reference)!r}; give more characters of the id.")
    if not found:
        raise NotFound(f"No question has the id {excerpt(reference)!r}. `punchlist answer` lists open questions.")
    return (unanswered or found)[-1]


def _already_answered(condition: Condition) -> Conflict:
    answer = f": {excerpt(condition.answer)}" if condition.answer else ""
    return Conflict(f"{visible(condition.resolved_by)} answered already, at {condition.resolved_at}{answer}.")


def _resolve(tx: Transaction, condition: Condition, answer: str, by: Actor, reason: str) -> Condition:
    return transition(
        tx,
        CONDITION,
        ConditionAction.RESOLVE,
        by.role,
        lock=lambda _: condition,
        update=condition_repository.update_resolved,
        event=partial(_resolved_change, by, reason),
        changes={"answer": answer, "resolved_by": str(by), "resolved_at": tx.now()},
    )


def _resolved_change(by: Actor, reason: str, before: Condition, after: Condition, _: object) -> Change:
    return Change(
        stream=plan_stream(before.turn_id),
        conversation_id=before.conversation_id,
        actor=str(by),
        action=ConditionAction.RESOLVE,
        subject=before.id,
        from_status=before.status,
        to_status=after.status,
        reason=reason,
        data={"answer": after.answer, "todo": before.todo_id},
    )
