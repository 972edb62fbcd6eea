"""Work on a todo in the background, queued in the transaction of what it follows from."""

from __future__ import annotations

from typing import Final

from punchlist.conversations.model import Scope
from punchlist.missions.model import MissionTodo, Pillar
from punchlist.runs import records as run_records
from punchlist.runs import service as runs
from punchlist.runs.lifecycle import OPEN
from punchlist.runs.model import Kind, Run
from punchlist.storage.store import Transaction

PILLAR_OWNER: Final = "pillar-owner"


def execute(tx: Transaction, scope: Scope, pillar: Pillar, todo: MissionTodo, reason: str) -> Run:
    """The run in which the pillar's owner works on it; it says so in the TODO chat itself."""
    return runs.queue(
        tx,
        scope,
        kind=Kind.EXECUTE,
        conversation_id=pillar.todo_conversation_id,
        agent=PILLAR_OWNER,
        request={"todoId": todo.id, "title": todo.title},
        mission_id=todo.mission_id,
        pillar_id=todo.pillar_id,
        todo_id=todo.id,
        reason=reason,
    )


def under_way(tx: Transaction, todo: MissionTodo) -> bool:
    """Whether a run works on it, or is going to."""
    return any(run.status in OPEN for run in run_records.found(tx, run_records.OF_TODO, todo_id=todo.id))
