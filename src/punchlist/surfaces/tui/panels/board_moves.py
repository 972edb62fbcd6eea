"""Which step of the lifecycle a move between columns of the board is. Pure."""

from __future__ import annotations

from typing import Final

from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus

COLUMNS: Final = (TodoStatus.BACKLOG, TodoStatus.PENDING, TodoStatus.IN_PROGRESS, TodoStatus.COMPLETED)
"""Cancelled todos are in the last column."""
TITLES: Final = {
    TodoStatus.BACKLOG: "Backlog",
    TodoStatus.PENDING: "Pending",
    TodoStatus.IN_PROGRESS: "In progress",
    TodoStatus.COMPLETED: "Ended",
}
_MOVES: Final = {
    (TodoStatus.BACKLOG, 1): TodoAction.PROMOTE,
    (TodoStatus.PENDING, -1): TodoAction.DEMOTE,
    (TodoStatus.PENDING, 1): TodoAction.START,
    (TodoStatus.IN_PROGRESS, 1): TodoAction.COMPLETE,
}


def column_of(status: TodoStatus) -> TodoStatus:
    return TodoStatus.COMPLETED if status is TodoStatus.CANCELLED else status


def plan_move(status: TodoStatus, step: int) -> TodoAction | str:
    """The action of a move to the left (-1) or right (1), or why there is none."""
    if action := _MOVES.get((status, step)):
        return action
    if status in (TodoStatus.COMPLETED, TodoStatus.CANCELLED):
        return f"This todo is {status.value}; one that has ended stays ended."
    if status is TodoStatus.BACKLOG:
        return "The backlog is the first column."
    return "Work that has begun cannot go back to pending. Complete it with c or cancel it with x."


def action_problem(status: TodoStatus, action: TodoAction) -> str | None:
    """Why an action is not possible for a todo with this status."""
    if status in (TodoStatus.COMPLETED, TodoStatus.CANCELLED):
        return f"This todo is {status.value}; one that has ended stays ended."
    if action is TodoAction.START and status is not TodoStatus.PENDING:
        where = "in the backlog; move it to pending first" if status is TodoStatus.BACKLOG else "in progress already"
        return f"This todo is {where}."
    if action is TodoAction.COMPLETE and status is not TodoStatus.IN_PROGRESS:
        return f"This todo is {TITLES[status].lower()}; only a todo in progress can be completed. s starts it."
    return None
