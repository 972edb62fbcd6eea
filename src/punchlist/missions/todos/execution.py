"""Queues background work on a todo in the transaction of the change that causes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import Mission, MissionTodo, Pillar
from punchlist.missions.todos import repository as todo_repository
from punchlist.runs import repository as run_repository
from punchlist.runs import service as runs
from punchlist.runs.lifecycle import OPEN
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Transaction

PILLAR_OWNER: Final = "pillar-owner"
_DAY: Final = timedelta(days=1)


def enqueue_execution(tx: Transaction, scope: Scope, pillar: Pillar, todo: MissionTodo, reason: str) -> Run:
    """Queue the run in which the pillar's owner works on the todo, in the pillar's TODO chat."""
    return runs.enqueue(
        tx,
        scope,
        kind=RunKind.EXECUTE,
        conversation_id=pillar.todo_conversation_id,
        agent=PILLAR_OWNER,
        request={"todoId": todo.id, "title": todo.title},
        mission_id=todo.mission_id,
        pillar_id=todo.pillar_id,
        todo_id=todo.id,
        reason=reason,
    )


def check_daily_limits(tx: Transaction, mission: Mission) -> None:
    """Stops work that creates work: agents start a limited number of todos per day, for a limited cost."""
    policy = policy_of(mission)
    since = timestamp(parse_timestamp(tx.now()) - _DAY)
    started, cost = todo_repository.runs_since(tx, mission.id, RunKind.EXECUTE.value, since)
    if started >= policy.max_starts_per_day:
        raise IllegalTransition(
            f"{started} todos of mission {mission.slug!r} were started within a day, the limit (maxStartsPerDay). "
            "Wait, or ask a person to start more."
        )
    if cost >= policy.max_cost_per_day:
        raise IllegalTransition(
            f"The runs of mission {mission.slug!r} have cost ${cost:.2f} within a day, the limit (maxCostPerDay). "
            "Wait, or ask a person to start more."
        )


def has_open_run(tx: Transaction, todo: MissionTodo) -> bool:
    return any(run.status in OPEN for run in run_repository.select(tx, run_repository.BY_TODO, todo_id=todo.id))
