"""A turn's plan as its events tell it, to compare with the rows."""

from __future__ import annotations

from collections.abc import Sequence

from punchlist.kernel.events import Event
from punchlist.plan.lifecycle import Action, Status
from punchlist.plan.model import TurnTodo


def replay(turn_id: str, events: Sequence[Event]) -> dict[str, TurnTodo]:
    """The todos by id."""
    todos: dict[str, TurnTodo] = {}
    for event in events:
        data = event.payload()
        if event.action == Action.CREATE:
            for start, end, by in data.get("shifts", []):
                for todo in list(todos.values()):
                    if start <= todo.priority < end:
                        todos[todo.id] = todo._replace(priority=todo.priority + by)
            todos[event.subject] = _created(turn_id, event)
        else:
            todos[event.subject] = todos[event.subject]._replace(**{**data, "status": Status(event.to_status or "")})
    return todos


def _created(turn_id: str, event: Event) -> TurnTodo:
    data = event.payload()
    return TurnTodo(
        id=event.subject,
        conversation_id=event.conversation_id,
        turn_id=turn_id,
        title=data["title"],
        context=data.get("context", ""),
        completion_criteria=data.get("completion_criteria", ""),
        agent_type=data.get("agent_type"),
        status=Status(event.to_status or ""),
        priority=data["priority"],
        outcome=None,
        created_at=event.at,
        started_at=None,
        completed_at=None,
    )
