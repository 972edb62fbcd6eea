"""Agents: who they are, what they may call, how far they may go."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from punchlist.agent.continuation import Limits
from punchlist.agent.prompts import CODER, MISSION_LEAD, PILLAR_OWNER, RESEARCHER, SUPERVISOR, WRITER
from punchlist.kernel.actors import Role

PLAN_TOOLS: Final = ("create_todo", "list_todo", "start_todo", "complete_todo", "wait_todo")
MISSION_TOOLS: Final = ("mission_todo_create", "mission_todo_update", "mission_todo_list")
COMPLETE_TOOL: Final = "mission_todo_complete"
LEAD: Final = "mission-lead"
OWNER: Final = "pillar-owner"
DELEGATE: Final = "delegate"
SUPERVISOR_TOOLS: Final = (*PLAN_TOOLS, DELEGATE)
"""What only an agent that delegates has."""
READ_TOOLS: Final = ("read_file", "list_directory", "find_files", "search_text")
HISTORY: Final = 10
COMPACT_AFTER: Final = 50
REMIND_AFTER: Final = 10
DEPTH: Final = 1


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    name: str
    prompt: str
    tools: tuple[str, ...] = ("*",)
    """Names or patterns of the tools it has."""
    description: str = ""
    """One line for those who choose among agents: people, and a supervisor among its workers."""
    model: str | None = None
    """None for the one that the run was started with."""
    fallback: str | None = None
    """The model to go on with when its own does not answer."""
    todo_driven: bool = False
    check_interval: float = 0.0
    """Seconds between two continuations."""
    limits: Limits = field(default_factory=Limits)
    delegates: bool = False
    """It may give work to others; one that may not has no plan either (T13)."""
    delegation_depth: int = DEPTH
    """How deep its delegation goes: with 1, its workers have no workers."""
    history: int = HISTORY
    """Messages of earlier turns that it sees."""
    compact_after: int = COMPACT_AFTER
    remind_after: int | None = REMIND_AFTER
    """Model turns without a change of the checklist; None for no reminders."""
    role: Role = Role.SUPERVISOR
    """As whom it acts when it is nobody's worker."""

    def may_call(self, tool: str) -> bool:
        if tool in SUPERVISOR_TOOLS and not self.delegates:
            return False
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)


def with_overrides(
    agent: AgentDefinition,
    *,
    model: str | None = None,
    continues: bool | None = None,
    continuations: int | None = None,
    iterations: int | None = None,
    tokens: int | None = None,
    seconds: float | None = None,
    cost: float | None = None,
) -> AgentDefinition:
    """As flags and environment want it; None where they say nothing."""
    limits = cap_iterations(agent.limits, iterations) if iterations is not None else agent.limits
    budget: dict[str, Any] = {"continuations": continuations, "tokens": tokens, "seconds": seconds, "cost": cost}
    return replace(
        agent,
        model=agent.model if model is None else model,
        todo_driven=agent.todo_driven if continues is None else continues,
        limits=replace(limits, **{name: value for name, value in budget.items() if value is not None}),
    )


def cap_iterations(limits: Limits, iterations: int) -> Limits:
    """So many model calls and no more, whatever a turn is given to begin with."""
    return replace(limits, base_iterations=min(limits.base_iterations, iterations), max_iterations=iterations)


_WORK: Final = (*READ_TOOLS, "write_file", "edit_file", "run_command", "TodoWrite", "*__*")

_MISSIONS: Final = {
    agent.name: agent
    for agent in (
        AgentDefinition(
            LEAD,
            MISSION_LEAD,
            (*READ_TOOLS, *MISSION_TOOLS, COMPLETE_TOOL, *SUPERVISOR_TOOLS),
            "leads a mission: decides what is worked on, reviews, completes",
            todo_driven=True,
            delegates=True,
            # What they are asked is a task of a list already.
            remind_after=None,
            role=Role.LEAD,
        ),
        AgentDefinition(
            OWNER,
            PILLAR_OWNER,
            (*_WORK, *MISSION_TOOLS, *SUPERVISOR_TOOLS),
            "owns a pillar of a mission: plans for it, and does its todos",
            todo_driven=True,
            delegates=True,
            remind_after=None,
            role=Role.OWNER,
        ),
    )
}
TOP_LEVEL_AGENTS: Final = ("supervisor", *_MISSIONS)
"""Nobody's workers."""

BUILT_IN: Final = {
    agent.name: agent
    for agent in (
        AgentDefinition(
            "supervisor",
            SUPERVISOR,
            (*_WORK, *SUPERVISOR_TOOLS),
            "takes a request, plans it, and sees to it that it is done",
            todo_driven=True,
            delegates=True,
        ),
        AgentDefinition(
            "researcher",
            RESEARCHER,
            (*READ_TOOLS, "TodoWrite", "*__*"),
            "finds out by reading and searching; changes nothing",
        ),
        AgentDefinition(
            "coder",
            CODER,
            _WORK,
            "changes code, and runs what shows that it works",
            todo_driven=True,
        ),
        AgentDefinition(
            "writer",
            WRITER,
            (*READ_TOOLS, "write_file", "edit_file", "TodoWrite"),
            "writes texts and edits them",
        ),
    )
} | _MISSIONS
