"""Rebuilds mission todos from events and compares them with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from punchlist.kernel.events import Event
from punchlist.missions.model import MissionTodo
from punchlist.missions.replay import differences
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.storage.store import Transaction


def replay(events: Sequence[Event]) -> dict[str, MissionTodo]:
    """The todos by id. Events about other things are ignored."""
    todos: dict[str, MissionTodo] = {}
    for event in events:
        if creates_todo(event):
            empty: dict[str, Any] = dict.fromkeys(MissionTodo._fields)
            todos[event.subject] = _apply_event(MissionTodo(**empty)._replace(id=event.subject), event)
        elif event.subject in todos:
            todos[event.subject] = _apply_event(todos[event.subject], event)
    return todos


def creates_todo(event: Event) -> bool:
    """Whether an event inserted a row into `mission_todos`."""
    return event.action in (TodoAction.CREATE, TodoAction.SHELVE)


def compare(tx: Transaction, mission_id: str, events: Sequence[Event]) -> Iterator[str]:
    """One line per todo whose row differs from its events."""
    return differences(mission_id, "todo", replay(events), todo_repository.all_in_mission(tx, mission_id))


def _apply_event(todo: MissionTodo, event: Event) -> MissionTodo:
    data = event.payload()
    changed = todo._replace(**{name: data[name] for name in MissionTodo._fields if name in data})
    return changed._replace(
        status=TodoStatus(event.to_status or changed.status), priority=TodoPriority(changed.priority)
    )
