"""Cards of the board: title, and badges for priority, deadline, run, wait and result. Pure."""

from __future__ import annotations

from datetime import datetime

from textual.content import Content

from punchlist.missions.model import MissionTodo
from punchlist.missions.todos.deadlines import due_at
from punchlist.missions.todos.lifecycle import OPEN
from punchlist.surfaces.figures import format_age, progress_bar
from punchlist.surfaces.tui.display_text import assemble, line
from punchlist.surfaces.tui.theme import SIGNS, STYLES
from punchlist.views.board import MissionBoard

_PRIORITIES = {"critical": "bold $failed", "high": "$needs-you", "medium": "", "low": "$quiet"}
SOON_SECONDS = 3 * 86_400


def sign(todo: MissionTodo) -> tuple[str, str]:
    """The sign of a status and its style; a todo in the backlog is pending work."""
    name = todo.status.value if todo.status.value in SIGNS else "pending"
    return f"{SIGNS[name]} ", STYLES[name]


def card(board: MissionBoard, todo: MissionTodo) -> Content:
    title = assemble(sign(todo), line(todo.title, 200))
    badges = [badge for badge in (_priority(todo), deadline_badge(board, todo), _run(board, todo)) if badge.plain]
    waits = [
        assemble(("\n  ◆ ", "bold $needs-you"), (line(f"{wait.kind}: {wait.text}", 120), "$needs-you"))
        for wait in board.waits.get(todo.id, ())
    ]
    second = Content("  ").join(badges)
    return Content("").join([title, Content("\n  "), second, *waits]) if badges else Content("").join([title, *waits])


def _priority(todo: MissionTodo) -> Content:
    return Content.styled(todo.priority.value, _PRIORITIES[todo.priority.value])


def deadline_badge(board: MissionBoard, todo: MissionTodo) -> Content:
    """`due in 2 d`, `3 d overdue`; empty without a deadline and after the end."""
    if todo.deadline is None or todo.status not in OPEN:
        return Content("")
    return deadline_text(todo.deadline, board.cadence.timezone, board.now)


def deadline_text(deadline: str, zone: str, now: datetime) -> Content:
    left = (due_at(deadline, zone) - now).total_seconds()
    if left <= 0:
        return Content.styled(f"{format_age(-left)} overdue", "bold $failed")
    return Content.styled(f"due in {format_age(left)}", "$needs-you" if left < SOON_SECONDS else "$quiet")


def _run(board: MissionBoard, todo: MissionTodo) -> Content:
    run = board.runs.get(todo.id)
    return Content.styled(f"run {run.status.value}", "$working") if run is not None else Content("")


def header(board: MissionBoard) -> Content:
    """Name, capacity and the next cycle."""
    capacity = board.todos.capacity
    filled, empty = progress_bar(capacity.active, capacity.active_limit, 10)
    cycle = f"next cycle {board.next_cycle[:16]}Z" if board.next_cycle else f"no cycle ({board.mission.status})"
    return assemble(
        (line(board.mission.name), "bold"),
        "  active ",
        (filled, "$working"),
        (empty, "$quiet"),
        f" {capacity.active}/{capacity.active_limit}  backlog {capacity.backlog}/{capacity.backlog_limit}  ",
        (cycle, "$quiet"),
    )
