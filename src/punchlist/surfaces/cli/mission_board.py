"""Render a mission for the terminal: its capacity, and each pillar's metrics, strategies and todos."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from punchlist.checklist.text_width import width
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.metrics.service import MetricView
from punchlist.missions.metrics.status import TREND_READINGS, format_number
from punchlist.missions.model import MissionTodo, PillarState
from punchlist.missions.todos.deadlines import is_overdue
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.lifecycle import RunStatus
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, line_width
from punchlist.surfaces.cli.mission_metric import ICONS as METRIC_ICONS
from punchlist.surfaces.cli.plot import sparkline
from punchlist.views.mission_board import MissionBoard

ICONS: Final = {
    TodoStatus.BACKLOG: "·",
    TodoStatus.PENDING: "○",
    TodoStatus.IN_PROGRESS: "▶",
    TodoStatus.COMPLETED: "✓",
    TodoStatus.CANCELLED: "✗",
}
_GAUGE_CELLS: Final = 10
_MIN_TITLE_CELLS: Final = 20
_RESTING: Final = {
    RunStatus.WAITING: "waits",
    RunStatus.PAUSED: "is paused",
    RunStatus.FAILED: "failed",
    RunStatus.STOPPED: "was stopped",
}
"""States in which the run of a todo in progress does not advance."""


def board_lines(board: MissionBoard) -> Iterator[str]:
    mission, capacity = board.mission, board.todos.capacity
    archived = f"  archived {format_time(mission.updated_at)}" if mission.status != "active" else ""
    yield f"{visible(mission.name)} ({mission.slug}){archived}"
    if mission.description:
        yield excerpt(_one_line(mission.description), 200)
    yield ""
    yield f"active   {_gauge(capacity.active, capacity.active_limit)}"
    yield f"backlog  {_gauge(capacity.backlog, capacity.backlog_limit)}"
    if board.cadence.cron is not None:
        upcoming = f", next {format_time(board.next_cycle)}" if board.next_cycle else ""
        yield f"cadence  {visible(board.cadence.cron)} {visible(board.cadence.timezone)}{upcoming}"
    for state in board.pillars:
        yield from _pillar_lines(board, state)
    shown = {state.pillar.id for state in board.pillars}
    others = [todo for todo in board.todos.items if todo.pillar_id not in shown]
    if others:
        yield "\nTodos of archived pillars"
        for todo in others:
            yield from _todo_lines(board, todo)
    if board.todos.cursor:
        yield f"\nOnly the first {len(board.todos.items)} todos are shown."


def _pillar_lines(board: MissionBoard, state: PillarState) -> Iterator[str]:
    yield f"\n{visible(state.pillar.name)} ({state.pillar.slug})"
    if state.pillar.description:
        yield f"  {excerpt(_one_line(state.pillar.description), 200)}"
    for view in board.metrics:
        if view.pillar_slug == state.pillar.slug:
            yield from _metric_lines(view)
    for strategy in state.strategies:
        yield f"  » {excerpt(_one_line(strategy.description), 100)} ({strategy.status})"
    todos = [todo for todo in board.todos.items if todo.pillar_id == state.pillar.id]
    for todo in todos:
        yield from _todo_lines(board, todo)
    if not todos:
        yield "  No todos."


def _metric_lines(view: MetricView) -> Iterator[str]:
    metric = view.metric
    current = format_number(view.current.value, metric.unit) if view.current else "no reading"
    parts = [
        f"{METRIC_ICONS[view.status]} {visible(metric.name)}: {visible(current)}",
        f"{view.status.replace('_', ' ')} ({'≤' if metric.direction == 'down' else '≥'} "
        f"{visible(format_number(metric.target, metric.unit))})",
        view.trend if view.trend != "unknown" else "",
        sparkline(view.values[-TREND_READINGS:]) if len(view.values) > 1 else "",
        "stale" if view.stale and view.current else "",
    ]
    yield "  " + "  ".join(part for part in parts if part)
    if metric.last_error:
        yield fit_line(
            f"    not collected: {visible(metric.last_error.removeprefix(f'{metric.slug}: '))}", line_width()
        )


def _todo_lines(board: MissionBoard, todo: MissionTodo) -> Iterator[str]:
    open_until = todo.deadline if todo.ended_at is None else None
    due = f"  due {visible(open_until)}" if open_until else ""
    late = " overdue" if open_until and is_overdue(open_until, board.cadence.timezone, board.now) else ""
    question = "  ? needs your answer" if todo.id in board.todos.escalated else ""
    about = f"  {todo.priority.value}  {todo.id[-8:]}{due}{late}{question}"
    title = fit_line(visible(todo.title), max(_MIN_TITLE_CELLS, line_width() - 4 - width(about)))
    yield f"  {ICONS[todo.status]} {title}{about}"
    run = board.runs.get(todo.id)
    if run is not None and run.status in _RESTING:
        why = f": {visible(run.why)}" if run.why else ""
        yield fit_line(f"      run {run.id[-8:]} {_RESTING[run.status]}{why}", line_width())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _gauge(used: int, limit: int) -> str:
    full = min(_GAUGE_CELLS, -(-used * _GAUGE_CELLS // limit)) if limit else _GAUGE_CELLS
    return f"{'█' * full}{'░' * (_GAUGE_CELLS - full)} {used}/{limit}"
