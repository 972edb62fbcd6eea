"""What every workflow receives, and operations that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from punchlist.agent.definitions import AgentDefinition
from punchlist.conversations.model import NoticeKind
from punchlist.engine.durable import DurableEngine, retrying_bridge
from punchlist.engine.turns import TurnSteps
from punchlist.errors import NotFound
from punchlist.kernel.events import SYSTEM, Actor
from punchlist.missions import repository as mission_repository
from punchlist.missions.chats import post_once
from punchlist.missions.model import Mission, MissionScope, Pillar
from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run
from punchlist.runs.queue import RunQueue
from punchlist.storage.async_bridge import make_bridge
from punchlist.storage.statements import SelectOne

if TYPE_CHECKING:
    from punchlist.app import Services

T = TypeVar("T")
MAX_POST_LENGTH: Final = 200_000


class WorkflowContext:
    def __init__(self, services: Services, durable: DurableEngine, turns: TurnSteps, queue: RunQueue) -> None:
        self.services = services
        self.turns = turns
        self.queue = queue
        self.call = retrying_bridge(make_bridge(services.store))
        """Calls a synchronous service function off the event loop."""
        self._durable = durable

    async def step(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self._durable.step(name, work)

    async def wake(self, run: Run, why: str) -> bool:
        """Whether the run works, or can go on now; False while another run works in its chat."""
        return run.status is RunStatus.RUNNING or await self.call(self.queue.wake, run.id, why) is not None

    def agent(self, name: str) -> AgentDefinition:
        agent = self.services.agents.definitions.get(name)
        if agent is None:
            raise NotFound(f"Agent {name!r} is no longer defined.")
        return agent

    def scope(self, run: Run) -> MissionScope:
        return MissionScope(run.conversation_id, SYSTEM)

    async def mission(self, run: Run) -> Mission:
        return await self.call(self._find, mission_repository.mission, run.mission_id, f"Run {run.id} has no mission.")

    async def pillar(self, run: Run) -> Pillar:
        return await self.call(self._find, mission_repository.pillar, run.pillar_id, f"Run {run.id} has no pillar.")

    def _find(self, find: SelectOne[T], id: str | None, missing: str) -> T:
        with self.services.store.read() as tx:
            found = find(tx, id or "")
        if found is None:
            raise NotFound(missing)
        return found

    async def post(
        self,
        key: str,
        run: Run,
        conversation_id: str,
        kind: NoticeKind,
        content: str,
        agent: AgentDefinition | None = None,
    ) -> None:
        """Post a message to a chat, once; with `agent`, in its name."""
        scope = self.scope(run)
        if agent is not None:
            scope = replace(scope, actor=Actor(agent.role, agent.name))
        text = content if len(content) <= MAX_POST_LENGTH else content[:MAX_POST_LENGTH] + "\n…"

        async def post() -> None:
            await self.call(post_once, self.services.store, scope, conversation_id, kind, text, run.todo_id)

        await self.step(key, post)
