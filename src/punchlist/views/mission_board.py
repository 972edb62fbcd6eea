"""A mission's board: its capacity, and each pillar's metrics, strategies and todos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from punchlist.conversations.service import Conversations
from punchlist.missions.config.policy import Cadence, cadence_of
from punchlist.missions.metrics.service import Metrics, MetricView
from punchlist.missions.model import Mission, PillarState
from punchlist.missions.planning.cadence import next_tick
from punchlist.missions.service import Missions
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.pagination import MAX_LIMIT, TodoPage
from punchlist.missions.todos.service import MissionTodos
from punchlist.missions.todos.tools import list_json
from punchlist.runs.model import Run, RunKind
from punchlist.runs.service import Runs
from punchlist.storage.store import Store


@dataclass(frozen=True, slots=True)
class MissionBoard:
    mission: Mission
    pillars: Sequence[PillarState]
    metrics: Sequence[MetricView]
    todos: TodoPage
    cadence: Cadence
    next_cycle: str | None
    now: datetime
    runs: Mapping[str, Run]
    """The newest run of each todo in progress."""


def read_board(store: Store, slug: str, *, archived: bool = False) -> MissionBoard:
    missions = Missions(store, Conversations(store))
    mission = missions.get(slug)
    cadence = cadence_of(mission)
    active = cadence.cron is not None and mission.status == "active"
    now, todos = store.clock(), MissionTodos(store).list(slug, archived=archived, limit=MAX_LIMIT)
    return MissionBoard(
        mission,
        missions.pillars(mission),
        Metrics(store).views(slug),
        todos,
        cadence,
        next_tick(cadence.cron or "", cadence.timezone, now) if active else None,
        now,
        _newest_runs(store, mission, todos),
    )


def _newest_runs(store: Store, mission: Mission, todos: TodoPage) -> dict[str, Run]:
    newest: dict[str, Run] = {}
    if started := {todo.id for todo in todos.items if todo.status is TodoStatus.IN_PROGRESS}:
        for run in Runs(store).list(mission_id=mission.id, ended=True, limit=MAX_LIMIT):
            if run.kind is RunKind.EXECUTE and run.todo_id in started:
                newest.setdefault(run.todo_id, run)
    return newest


def board_json(board: MissionBoard) -> dict[str, Any]:
    todos = list_json(board.todos)
    return {
        "nextCycle": board.next_cycle,
        "pillars": [
            {
                "id": pillar.id,
                "slug": pillar.slug,
                "name": pillar.name,
                "description": pillar.description,
                "conversationId": pillar.conversation_id,
                "todoConversationId": pillar.todo_conversation_id,
                "strategies": [{"description": each.description, "status": each.status} for each in strategies],
                "metrics": [view.as_json() for view in board.metrics if view.pillar_slug == pillar.slug],
                "todos": [todo for todo in todos["items"] if todo["pillarId"] == pillar.id],
            }
            for pillar, strategies in ((state.pillar, state.strategies) for state in board.pillars)
        ],
        **({"nextCursor": todos["nextCursor"]} if "nextCursor" in todos else {}),
    }
