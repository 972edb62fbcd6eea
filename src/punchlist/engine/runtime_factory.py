"""Build the agent runtime for a turn of a run, with the queue for delegations that it does not wait for (M9)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from punchlist.agent.definitions import COMPLETE_TOOL, AgentDefinition
from punchlist.agent.live_output import LiveOutput
from punchlist.agent.runtime import AgentRuntime
from punchlist.conversations.model import NewMessage, Scope, TurnScope
from punchlist.conversations.service import MAX_TITLE_LENGTH, Conversations
from punchlist.engine.budgeted_model import BudgetedModel, price_problem
from punchlist.errors import IllegalTransition, PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.text import excerpt
from punchlist.missions.budgets.repository import SpendPlace
from punchlist.missions.budgets.service import Budgets
from punchlist.missions.config.policy import limits_of
from punchlist.missions.model import Mission, MissionScope, Pillar
from punchlist.missions.planning.mission_state import bounded_state, mission_state
from punchlist.missions.recommendations.tools import recommendation_tools
from punchlist.missions.repository import lock_mission
from punchlist.missions.strategy_tools import strategy_tool
from punchlist.missions.todos.tools import mission_tools
from punchlist.models.model import Model
from punchlist.runs import repository as run_repository
from punchlist.runs import service as runs
from punchlist.runs.model import RunKind
from punchlist.storage.async_bridge import make_bridge, run_in_thread
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls.policy import Mode
from punchlist.toolcalls.tool import AgentTool, list_tool

if TYPE_CHECKING:
    from punchlist.app import Services


@dataclass(frozen=True, slots=True)
class TurnTask:
    """One turn that a run takes: which agent, with which request, in which chat."""

    key: str
    """Prefix of its step names in the durable engine."""
    agent: AgentDefinition
    request: NewMessage
    conversation_id: str
    mission: Mission | None = None
    pillar: Pillar | None = None
    todo_id: str | None = None
    remark: Callable[[], str] | None = None
    charged_to: SpendPlace | None = None
    """Whose budget pays, if it is not that of the agent's own place: a review belongs to the todo."""

    @property
    def is_member(self) -> bool:
        """Whether the agent works in a chat of the mission. A worker has a conversation and no mission tools of its
        own, but the limits and directives of the mission hold for it too."""
        return self.mission is not None and self.agent.role is not Role.WORKER

    def spend_place(self, mission: Mission) -> SpendPlace:
        pillar_id = self.pillar.id if self.pillar is not None else None
        return self.charged_to or SpendPlace(mission.id, self.todo_id, pillar_id)

    @property
    def scope(self) -> Scope:
        return Scope(self.conversation_id, Actor(self.agent.role, self.agent.name))


class RuntimeFactory:
    def __init__(self, services: Services, model_for: Callable[[AgentDefinition], Model], mode: Mode | None) -> None:
        self._services = services
        self._model_for = model_for
        self._mode = mode
        self.live = LiveOutput(services.store)

    def build(self, task: TurnTask, suspend: Callable[[str], None] = lambda _: None) -> AgentRuntime:
        """`suspend` interrupts the turn when a budget is reached."""
        services = self._services
        return AgentRuntime(
            services.site(task.scope, services.workspace),
            services.conversations,
            services.plans,
            services.checklists,
            partial(self._model, task, suspend),
            self._mode_of(task),
            services.agents.definitions,
            on_event=services.observed(self.live.listener(task.conversation_id)),
            telemetry=services.telemetry,
            top_level_tools=lambda turn: self._mission_tools(task, turn),
            # Results of asynchronous delegations are posted to a mission's chat.
            async_delegation=QueuedDelegation(services.store, services.conversations, task) if task.is_member else None,
            extra_state=lambda: self._state(task),
            shared_conversation=task.is_member,
        )

    def price_problems(self) -> list[str]:
        """Cost limits of missions that cannot be enforced: no request of theirs will be sent."""
        missions = [mission for mission in self._services.missions.list() if mission.status == "active"]
        # Prices are looked up only if there are limits.
        if not any(limits_of(each).cost_per_day or limits_of(each).cost_per_todo for each in missions):
            return []
        definitions = self._services.agents.definitions
        models = {model.name: model for agent in definitions.values() if (model := self._model_or_none(agent))}
        found = (price_problem(model, mission) for mission in missions for model in models.values())
        return [problem for problem in found if problem is not None]

    def _model_or_none(self, agent: AgentDefinition) -> Model | None:
        """An agent whose model cannot be used says so when it is needed."""
        with suppress(PunchlistError):
            return self._model_for(agent)
        return None

    def _model(self, task: TurnTask, suspend: Callable[[str], None], agent: AgentDefinition) -> Model:
        model, store = self._model_for(agent), self._services.store
        if task.mission is None:
            return model
        place = task.spend_place(task.mission)
        return BudgetedModel(model, Budgets(store), make_bridge(store), task.mission, place, suspend)

    def _mode_of(self, task: TurnTask) -> Mode | None:
        """The stricter of the worker's mode and the mission's."""
        limit = limits_of(task.mission).mode if task.mission is not None else None
        if limit is None:
            return self._mode
        own = self._mode or self._services.tool_settings.policy.mode or Mode.DEFAULT
        return min(own, limit, key=list(Mode).index)

    def _state(self, task: TurnTask) -> str:
        """The state of the mission and the task's own remark, for each model request."""
        mission = ""
        if task.mission is not None:
            mission = mission_state(
                self._services.store, task.mission, task.pillar, decides=task.agent.role is Role.LEAD
            )
        return bounded_state(mission, task.remark() if task.remark is not None else "")

    def _mission_tools(self, task: TurnTask, turn: TurnScope) -> list[AgentTool]:
        """The mission tools of the agent's role, bound to its mission and, for an owner, to its pillar."""
        if task.mission is None or not task.is_member:
            return []
        services, pillar = self._services, task.pillar.slug if task.pillar is not None else None
        scope = MissionScope(turn.conversation_id, turn.actor, task.mission.slug, pillar)
        on_bridge = make_bridge(services.store)
        tools = [
            *mission_tools(lambda: services.mission_todos, lambda: services.checks),
            *recommendation_tools(lambda: services.recommendations),
            strategy_tool(lambda: services.strategies),
        ]
        # Completing a todo may run its check, which takes time: always in a thread.
        return [
            list_tool(tool, scope, run_in_thread if tool.name == COMPLETE_TOOL else on_bridge)
            for tool in tools
            if turn.actor.role in tool.roles
        ]


MAX_DELEGATIONS: Final = 20
"""Open asynchronous delegations of one mission."""


def _check_limit(tx: Transaction, mission_id: str, id: str) -> None:
    open_ids = [run.id for run in run_repository.open_of_kind(tx, mission_id, RunKind.DELEGATE.value)]
    if len(open_ids) >= MAX_DELEGATIONS and id not in open_ids:
        raise IllegalTransition(
            f"Limit of {MAX_DELEGATIONS} background delegations reached. Wait for the results of earlier ones."
        )


class QueuedDelegation:
    """`delegate` with `async`: queue a run for the worker agent and continue without its result (M9)."""

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
