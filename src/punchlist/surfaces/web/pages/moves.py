"""Which moves of a todo a board offers, and why others are not possible. Pure functions over the lifecycle table."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from punchlist.kernel.events import Role
from punchlist.missions.model import Capacity
from punchlist.missions.todos.lifecycle import MISSION, OPEN, TodoAction, TodoStatus

STEPS: Final = (TodoAction.PROMOTE, TodoAction.DEMOTE, TodoAction.START, TodoAction.COMPLETE, TodoAction.CANCEL)
LABELS: Final = {
    TodoAction.PROMOTE: "Promote",
    TodoAction.DEMOTE: "Move to backlog",
    TodoAction.START: "Start",
    TodoAction.COMPLETE: "Complete",
    TodoAction.CANCEL: "Cancel",
}
_WHY_NOT: Final = {
    (TodoStatus.BACKLOG, TodoStatus.IN_PROGRESS): "Promote it first; only pending todos can start.",
    (TodoStatus.IN_PROGRESS, TodoStatus.BACKLOG): "Work has started. Complete or cancel it.",
    (TodoStatus.IN_PROGRESS, TodoStatus.PENDING): "Work has started. Complete or cancel it.",
}


class Move(NamedTuple):
    """A step to another column."""

    to: TodoStatus
    action: TodoAction | None
    """None if no action leads there."""
    needs: Literal["reason", "outcome"]
    why_not: str
    """Empty if the move is possible."""

    @property
    def label(self) -> str:
        return LABELS[self.action] if self.action else ""


def moves_from(status: TodoStatus, capacity: Capacity, role: Role) -> list[Move]:
    """A move to each other column."""
    return [_move(status, to, capacity, role) for to in TodoStatus if to is not status]


def moves_json(capacity: Capacity, role: Role) -> dict[str, list[dict[str, Any]]]:
    """All moves by status, for the browser."""
    return {
        status.value: [
            {"to": move.to, "action": move.action, "label": move.label, "needs": move.needs, "whyNot": move.why_not}
            for move in moves_from(status, capacity, role)
        ]
        for status in TodoStatus
    }


def _move(status: TodoStatus, to: TodoStatus, capacity: Capacity, role: Role) -> Move:
    action = next((step for step in STEPS if MISSION.table.get((status, step)) is to), None)
    needs: Literal["reason", "outcome"] = "outcome" if action is TodoAction.COMPLETE else "reason"
    return Move(to, action, needs, _why_not(status, to, action, capacity, role))


def _why_not(status: TodoStatus, to: TodoStatus, action: TodoAction | None, capacity: Capacity, role: Role) -> str:
    if status not in OPEN:
        return f"It is {status.value}. Ended todos do not change."
    if action is None:
        return _WHY_NOT.get((status, to), "Start it first; only work in progress can be completed.")
    if role not in MISSION.allowed[action]:
        return f"{role.described} may not {action} a todo."
    if action is TodoAction.PROMOTE and capacity.active >= capacity.active_limit:
        return f"The active list is full ({capacity.active} of {capacity.active_limit})."
    if action is TodoAction.DEMOTE and capacity.backlog >= capacity.backlog_limit:
        return f"The backlog is full ({capacity.backlog} of {capacity.backlog_limit})."
    return ""
