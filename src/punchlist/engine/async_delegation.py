"""`delegate` with async: a run is queued, and nobody waits for it (M9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from punchlist.conversations.model import Scope
from punchlist.conversations.service import LONGEST_TITLE, Conversations
from punchlist.errors import IllegalTransition
from punchlist.kernel.text import excerpt
from punchlist.missions.repository import lock_mission
from punchlist.runs import repository as run_records
from punchlist.runs import service as runs
from punchlist.runs.model import RunKind
from punchlist.storage.async_bridge import bridge
from punchlist.storage.store import Store, Transaction

if TYPE_CHECKING:
    from punchlist.engine.worker_services import AgentPosition


MOST: Final = 20
"""Errands of one mission at a time."""


def _check_number(tx: Transaction, mission_id: str, id: str) -> None:
    others = run_records.select(tx, run_records.OPEN_BY_KIND, mission_id=mission_id, kind=RunKind.DELEGATE.value)
    if len(others) >= MOST and id not in [one.id for one in others]:
        raise IllegalTransition(
            f"{len(others)} missions are with workers already, as many as there may be. Wait for their results."
        )


class QueuedDelegation:
    def __init__(self, store: Store, conversations: Conversations, post: AgentPosition, scope: Scope) -> None:
        self._store = store
        self._conversations = conversations
        self._post = post
        self._scope = scope

    async def submit(self, id: str, worker: str, mission: str, todo_id: str | None) -> str:
        return await bridge(self._store)(self._leave, id, worker, mission, todo_id)

    def _leave(self, id: str, worker: str, mission: str, todo_id: str | None) -> str:
        post = self._post
        # Where a pillar's work is done, its results are posted; else where it was asked for.
        origin = post.pillar.todo_conversation_id if post.pillar is not None else post.conversation_id
        with self._store.write() as tx:
            if post.mission is not None:
                lock_mission(tx, post.mission.id)
                _check_number(tx, post.mission.id, id)
            # Of its own: in the chat others may be at work meanwhile.
            there = Scope(f"run-{id}", self._scope.actor)
            title = excerpt(f"{worker}: {mission}", LONGEST_TITLE)
            about = {"channel": "run", "runId": id, "origin": origin}
            self._conversations.ensure(tx, there, title=title, metadata=about, reason="delegated, and not waited for")
            runs.enqueue(
                tx,
                self._scope,
                kind=RunKind.DELEGATE,
                conversation_id=there.conversation_id,
                agent=worker,
                request={"mission": mission, "origin": origin, "todoId": todo_id},
                mission_id=post.mission.id if post.mission else None,
                pillar_id=post.pillar.id if post.pillar else None,
                todo_id=post.todo_id,
                id=id,
            )
        return f"Run {id} is queued; its result is posted to the chat {origin}. Go on, and do not wait for it."
