"""A mission as a board: how full it is, and each pillar with its metrics, strategies and todos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.kernel.text import excerpt, visible
from punchlist.missions.cadence import next_tick
from punchlist.missions.config import Cadence
from punchlist.missions.config_json import cadence_of
from punchlist.missions.lifecycle import Status
from punchlist.missions.listing import MOST, Listed
from punchlist.missions.metric_rules import LOOKED_AT, shown
from punchlist.missions.metrics import MetricView
from punchlist.missions.model import Mission, MissionTodo, Standing
from punchlist.missions.tools import list_json
from punchlist.surfaces.cli.front import moment
from punchlist.surfaces.cli.metric import SIGNS
from punchlist.surfaces.cli.plot import sparkline
from punchlist.surfaces.desk import Desk

ICONS: Final = {
    Status.BACKLOG: "·",
    Status.PENDING: "○",
    Status.IN_PROGRESS: "▶",
    Status.COMPLETED: "✓",
    Status.CANCELLED: "✗",
}
_GAUGE: Final = 10


@dataclass(frozen=True, slots=True)
class Board:
    mission: Mission
    standing: Sequence[Standing]
    metrics: Sequence[MetricView]
    listed: Listed
    cadence: Cadence
    next_cycle: str | None


def look(desk: Desk, slug: str, *, archived: bool = False) -> Board:
    mission = desk.missions.get(slug)
    cadence = cadence_of(mission)
    active = cadence.cron is not None and mission.status == "active"
    return Board(
        mission,
        desk.missions.standing(mission),
        desk.metrics.show(slug),
        desk.mission_todos.list(slug, archived=archived, limit=MOST),
        cadence,
        next_tick(cadence.cron or "", cadence.timezone, desk.store.clock()) if active else None,
    )


def board_json(board: Board) -> dict[str, Any]:
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


def lines(board: Board) -> Iterator[str]:
    """For the terminal; safe to print."""
    mission, capacity = board.mission, board.listed.capacity
    ended = f"  archived {moment(mission.updated_at)}" if mission.status != "active" else ""
    yield f"{visible(mission.name)} ({mission.slug}){ended}"
    if mission.description:
        yield excerpt(mission.description, 200)
    yield ""
    yield f"active   {_gauge(capacity.active, capacity.active_limit)}"
    yield f"backlog  {_gauge(capacity.backlog, capacity.backlog_limit)}"
    if board.cadence.cron is not None:
        coming = f", next {moment(board.next_cycle)}" if board.next_cycle else ""
        yield f"cadence  {visible(board.cadence.cron)} {visible(board.cadence.timezone)}{coming}"
    for one in board.standing:
        yield from _pillar(board, one)
    there = {one.pillar.id for one in board.standing}
    gone = [todo for todo in board.listed.items if todo.pillar_id not in there]
    if gone:
        yield "\nOf pillars that are archived"
        yield from (f"  {_todo(board.listed, todo)}" for todo in gone)
    if board.listed.cursor:
        yield f"\nOnly the first {len(board.listed.items)} todos are board."


def _pillar(board: Board, one: Standing) -> Iterator[str]:
    yield f"\n{visible(one.pillar.name)} ({one.pillar.slug})"
    if one.pillar.description:
        yield f"  {excerpt(one.pillar.description, 200)}"
    for view in board.metrics:
        if view.pillar_slug == one.pillar.slug:
            yield f"  {_metric(view)}"
    for strategy in one.strategies:
        yield f"  » {excerpt(strategy.description, 100)} ({strategy.status})"
    todos = [todo for todo in board.listed.items if todo.pillar_id == one.pillar.id]
    yield from (f"  {_todo(board.listed, todo)}" for todo in todos)
    if not todos:
        yield "  No todos."


def _metric(view: MetricView) -> str:
    metric = view.metric
    current = shown(view.current.value, metric.unit) if view.current else "no reading"
    parts = [
        f"{SIGNS[view.status]} {visible(metric.name)}: {visible(current)}",
        f"{view.status.replace('_', ' ')} ({'≤' if metric.direction == 'down' else '≥'} "
        f"{visible(shown(metric.target, metric.unit))})",
        view.trend if view.trend != "unknown" else "",
        sparkline(view.values[-LOOKED_AT:]) if len(view.values) > 1 else "",
        "stale" if view.stale and view.current else "",
        f"not collected: {excerpt(metric.last_error)}" if metric.last_error else "",
    ]
    return "  ".join(part for part in parts if part)


def _todo(listed: Listed, todo: MissionTodo) -> str:
    due = f"  due {visible(todo.deadline)}" if todo.deadline and todo.ended_at is None else ""
    late = " overdue" if todo.overdue_at and todo.ended_at is None else ""
    asked = "  ? you are asked about it" if todo.id in listed.escalated else ""
    return f"{ICONS[todo.status]} {visible(todo.title)}  {todo.priority.value}  {todo.id[-8:]}{due}{late}{asked}"


def _gauge(used: int, limit: int) -> str:
    full = min(_GAUGE, -(-used * _GAUGE // limit)) if limit else _GAUGE
    return f"{'█' * full}{'░' * (_GAUGE - full)} {used}/{limit}"
