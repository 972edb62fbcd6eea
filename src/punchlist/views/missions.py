"""A mission's board, and a mission todo in detail: its runs, their usage, open questions, claim and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from punchlist.claims import repository as claim_repository
from punchlist.claims.model import Claim
from punchlist.conversations.model import Message
from punchlist.conversations.service import Conversations
from punchlist.kernel.camel_json import camel_json
from punchlist.missions import repository as mission_repository
from punchlist.missions.config.policy import Cadence, cadence_of
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.metrics.service import Metrics, MetricView
from punchlist.missions.model import Escalation, Mission, MissionTodo, PillarState
from punchlist.missions.planning.cadence import next_tick
from punchlist.missions.service import Missions
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.pagination import MAX_LIMIT, TodoPage
from punchlist.missions.todos.service import MissionTodos
from punchlist.missions.todos.tools import list_json
from punchlist.missions.usage import MissionUsageService, TodoUsage
from punchlist.runs.model import Run, RunKind
from punchlist.runs.service import Runs
from punchlist.storage.store import Store

_PILLAR_FIELDS: Final = ("id", "slug", "name", "description", "conversation_id", "todo_conversation_id")


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
                **camel_json(pillar, *_PILLAR_FIELDS),
                "strategies": [{"description": each.description, "status": each.status} for each in strategies],
                "metrics": [view.as_json() for view in board.metrics if view.pillar_slug == pillar.slug],
                "todos": [todo for todo in todos["items"] if todo["pillarId"] == pillar.id],
            }
            for pillar, strategies in ((state.pillar, state.strategies) for state in board.pillars)
        ],
        **({"nextCursor": todos["nextCursor"]} if "nextCursor" in todos else {}),
    }


_MAX_MESSAGES: Final = 5


@dataclass(frozen=True, slots=True)
class TodoDetail:
    mission: Mission
    pillar: str
    conversation_id: str
    todo: MissionTodo
    runs: Sequence[Run]
    usage: TodoUsage
    escalations: Sequence[Escalation]
    claim: Claim | None
    messages: Sequence[Message]


def read_detail(store: Store, mission: Mission, todo: MissionTodo) -> TodoDetail:
    with store.read() as tx:
        # Not from the mission's pillars, which exclude archived ones.
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        assert pillar is not None
        claim = claim_repository.find(tx, todo.id)
        held = claim is not None and claim.holder is not None and tx.now() < claim.lease_until
    return TodoDetail(
        mission,
        pillar.slug,
        pillar.todo_conversation_id,
        todo,
        Runs(store).for_todo(todo.id),
        MissionUsageService(store).todo(todo.id),
        [escalation for escalation in Escalations(store).list(mission.slug) if escalation.todo_id == todo.id],
        claim if held else None,
        Conversations(store).mentioning(pillar.todo_conversation_id, todo.id, _MAX_MESSAGES),
    )
