"""`delegate` with `async`: queue a run for the worker agent and continue without its result (M9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from punchlist.conversations.model import Scope
from punchlist.conversations.service import MAX_TITLE_LENGTH, Conversations
from punchlist.errors import IllegalTransition
from punchlist.kernel.text import excerpt
from punchlist.missions.repository import lock_mission
from punchlist.runs import repository as run_repository
from punchlist.runs import service as runs
from punchlist.runs.model import RunKind
from punchlist.storage.async_bridge import make_bridge
from punchlist.storage.store import Store, Transaction

if TYPE_CHECKING:
    from punchlist.engine.runtime_factory import TurnTask

MAX_DELEGATIONS: Final = 20
"""Open asynchronous delegations of one mission."""


def _check_limit(tx: Transaction, mission_id: str, id: str) -> None:
    open_ids = [run.id for run in run_repository.open_of_kind(tx, mission_id, RunKind.DELEGATE)]
    if len(open_ids) >= MAX_DELEGATIONS and id not in open_ids:
        raise IllegalTransition(
            f"Limit of {MAX_DELEGATIONS} background delegations reached. Wait for the results of earlier ones."
        )


class QueuedDelegation:
    def __init__(self, store: Store, conversations: Conversations, task: TurnTask) -> None:
        self._store = store
        self._conversations = conversations
        self._task = task

    async def submit(self, id: str, worker: str, mission: str, todo_id: str | None) -> str:
        return await make_bridge(self._store)(self._enqueue, id, worker, mission, todo_id)

    def _enqueue(self, id: str, worker: str, mission: str, todo_id: str | None) -> str:
        task = self._task
        # Results for a pillar are posted to its todo chat, others to the chat of the delegating agent.
        origin = task.pillar.todo_conversation_id if task.pillar is not None else task.conversation_id
        with self._store.write() as tx:
            if task.mission is not None:
                lock_mission(tx, task.mission.id)
                _check_limit(tx, task.mission.id, id)
            # A conversation of its own, because other agents may work in the chat meanwhile.
            scope = Scope(f"run-{id}", task.scope.actor)
            title = excerpt(f"{worker}: {mission}", MAX_TITLE_LENGTH)
            metadata = {"channel": "run", "runId": id, "origin": origin}
            self._conversations.ensure(tx, scope, title=title, metadata=metadata, reason="asynchronous delegation")
            runs.enqueue(
                tx,
                task.scope,
                kind=RunKind.DELEGATE,
                conversation_id=scope.conversation_id,
                agent=worker,
                request={"mission": mission, "origin": origin, "todoId": todo_id},
                mission_id=task.mission.id if task.mission else None,
                pillar_id=task.pillar.id if task.pillar else None,
                todo_id=task.todo_id,
                id=id,
            )
        return f"Run {id} is queued; its result will be posted to the chat {origin}. Continue without waiting for it."
