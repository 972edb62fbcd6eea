"""Render missions for the terminal: a mission with its pillars, and the list of its todos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from punchlist.checklist.render import width
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.budgets.repository import Spend
from punchlist.missions.budgets.service import limit_lines
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.directives.model import Directive
from punchlist.missions.metrics.service import MetricView
from punchlist.missions.metrics.status import TREND_READINGS, format_number
from punchlist.missions.model import Mission, MissionTodo, PillarState
from punchlist.missions.todos.deadlines import is_overdue
from punchlist.missions.todos.lifecycle import OPEN, TodoStatus
from punchlist.missions.todos.pagination import TodoPage
from punchlist.runs.lifecycle import RunStatus
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, line_width
from punchlist.surfaces.cli.mission_directive import directive_line
from punchlist.surfaces.cli.mission_metric import ICONS as METRIC_ICONS
from punchlist.surfaces.cli.todo_parts import ICONS
from punchlist.surfaces.plot import sparkline
from punchlist.views.board import MissionBoard
from punchlist.views.health import MissionHealth

_GAUGE_CELLS: Final = 10
_MIN_TITLE_CELLS: Final = 20
_COLUMNS: Final = (
    *(TodoStatus.IN_PROGRESS, TodoStatus.PENDING, TodoStatus.BACKLOG),
    *(TodoStatus.COMPLETED, TodoStatus.CANCELLED),
)
_RESTING: Final = {
    RunStatus.WAITING: "waits",
    RunStatus.PAUSED: "is paused",
    RunStatus.FAILED: "failed",
    RunStatus.STOPPED: "was stopped",
}
"""States in which the run of a todo in progress does not advance."""


def board_lines(board: MissionBoard, health: MissionHealth, directives: Sequence[Directive] = ()) -> Iterator[str]:
    mission, capacity = board.mission, board.todos.capacity
    archived = f"  archived {format_time(mission.updated_at)}" if mission.status != "active" else ""
    yield f"{visible(mission.name)} ({mission.slug}){archived}"
    if mission.description:
        yield excerpt(_one_line(mission.description), 200)
    yield ""
    yield f"active   {_gauge(capacity.active, capacity.active_limit)}"
    yield f"backlog  {_gauge(capacity.backlog, capacity.backlog_limit)}"
    yield f"todos    {_column_counts(board)}"
    if board.cadence.cron is not None:
        upcoming = f", next {format_time(board.next_cycle)}" if board.next_cycle else ""
        yield f"cadence  {visible(board.cadence.cron)} {visible(board.cadence.timezone)}{upcoming}"
    yield from health_lines(health)
    if directives:
        yield "\nDirectives"
        yield from (fit_line(f"  {directive_line(one)}", line_width()) for one in directives)
    for state in board.pillars:
        yield from _pillar_lines(board, state)
    shown = {state.pillar.id for state in board.pillars}
    others = [todo for todo in board.todos.items if todo.pillar_id not in shown]
    if others:
        yield "\nTodos of archived pillars"
        for todo, depth in under_parents(others):
            yield from _todo_lines(board, todo, depth)
    if board.todos.cursor:
        yield f"\nMore todos: --cursor {board.todos.cursor}"


def _column_counts(board: MissionBoard) -> str:
    """How many todos match, on all pages."""
    return ", ".join(f"{board.counts.get(status, 0)} {status.replace('_', ' ')}" for status in _COLUMNS)


def health_lines(health: MissionHealth) -> Iterator[str]:
    if health.mission.status != "active":
        return
    last = f", last successful cycle {format_time(health.last_cycle)}" if health.last_cycle else ""
    yield f"workers  {health.workers} alive{last}"
    spent, limits = health.today, "; ".join(limit_lines(health.limits))
    if spent.requests or limits:
        used = f"{spent.requests} requests, {spent.tokens:,} tokens, {_cost(spent)}"
        yield f"today    {used}{f' (limits: {limits})' if limits else ''}"
    yield from (f"! {visible(problem)}" for problem in health.problems)


def _cost(spent: Spend) -> str:
    """Without the requests whose price is unknown, which are counted."""
    if not spent.unpriced:
        return f"${spent.cost:.2f}"
    if spent.unpriced >= spent.requests:
        return "cost unknown"
    return f"${spent.cost:.2f} and {spent.unpriced} requests at an unknown price"


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
    for todo, depth in under_parents(todos):
        yield from _todo_lines(board, todo, depth)
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


def under_parents(todos: Sequence[MissionTodo]) -> Iterator[tuple[MissionTodo, int]]:
    """The todos with their depth: sub-items follow their parent, if it is among them."""
    listed = {todo.id for todo in todos}
    children: dict[str, list[MissionTodo]] = {}
    for todo in todos:
        children.setdefault(todo.parent_id if todo.parent_id in listed else "", []).append(todo)
    pending = [(todo, 0) for todo in reversed(children.get("", ()))]
    while pending:
        todo, depth = pending.pop()
        yield todo, depth
        pending += [(child, depth + 1) for child in reversed(children.get(todo.id, ()))]


def _todo_lines(board: MissionBoard, todo: MissionTodo, depth: int = 0) -> Iterator[str]:
    indent = "  " * depth
    open_until = todo.deadline if todo.ended_at is None else None
    due = f"  due {visible(open_until)}" if open_until else ""
    late = " overdue" if open_until and is_overdue(open_until, board.cadence.timezone, board.now) else ""
    question = "  ? needs your answer" if todo.id in board.todos.escalated else ""
    about = f"  {todo.priority.value}  {todo.id[-8:]}{due}{late}{question}{_marks(board.todos, todo)}"
    title = fit_line(visible(todo.title), max(_MIN_TITLE_CELLS, line_width() - 4 - 2 * depth - width(about)))
    yield f"  {indent}{ICONS[todo.status]} {title}{about}"
    yield from (
        fit_line(f"      {indent}{visible(wait.text)}", line_width())
        for wait in board.waits.get(todo.id, ())
        if wait.kind == "todo"
    )
    run = board.runs.get(todo.id)
    if run is not None and run.status in _RESTING:
        why = f": {visible(run.why)}" if run.why else ""
        yield fit_line(f"      {indent}run {run.id[-8:]} {_RESTING[run.status]}{why}", line_width())


def _marks(page: TodoPage, todo: MissionTodo) -> str:
    """Labels, and the progress of the sub-items."""
    labels = "".join(f"  #{visible(label)}" for label in todo.label_names)
    return f"{labels}  {page.sub_items[todo.id]}" if todo.id in page.sub_items else labels


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _gauge(used: int, limit: int) -> str:
    full = min(_GAUGE_CELLS, -(-used * _GAUGE_CELLS // limit)) if limit else _GAUGE_CELLS
    return f"{'█' * full}{'░' * (_GAUGE_CELLS - full)} {used}/{limit}"


_ONE_LINE_WIDTH: Final = 72
"""From this width on, a todo takes one line of a list."""
_HEADINGS: Final = {
    TodoStatus.IN_PROGRESS: "In progress",
    TodoStatus.PENDING: "Pending",
    TodoStatus.BACKLOG: "Backlog",
    TodoStatus.COMPLETED: "Ended",
    TodoStatus.CANCELLED: "Ended",
}


# --- the list ---------------------------------------------------------------------------------------------


def list_lines(mission: Mission, page: TodoPage, now: datetime) -> Iterator[str]:
    cells, capacity = line_width(), page.capacity
    yield fit_line(visible(mission.name), cells)
    yield (
        f"active {capacity.active}/{capacity.active_limit}, backlog {capacity.backlog}/{capacity.backlog_limit}"
        f"{'  archived' if mission.status != 'active' else ''}"
    )
    if not page.items:
        yield "\nNo todos."
    heading = ""
    for todo, depth in under_parents(page.items):
        # A sub-item has an icon for its status, which can be another than that of its parent.
        if not depth and _HEADINGS[todo.status] != heading:
            heading = _HEADINGS[todo.status]
            yield f"\n{heading}"
        yield from (f"{'  ' * depth}{line}" for line in _item_lines(mission, page, todo, now, cells - 2 * depth))
    if page.cursor:
        yield f"\nMore todos: --cursor {page.cursor}"


def _item_lines(mission: Mission, page: TodoPage, todo: MissionTodo, now: datetime, cells: int) -> Iterator[str]:
    question = ["needs your answer"] if todo.id in page.escalated else []
    pillar = visible(page.pillars.get(todo.pillar_id, ""))
    blocked = ["blocked"] if todo.ended_at is None and todo.id in page.blocked_by else []
    facts = "  ".join([*_dates(mission, todo, now), todo.priority.value, *question, *blocked, pillar])
    facts += _marks(page, todo)
    head, title = f"{ICONS[todo.status]} {todo.id[-8:]}  ", visible(todo.title)
    room = cells - width(head) - width(facts) - 2
    if cells >= _ONE_LINE_WIDTH and width(title) <= room:
        yield f"{head}{title}  {facts}"
    else:
        # The title may be cut, the deadline may not.
        yield f"{head}{fit_line(title, cells - width(head))}"
        yield f"  {fit_line(facts, cells - 2)}"


def _dates(mission: Mission, todo: MissionTodo, now: datetime) -> list[str]:
    if todo.ended_at is not None:
        return [f"{todo.status} {visible(todo.ended_at)[:10]}"]
    if todo.deadline is None:
        return []
    return [f"due {visible(todo.deadline)}{' OVERDUE' if is_late(mission, todo, now) else ''}"]


def is_late(mission: Mission, todo: MissionTodo, now: datetime) -> bool:
    """Also between the deadline and the next sweep, which marks the todo as overdue."""
    if todo.status not in OPEN:
        return False
    return todo.overdue_at is not None or is_overdue(todo.deadline, cadence_of(mission).timezone, now)
