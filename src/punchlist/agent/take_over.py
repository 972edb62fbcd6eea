"""Copies the open items of an earlier turn into a new one (T14). The old items stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from punchlist.conversations.model import TurnScope
from punchlist.plan.conditions import collect_answers
from punchlist.plan.lifecycle import OPEN, ConditionKind, ConditionStatus
from punchlist.plan.model import Condition, ConditionAnswer, NewCondition, NewTodo, TurnTodo
from punchlist.plan.service import Plans
from punchlist.plan.validation import MAX_BLOCK_LENGTH


def take_over_items(plans: Plans, earlier_turn: str, scope: TurnScope) -> int:
    """Returns the number of copies."""
    earlier = TurnScope(scope.conversation_id, scope.actor, earlier_turn)
    todos = [todo for todo in plans.snapshot(earlier).todos if todo.status in OPEN]
    if not todos:
        return 0
    conditions = plans.conditions(earlier)
    plans.create(scope, copies(todos, conditions), reason="taken over from an earlier turn")
    return len(todos)


def copies(todos: list[TurnTodo], conditions: list[Condition]) -> list[NewTodo]:
    """New todos with the texts, the check, the answers and the unresolved conditions of the old ones."""
    titles, answers = {todo.id: todo.title for todo in todos}, collect_answers(conditions)
    return [
        NewTodo(
            todo.title,
            _context(todo, answers.get(todo.id, ())),
            todo.completion_criteria,
            todo.agent_type,
            blocked_by=_blocked_by(todo, conditions, titles),
            resources=tuple(
                each.subject for each in conditions if each.todo_id == todo.id and each.kind is ConditionKind.RESOURCE
            ),
            check=todo.verified().check,
            copied_from=todo.id,
        )
        for todo in todos
    ]


def _context(todo: TurnTodo, answers: Sequence[ConditionAnswer]) -> str:
    lines = [todo.context, *(f"Received: {answer.description}" for answer in answers)]
    return "\n".join(filter(None, lines))[:MAX_BLOCK_LENGTH]


def _blocked_by(todo: TurnTodo, conditions: list[Condition], titles: dict[str, str]) -> tuple[NewCondition, ...]:
    found = []
    for each in conditions:
        if each.todo_id != todo.id or each.kind is ConditionKind.RESOURCE or each.status is ConditionStatus.RESOLVED:
            continue
        if each.kind is ConditionKind.TODO:
            # An item that has ended is not copied, and blocks nothing.
            if each.subject in titles:
                found.append(NewCondition(each.kind, titles[each.subject]))
        else:
            found.append(NewCondition(each.kind, each.subject))
    return tuple(found)
