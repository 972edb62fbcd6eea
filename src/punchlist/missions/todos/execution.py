"""Work on a todo in the background, queued in the transaction of what it follows from."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import Mission, MissionTodo, Pillar
from punchlist.runs import repository as run_records
from punchlist.runs import service as runs
from punchlist.runs.lifecycle import OPEN
from punchlist.runs.model import Run, RunKind
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

PILLAR_OWNER: Final = "pillar-owner"
DAY: Final = timedelta(days=1)
PACE: Final = Statement(
    "SELECT coalesce(sum(CASE WHEN kind = :kind THEN 1 ELSE 0 END), 0), coalesce(sum(cost), 0.0) "
    "FROM runs WHERE mission_id = :mission_id AND created_at > :since"
)


def enqueue_execution(tx: Transaction, scope: Scope, pillar: Pillar, todo: MissionTodo, reason: str) -> Run:
    """The run in which the pillar's owner works on it; it says so in the TODO chat itself."""
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
    """Work that makes work comes to an end: agents start only so many todos a day, for only so much money."""
    policy = policy_of(mission)
    since = timestamp(parse_timestamp(tx.now()) - DAY)
    row = tx.one(PACE, mission_id=mission.id, since=since, kind=RunKind.EXECUTE.value)
    started, cost = (int(row[0]), float(row[1])) if row else (0, 0.0)
    if started >= policy.max_starts_per_day:
        raise IllegalTransition(
            f"{started} todos of mission {mission.slug!r} were started within a day, the limit (maxStartsPerDay). A "
            "person can start more; or wait."
        )
    if cost >= policy.max_cost_per_day:
        raise IllegalTransition(
            f"The runs of mission {mission.slug!r} have cost ${cost:.2f} within a day, the limit (maxCostPerDay). A "
            "person can start more; or wait."
        )


def has_open_run(tx: Transaction, todo: MissionTodo) -> bool:
    """Whether a run works on it, or is going to."""
    return any(run.status in OPEN for run in run_records.select(tx, run_records.BY_TODO, todo_id=todo.id))
