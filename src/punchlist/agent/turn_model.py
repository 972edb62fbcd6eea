"""Values of a turn: its request, its result, and what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from punchlist.agent.budget import Budget
from punchlist.agent.checks import PassedChecks
from punchlist.agent.completion import CompletionGate
from punchlist.agent.context import ModelContext
from punchlist.agent.continuation import OpenItem, Reason, Wait, ending_text
from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.events import EventListener, TurnStarted
from punchlist.agent.goals import GoalJudge
from punchlist.agent.item_task import ItemTask
from punchlist.agent.list_state import ListItem, ReadableLists
from punchlist.agent.transcript import TurnLog
from punchlist.agent.work_log import WorkLog
from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Fence
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import Model, Usage
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.verification.goal import Goal
from punchlist.verification.model import EvidenceCall

TryItem = Callable[[str, OpenItem], Awaitable[str | Wait | None]]


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn to run: a new one with a goal, or `goal=None` to resume an interrupted one."""

    agent: AgentDefinition
    signal: CancelSignal
    goal: str | None
    parent: str | None = None
    """The turn that delegated this one."""
    depth: int = 0
    max_depth: int | None = None
    """The delegation depth of the agent at the top."""
    budget: Budget = field(default_factory=Budget)
    message: str | None = None
    """A message from a person to an agent that resumes a turn."""
    owner_is_dead: bool = False
    """The process that owned the turn is known to be dead."""
    fence: Fence | None = None
    """Rejects writes of a process that lost the turn to another."""
    item: ItemTask | None = None
    """The only item of this turn, which works on it in a fresh context (V5)."""
    driven: AgentDefinition | None = None
    """The agent that works on the items of this turn, if the loop owns the list (V5)."""
    until: Goal | None = None
    """Acceptance criteria: the turn is completed only if they are met (V3)."""
    take_over: str | None = None
    """An earlier turn whose open items this one takes over (T14)."""
    open_checklist: bool = False
    """The session's checklist had open items when the turn began: they count, whatever tools the agent has."""
    is_planned: bool = False
    """The goal is to finish what is open already, so drive plans nothing else."""
    passed: PassedChecks = field(default_factory=PassedChecks)
    """Of this turn and everything below it."""
    left_open_on_outage: bool = False
    """The caller resumes the turn after a database outage, so the turn stays open."""

    @property
    def actor(self) -> Actor:
        return Actor(self.agent.role if self.parent is None else Role.WORKER, self.agent.name)

    @property
    def depth_limit(self) -> int:
        return self.agent.delegation_depth if self.max_depth is None else self.max_depth

    def started(self, turn_id: str, model: Model, mode: str, *, resumed: bool) -> TurnStarted:
        """The event at the start of the turn."""
        agent = self.agent
        return TurnStarted(
            agent.name,
            turn_id,
            model.name,
            self.parent,
            resumed,
            agent.limits.continuations if agent.todo_driven else None,
            str(mode),
            model.info.context_window,
            agent.limits.tokens,
            agent.limits.cost,
        )


def keeps_own_list(request: TurnRequest) -> bool:
    """Whether the agent is a worker that is driven by a list of its own (T13)."""
    return request.parent is not None and request.agent.todo_driven and request.item is None


def plan_scope(request: TurnRequest, scope: TurnScope) -> TurnScope:
    """The scope in which the agent uses the plan of its turn. A worker that keeps its own list plans its own turn."""
    if not keeps_own_list(request):
        return scope
    return replace(scope, actor=Actor(Role.SUPERVISOR, scope.actor.name))


@dataclass(frozen=True, slots=True)
class TurnResult:
    turn_id: str
    reason: Reason
    why: str
    last_text: str
    """The text of the agent's last reply that has one."""
    iterations: int
    continuations: int
    usage: Usage
    open: tuple[OpenItem, ...]
    items: tuple[ListItem, ...] = ()
    """All items of the turn's lists."""
    cost: float | None = None
    """In dollars, workers included; None if the model's price is unknown."""
    work: tuple[EvidenceCall, ...] = ()
    """The successful calls of the turn, without those of list tools."""
    model_busy: bool = False
    """It failed because the model was not available: a later attempt may succeed."""

    @property
    def ending(self) -> str:
        """How the turn ended and what is left; empty if it was completed."""
        return "" if self.reason is Reason.COMPLETED else ending_text(self.reason, self.why, self.open)

    @property
    def text(self) -> str:
        """The final message for the person, including open items (T14)."""
        return "\n\n".join(part for part in (self.last_text, self.ending) if part)


@dataclass(frozen=True, slots=True)
class TurnDeps:
    """Everything a turn needs, built once by `AgentRuntime`."""

    turn_id: str
    request: TurnRequest
    model: Model
    tools: Collection[str]
    gate: CompletionGate
    work: WorkLog
    lists: ReadableLists
    log: TurnLog
    context: ModelContext
    bridge: AsyncBridge
    folder: Path
    """The root of the workspace."""
    on_event: EventListener | None = None
    try_item: TryItem | None = None
    """Tries an item in a fresh context; returns what the agent is told, or None if the item was not finished."""
    judge: GoalJudge | None = None
    """Decides whether the goal of the turn is met."""
