"""Agent definitions: prompt, tools, model and limits; the built-in agents; overrides by flags and environment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from punchlist.agent.continuation import Limits
from punchlist.agent.prompts import CODER, MISSION_LEAD, PILLAR_OWNER, RESEARCHER, SUPERVISOR, WRITER
from punchlist.kernel.events import Role

PLAN_TOOLS: Final = ("create_todo", "list_todo", "start_todo", "complete_todo", "wait_todo")
OWN_LIST_TOOLS: Final = ("create_todo", "start_todo", "complete_todo")
"""Plan tools of a worker that keeps a list of its own."""
CHECKLIST_TOOL: Final = "TodoWrite"
MISSION_TOOLS: Final = ("mission_todo_create", "mission_todo_update", "mission_todo_list")
COMPLETE_TOOL: Final = "mission_todo_complete"
RECOMMENDATION_TOOLS: Final = ("mission_recommend", "mission_recommendation_list", "mission_recommendation_decide")
"""Each role gets its own of these."""
STRATEGY_TOOL: Final = "mission_strategy"
LEAD: Final = "mission-lead"
OWNER: Final = "pillar-owner"
DELEGATE: Final = "delegate"
SUPERVISOR_TOOLS: Final = (*PLAN_TOOLS, DELEGATE)
"""Tools of agents that delegate."""
READ_TOOLS: Final = ("read_file", "list_directory", "find_files", "search_text")
HISTORY: Final = 10
COMPACT_AFTER: Final = 50
COMPACT_AT: Final = 0.7
REMIND_AFTER: Final = 10
DEPTH: Final = 1
LISTS: Final = ("plan", "checklist", "both")
"""The kinds of list that an agent can have (T13)."""
STRATEGIES: Final = ("loop", "drive")


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    name: str
    prompt: str
    tools: tuple[str, ...] = ("*",)
    """Names or patterns."""
    description: str = ""
    """One line for people, and for a supervisor that chooses a worker."""
    model: str | None = None
    """None for the model of the run."""
    fallback: str | None = None
    """The model to use after the first one has failed."""
    lists: str = "both"
    """The lists it may use, one of `LISTS`; limits `tools`."""
    strategy: str = "loop"
    """One of `STRATEGIES`: the agent works on its list, or the loop gives it one item at a time (V5)."""
    verify: bool = True
    """Completed items need evidence, and their checks are run (V1, V2)."""
    judge_model: str | None = None
    """The model that judges goals; None for the agent's own."""
    todo_driven: bool = False
    check_interval: float = 0.0
    """Seconds before a continuation."""
    limits: Limits = field(default_factory=Limits)
    delegates: bool = False
    """May delegate to workers. An agent that may not has no plan either (T13)."""
    delegation_depth: int = DEPTH
    """With 1, its workers have no workers."""
    history: int = HISTORY
    """Messages of earlier turns in its context."""
    compact_after: int = COMPACT_AFTER
    project_instructions: bool = True
    """Reads the project's AGENTS.md, CLAUDE.md or GEMINI.md, if the user has trusted it."""
    context_window: int | None = None
    """Tokens of the context window of its model; None for what is known about the model."""
    temperature: float | None = None
    """Of its model; None for the model's default, and 0.2 for models on this machine."""
    compact_at: float = COMPACT_AT
    """The share of the context window at which older messages become a summary."""
    remind_after: int | None = REMIND_AFTER
    """Model requests without a change of the list before a reminder; None for no reminders."""
    role: Role = Role.SUPERVISOR
    """Its role when it is not a worker."""

    def may_call(self, tool: str) -> bool:
        if tool in SUPERVISOR_TOOLS and not self.delegates:
            return False
        if (tool in PLAN_TOOLS and self.lists == "checklist") or (tool == CHECKLIST_TOOL and self.lists == "plan"):
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
    stall_after: int | None = None,
    lists: str | None = None,
    strategy: str | None = None,
    context_window: int | None = None,
) -> AgentDefinition:
    """The definition changed by flags and environment; None leaves a value unchanged."""
    limits: dict[str, Any] = {
        "continuations": continuations,
        "tokens": tokens,
        "seconds": seconds,
        "cost": cost,
        "stall_after": stall_after,
        # A limit given by flag holds with and without a plan (T9).
        "base_iterations": iterations,
        "max_iterations": iterations,
    }
    own: dict[str, Any] = {
        "model": model,
        "todo_driven": continues,
        "lists": lists,
        "strategy": strategy,
        "context_window": context_window,
    }
    return replace(
        agent,
        limits=replace(agent.limits, **{name: value for name, value in limits.items() if value is not None}),
        **{name: value for name, value in own.items() if value is not None},
    )


def cap_iterations(limits: Limits, iterations: int) -> Limits:
    """Limit the model requests of a turn to `iterations`."""
    return replace(limits, base_iterations=min(limits.base_iterations, iterations), max_iterations=iterations)


_WORK_TOOLS: Final = (*READ_TOOLS, "write_file", "edit_file", "run_command", CHECKLIST_TOOL, "*__*")

_MISSIONS: Final = {
    agent.name: agent
    for agent in (
        AgentDefinition(
            LEAD,
            MISSION_LEAD,
            (*READ_TOOLS, *MISSION_TOOLS, *RECOMMENDATION_TOOLS, STRATEGY_TOOL, COMPLETE_TOOL, *SUPERVISOR_TOOLS),
            "leads a mission: decides what is worked on, reviews and completes",
            todo_driven=True,
            delegates=True,
            # Their requests are todos of a mission already.
            remind_after=None,
            lists="plan",
            role=Role.LEAD,
        ),
        AgentDefinition(
            OWNER,
            PILLAR_OWNER,
            (*_WORK_TOOLS, *MISSION_TOOLS, *RECOMMENDATION_TOOLS, *SUPERVISOR_TOOLS),
            "owns a pillar of a mission: plans its todos and works on them",
            todo_driven=True,
            delegates=True,
            remind_after=None,
            lists="plan",
            role=Role.OWNER,
        ),
    )
}
TOP_LEVEL_AGENTS: Final = ("supervisor", *_MISSIONS)
"""Agents that are never workers."""

BUILT_IN: Final = {
    agent.name: agent
    for agent in (
        AgentDefinition(
            "supervisor",
            SUPERVISOR,
            (*_WORK_TOOLS, *SUPERVISOR_TOOLS),
            "takes a request, plans it and gets it done",
            lists="plan",
            todo_driven=True,
            delegates=True,
        ),
        AgentDefinition(
            "researcher",
            RESEARCHER,
            (*READ_TOOLS, CHECKLIST_TOOL, "*__*"),
            "finds information by reading and searching; changes nothing",
        ),
        AgentDefinition(
            "coder",
            CODER,
            _WORK_TOOLS,
            "changes code and runs checks to show that it works",
            lists="checklist",
            todo_driven=True,
        ),
        AgentDefinition(
            "writer",
            WRITER,
            (*READ_TOOLS, "write_file", "edit_file", CHECKLIST_TOOL),
            "writes and edits texts",
        ),
    )
} | _MISSIONS
