"""What every flow is handed, and what several of them do."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from punchlist.agent.definitions import AgentDefinition
from punchlist.conversations.model import NoticeKind
from punchlist.engine.durable import retrying_bridge
from punchlist.engine.turns import Steps, TurnSteps
from punchlist.engine.worker_services import WorkerServices
from punchlist.errors import NotFound
from punchlist.missions import repository as mission_repository
from punchlist.missions.chats.post_once import post_once
from punchlist.missions.model import Mission, MissionScope, Pillar
from punchlist.runs.model import Run
from punchlist.runs.queue import RunQueue
from punchlist.storage.async_bridge import AsyncBridge, bridge

T = TypeVar("T")
LONGEST_SAID: Final = 200_000


@dataclass(frozen=True, slots=True)
class WorkflowContext:
    premises: WorkerServices
    steps: Steps
    turns: TurnSteps
    book: RunQueue

    @property
    def aside(self) -> AsyncBridge:
        return retrying_bridge(bridge(self.premises.store))

    async def step(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self.steps.step(name, work)

    def agent(self, name: str) -> AgentDefinition:
        found = self.premises.agents.get(name)
        if found is None:
            raise NotFound(f"There is no agent {name!r} any more.")
        return found

    def scope(self, run: Run) -> MissionScope:
        return self.premises.system(run.conversation_id)

    def mission(self, run: Run) -> Mission:
        with self.premises.store.read() as tx:
            found = mission_repository.mission(tx, run.mission_id or "")
        if found is None:
            raise NotFound(f"Run {run.id} belongs to no mission.")
        return found

    def pillar(self, run: Run) -> Pillar:
        with self.premises.store.read() as tx:
            found = mission_repository.pillar(tx, run.pillar_id or "")
        if found is None:
            raise NotFound(f"Run {run.id} belongs to no pillar.")
        return found

    async def post(self, key: str, run: Run, conversation_id: str, kind: NoticeKind, content: str) -> None:
        """Say something in a chat, once."""
        shown = content if len(content) <= LONGEST_SAID else content[:LONGEST_SAID] + "\n…"

        async def post() -> None:
            await self.aside(post_once, self.premises.store, self.scope(run), conversation_id, kind.value, shown)

        await self.step(key, post)
