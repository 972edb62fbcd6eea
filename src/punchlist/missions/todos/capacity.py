"""Slots are scarce on purpose: where a todo may go, by how many there are already. Pure.

Limits are strict and of the whole mission, not of a pillar. The caller has locked the mission and
counted in the transaction that uses a slot up.
"""

from __future__ import annotations

from punchlist.errors import IllegalTransition
from punchlist.missions.model import Capacity
from punchlist.missions.todos.lifecycle import TodoAction


def room_for_new(wanted: TodoAction, capacity: Capacity) -> tuple[TodoAction, str | None]:
    """Whether a new todo is created or shelved, and what is to be said when that is not what was wanted."""
    warning = None
    if wanted is TodoAction.CREATE:
        if capacity.active < capacity.active_limit:
            return TodoAction.CREATE, None
        warning = f"{_active_reached(capacity)} Created in backlog instead."
    _check_backlog(capacity)
    return TodoAction.SHELVE, warning


def check_room(action: TodoAction, capacity: Capacity) -> None:
    """Raises when the list that a todo is to move to is full."""
    if action is TodoAction.PROMOTE and capacity.active >= capacity.active_limit:
        raise IllegalTransition(f"{_active_reached(capacity)} Complete, cancel or demote an item first.")
    if action is TodoAction.DEMOTE:
        _check_backlog(capacity)


def is_full(capacity: Capacity) -> bool:
    """Whether a new todo may have to be refused."""
    return capacity.backlog >= capacity.backlog_limit


def _active_reached(capacity: Capacity) -> str:
    return f"Active TODO limit ({capacity.active_limit}) reached."


def _check_backlog(capacity: Capacity) -> None:
    if is_full(capacity):
        raise IllegalTransition(
            f"Backlog limit ({capacity.backlog_limit}) reached. Cancel or complete existing items first."
        )
