"""Rebuild a turn's plan from its events, to compare it with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from punchlist.kernel.events import Event
from punchlist.plan.lifecycle import ConditionAction, ConditionKind, ConditionStatus, PlanAction, PlanStatus
from punchlist.plan.model import Condition, TurnTodo

_CHANGES: Final = frozenset(PlanAction) - {PlanAction.CREATE}
"""Claims and answers are in the same stream but do not change todos."""


def replay_todos(turn_id: str, events: Sequence[Event]) -> dict[str, TurnTodo]:
    todos: dict[str, TurnTodo] = {}
    for event in events:
        data = event.payload()
        for start, end, by in data.get("shifts", []):
            for todo in list(todos.values()):
                if start <= todo.priority < end:
                    todos[todo.id] = todo._replace(priority=todo.priority + by)
        if event.action == PlanAction.CREATE:
            todos[event.subject] = _new_todo(turn_id, event)
        elif event.action in _CHANGES:
            changes = {name: data[name] for name in TurnTodo._fields if name in data}
            todos[event.subject] = todos[event.subject]._replace(
                **{**changes, "status": PlanStatus(event.to_status or "")}
            )
    return todos


def replay_conditions(turn_id: str, events: Sequence[Event]) -> dict[str, Condition]:
    conditions: dict[str, Condition] = {}
    for event in events:
        data = event.payload()
        if event.action == ConditionAction.RESOLVE:
            conditions[event.subject] = conditions[event.subject]._replace(
                status=ConditionStatus(event.to_status or ""),
                answer=data["answer"],
                resolved_by=event.actor,
                resolved_at=event.at,
            )
        for condition in data.get("conditions", []):
            conditions[condition["id"]] = _new_condition(turn_id, event, condition)
    return conditions


def count_new_conditions(event: Event) -> int:
    """How many conditions an event added to a todo; 0 if the event is damaged."""
    try:
        return len(event.payload().get("conditions", ())) if '"conditions"' in event.data else 0
    except (ValueError, TypeError, AttributeError):
        return 0


def _new_condition(turn_id: str, event: Event, data: dict[str, str]) -> Condition:
    return Condition(
        id=data["id"],
        conversation_id=event.conversation_id,
        turn_id=turn_id,
        todo_id=event.subject,
        kind=ConditionKind(data["kind"]),
        subject=data["subject"],
        status=ConditionStatus.OPEN,
        created_at=event.at,
    )


def _new_todo(turn_id: str, event: Event) -> TurnTodo:
    data = event.payload()
    return TurnTodo(
        id=event.subject,
        conversation_id=event.conversation_id,
        turn_id=turn_id,
        title=data["title"],
        context=data.get("context", ""),
        completion_criteria=data.get("completion_criteria", ""),
        agent_type=data.get("agent_type"),
        status=PlanStatus(event.to_status or ""),
        priority=data["priority"],
        created_at=event.at,
        verification=data.get("verification"),
    )
