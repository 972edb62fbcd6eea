"""A mission as a board: how full it is, and each pillar with its metrics, strategies and todos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from punchlist.checklist.text_width import width
from punchlist.kernel.text import excerpt, visible
from punchlist.missions.config.policy import Cadence, cadence_of
from punchlist.missions.metrics.service import MetricView
from punchlist.missions.metrics.status import TREND_READINGS, format_number
from punchlist.missions.model import Mission, MissionTodo, PillarState
from punchlist.missions.planning.cadence import next_tick
from punchlist.missions.todos.deadlines import is_overdue
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.pagination import MAX_LIMIT, TodoPage
from punchlist.missions.todos.tools import list_json
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run, RunKind
from punchlist.surfaces.cli.context import format_time
from punchlist.surfaces.cli.layout import fit_line, line_width
from punchlist.surfaces.cli.mission_metric import SIGNS
from punchlist.surfaces.cli.plot import sparkline
from punchlist.surfaces.services import Services

ICONS: Final = {
    TodoStatus.BACKLOG: "·",
    TodoStatus.PENDING: "○",
    TodoStatus.IN_PROGRESS: "▶",
    TodoStatus.COMPLETED: "✓",
    TodoStatus.CANCELLED: "✗",
}
_GAUGE: Final = 10
_TITLE: Final = 20
"""Cells that a title has even where there is no room."""
_AT_REST: Final = {
    RunStatus.WAITING: "waits",
    RunStatus.PAUSED: "is paused",
    RunStatus.FAILED: "failed",
    RunStatus.STOPPED: "was stopped",
}
"""Why nothing happens although a todo is in progress."""


@dataclass(frozen=True, slots=True)
class MissionBoard:
    mission: Mission
    standing: Sequence[PillarState]
    metrics: Sequence[MetricView]
    listed: TodoPage
    cadence: Cadence
    next_cycle: str | None
    now: datetime
    runs: Mapping[str, Run]
    """By todo in progress, the newest of its runs."""


def look(services: Services, slug: str, *, archived: bool = False) -> MissionBoard:
    mission = services.missions.get(slug)
    cadence = cadence_of(mission)
    active = cadence.cron is not None and mission.status == "active"
    now, listed = services.store.clock(), services.mission_todos.list(slug, archived=archived, limit=MAX_LIMIT)
    return MissionBoard(
        mission,
        services.missions.pillars(mission),
        services.metrics.views(slug),
        listed,
        cadence,
        next_tick(cadence.cron or "", cadence.timezone, now) if active else None,
        now,
        _runs(services, mission, listed),
    )


def _runs(services: Services, mission: Mission, listed: TodoPage) -> dict[str, Run]:
    found: dict[str, Run] = {}
    if at_work := {todo.id for todo in listed.items if todo.status is TodoStatus.IN_PROGRESS}:
        for run in services.runs.list(mission_id=mission.id, ended=True, limit=MAX_LIMIT):
            if run.kind is RunKind.EXECUTE and run.todo_id in at_work:
                found.setdefault(run.todo_id, run)
    return found


def board_json(board: MissionBoard) -> dict[str, Any]:
    todos = list_json(board.listed)
    return {
        "nextCycle": board.next_cycle,
        "pillars": [
            {
                "id": one.pillar.id,
                "slug": one.pillar.slug,
                "name": one.pillar.name,
                "description": one.pillar.description,
                "conversationId": one.pillar.conversation_id,
                "todoConversationId": one.pillar.todo_conversation_id,
                "strategies": [{"description": each.description, "status": each.status} for each in one.strategies],
                "metrics": [view.as_json() for view in board.metrics if view.pillar_slug == one.pillar.slug],
                "todos": [todo for todo in todos["items"] if todo["pillarId"] == one.pillar.id],
            }
            for one in board.standing
        ],
        **({"nextCursor": todos["nextCursor"]} if "nextCursor" in todos else {}),
    }


def lines(board: MissionBoard) -> Iterator[str]:
    """For the terminal; safe to print."""
    mission, capacity = board.mission, board.listed.capacity
    ended = f"  archived {format_time(mission.updated_at)}" if mission.status != "active" else ""
    yield f"{visible(mission.name)} ({mission.slug}){ended}"
    if mission.description:
        yield excerpt(_on_a_line(mission.description), 200)
    yield ""
    yield f"active   {_gauge(capacity.active, capacity.active_limit)}"
    yield f"backlog  {_gauge(capacity.backlog, capacity.backlog_limit)}"
    if board.cadence.cron is not None:
        coming = f", next {format_time(board.next_cycle)}" if board.next_cycle else ""
        yield f"cadence  {visible(board.cadence.cron)} {visible(board.cadence.timezone)}{coming}"
    for one in board.standing:
        yield from _pillar(board, one)
    there = {one.pillar.id for one in board.standing}
    gone = [todo for todo in board.listed.items if todo.pillar_id not in there]
    if gone:
        yield "\nOf pillars that are archived"
        for todo in gone:
            yield from _todo(board, todo)
    if board.listed.cursor:
        yield f"\nOnly the first {len(board.listed.items)} todos are shown."


def _pillar(board: MissionBoard, one: PillarState) -> Iterator[str]:
    yield f"\n{visible(one.pillar.name)} ({one.pillar.slug})"
    if one.pillar.description:
        yield f"  {excerpt(_on_a_line(one.pillar.description), 200)}"
    for view in board.metrics:
        if view.pillar_slug == one.pillar.slug:
            yield from _metric(view)
    for strategy in one.strategies:
        yield f"  » {excerpt(_on_a_line(strategy.description), 100)} ({strategy.status})"
    todos = [todo for todo in board.listed.items if todo.pillar_id == one.pillar.id]
    for todo in todos:
        yield from _todo(board, todo)
    if not todos:
        yield "  No todos."


def _metric(view: MetricView) -> Iterator[str]:
    metric = view.metric
    current = format_number(view.current.value, metric.unit) if view.current else "no reading"
    parts = [
        f"{SIGNS[view.status]} {visible(metric.name)}: {visible(current)}",
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


def _todo(board: MissionBoard, todo: MissionTodo) -> Iterator[str]:
    open_until = todo.deadline if todo.ended_at is None else None
    due = f"  due {visible(open_until)}" if open_until else ""
    late = " overdue" if open_until and is_overdue(open_until, board.cadence.timezone, board.now) else ""
    asked = "  ? you are asked about it" if todo.id in board.listed.escalated else ""
    about = f"  {todo.priority.value}  {todo.id[-8:]}{due}{late}{asked}"
    title = fit_line(visible(todo.title), max(_TITLE, line_width() - 4 - width(about)))
    yield f"  {ICONS[todo.status]} {title}{about}"
    run = board.runs.get(todo.id)
    if run is not None and run.status in _AT_REST:
        why = f": {visible(run.why)}" if run.why else ""
        yield fit_line(f"      run {run.id[-8:]} {_AT_REST[run.status]}{why}", line_width())


def _on_a_line(text: str) -> str:
    return " ".join(text.split())


def _gauge(used: int, limit: int) -> str:
    full = min(_GAUGE, -(-used * _GAUGE // limit)) if limit else _GAUGE
    return f"{'█' * full}{'░' * (_GAUGE - full)} {used}/{limit}"
