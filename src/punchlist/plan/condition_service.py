"""The transactions of conditions: a todo is told to wait, and somebody says that what it waits for has come."""

from __future__ import annotations

from collections.abc import Iterable

from punchlist.conversations import repository as conversation_records
from punchlist.conversations.model import TurnScope
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from punchlist.kernel.actors import Actor
from punchlist.kernel.events import Change
from punchlist.kernel.text import excerpt, visible
from punchlist.plan import condition_input
from punchlist.plan import condition_repository as records
from punchlist.plan import snapshot as plan_snapshot
from punchlist.plan import validation as plan_validation
from punchlist.plan.conditions import is_unmet, quoted_title, waiting_reasons
from punchlist.plan.conflicts import explain_conflicts, limit_conflicts
from punchlist.plan.lifecycle import (
    CONDITION,
    OPEN,
    PLAN,
    ConditionAction,
    ConditionKind,
    ConditionStatus,
    PlanAction,
)
from punchlist.plan.model import BlockedTodo, Condition, NewCondition, TurnTodo, WaitingTodo
from punchlist.plan.repository import TurnTodoRepository
from punchlist.plan.transitions import apply_change, find_todo, lock_turn, new_conditions, plan_stream
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction


class ConditionService:
    """What holds todos up."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def wait(self, scope: TurnScope, todo_id: str, need: NewCondition, *, reason: str = "wait_todo") -> WaitingTodo:
        """Have a todo wait for something; one in progress goes back to pending (C10)."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            repository = TurnTodoRepository(tx)
            todo = find_todo(repository, scope, todo_id)
            status = PLAN.advance(todo.status, PlanAction.WAIT, scope.actor.role)
            problems: list[str] = []
            meant = resolve_reference(
                need, todo.id, condition_input.TodoReferences(repository.find_titles(scope.turn_id)), "for", problems
            )
            if problems:
                raise InvalidInput(problems)
            before = plan_snapshot.read_conditions(tx, scope.turn_id)
            added = new_conditions(todo, _unless_there(before, todo, meant), tx.now())
            if added or todo.status is not status:
                records.add(tx, added)
                told = {"conditions": [one.event_data() for one in added]}
                todo = apply_change(tx, scope, PlanAction.WAIT, todo, reason, told, status=status, started_at=None)
            todos, conditions = plan_snapshot.read_todos(tx, scope.turn_id), [*before, *added]
            waits_for = waiting_reasons(todos, conditions, tx.now()).get(todo.id, [])
            conflicts = (
                explain_conflicts(todos, conditions, {todo.id}, tx.now()) if meant.kind is ConditionKind.TODO else []
            )
            return WaitingTodo(todo, waits_for, limit_conflicts(conflicts))

    def open_conditions(self, conversation_id: str) -> list[BlockedTodo]:
        """What waits for a person, an event or a time, in the order of the plan."""
        with self._store.read() as tx:
            return [held for held in _holding(tx, conversation_id) if is_unmet(held.condition, tx.now())]

    def resolve(self, conversation_id: str, wanted: str, answer: str, by: Actor) -> BlockedTodo:
        """Answer the condition with this id, or with an id that ends so. The first answer stands."""
        answer = plan_validation.parse_answer(answer)
        with self._store.write() as tx:
            condition = _find(tx, conversation_id, wanted)
            turn = conversation_records.lock_turn(tx, condition.turn_id)
            # Read again: somebody may have answered before the lock was ours.
            condition = records.find(tx, condition.id) or condition
            if condition.status is ConditionStatus.RESOLVED:
                raise _already(condition)
            if turn is None or not turn.open:
                reason = turn.end_reason if turn else "it is gone"
                raise IllegalTransition(f"The turn that asked has ended ({reason}); nothing waits for an answer there.")
            todo = TurnTodoRepository(tx).find_by_id(condition.todo_id)
            if todo is None or todo.status not in OPEN:
                state = todo.status if todo else "gone"
                raise IllegalTransition(f"The todo that waited for this is {state}; it needs no answer any more.")
            return BlockedTodo(_resolve(tx, condition, answer, by, "answer"), todo)

    def report_event(self, conversation_id: str, event: str, by: Actor, *, note: str = "") -> list[BlockedTodo]:
        """Say that an event has happened: all that wait for it in a session's open turns go on."""
        note = plan_validation.parse_note(note)
        with self._store.write() as tx:
            for turn_id in sorted({held.condition.turn_id for held in _waiting_for(tx, conversation_id, event)}):
                conversation_records.lock_turn(tx, turn_id)
            found = _waiting_for(tx, conversation_id, event)
            if not found:
                raise NotFound(
                    f"Nothing waits for the event {excerpt(event)!r}. `punchlist wake` lists the events that are "
                    "waited for."
                )
            return [BlockedTodo(_resolve(tx, held.condition, note, by, "wake"), held.todo) for held in found]


def resolve_reference(
    need: NewCondition, own: str, names: condition_input.TodoReferences, where: str, problems: list[str]
) -> NewCondition:
    """The need with the id of the todo that it means; what cannot be found is added to `problems`."""
    if need.kind is not ConditionKind.TODO:
        return need
    return NewCondition(ConditionKind.TODO, names.find(need.subject, own, where, problems) or "")


def _unless_there(conditions: Iterable[Condition], todo: TurnTodo, need: NewCondition) -> list[NewCondition]:
    """The need, unless the todo has it already."""
    own = [
        one
        for one in conditions
        if one.todo_id == todo.id and one.kind is not ConditionKind.RESOURCE and one.status is ConditionStatus.OPEN
    ]
    if any((one.kind, one.subject) == (need.kind, need.subject) for one in own):
        return []
    if len(own) >= condition_input.MAX_CONDITIONS:
        raise InvalidInput(f"for: {quoted_title(todo)} waits for {len(own)} things already, which is the limit")
    return [need]


def _holding(tx: Transaction, conversation_id: str) -> list[BlockedTodo]:
    return [held for held in records.open_in(tx, conversation_id) if held.todo.status in OPEN]


def _waiting_for(tx: Transaction, conversation_id: str, event: str) -> list[BlockedTodo]:
    wanted = (ConditionKind.EVENT, event.strip())
    return [h for h in _holding(tx, conversation_id) if (h.condition.kind, h.condition.subject) == wanted]


def _find(tx: Transaction, conversation_id: str, wanted: str) -> Condition:
    """By its id, or by the end of it if only one open condition ends so."""
    of_conversation = records.answerable(tx, conversation_id)
    ends = [one for one in of_conversation if one.id == wanted or (wanted and one.id.endswith(wanted))]
    unanswered = [one for one in ends if one.status is ConditionStatus.OPEN]
    if len(unanswered) > 1:
        raise InvalidInput(f"{excerpt(wanted)!r} is the end of {len(unanswered)} ids; give more of it.")
    if not ends:
        raise NotFound(
            f"Nothing waits for an answer as {excerpt(wanted)!r}. `punchlist answer` lists what does, with ids."
        )
    return (unanswered or ends)[-1]


def _already(condition: Condition) -> Conflict:
    said = f": {excerpt(condition.answer)}" if condition.answer else ""
    return Conflict(f"{visible(condition.resolved_by)} answered already, at {condition.resolved_at}{said}.")


def _resolve(tx: Transaction, condition: Condition, answer: str, by: Actor, reason: str) -> Condition:
    status = CONDITION.advance(condition.status, ConditionAction.RESOLVE, by.role)
    resolved = condition._replace(status=status, answer=answer, resolved_by=str(by), resolved_at=tx.now())
    if not records.resolve(tx, resolved):
        raise _already(records.find(tx, condition.id) or resolved)
    event_log.append(
        tx,
        Change(
            stream=plan_stream(condition.turn_id),
            conversation_id=condition.conversation_id,
            actor=str(by),
            action=ConditionAction.RESOLVE,
            subject=condition.id,
            from_status=condition.status,
            to_status=status,
            reason=reason,
            data={"answer": answer, "todo": condition.todo_id},
        ),
    )
    return resolved
