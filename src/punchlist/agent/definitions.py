"""Agents: who they are, what they may call, how far they may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from punchlist.agent.continuation import Limits
from punchlist.agent.prompts import CODER, RESEARCHER, SUPERVISOR, WRITER

PLAN_TOOLS: Final = ("create_todo", "list_todo", "start_todo", "complete_todo")
READING: Final = ("read_file", "list_directory", "find_files", "search_text")
HISTORY: Final = 10
COMPACT_AFTER: Final = 50
REMIND_AFTER: Final = 10


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    name: str
    prompt: str
    tools: tuple[str, ...] = ("*",)
    """Names or patterns of the tools it has."""
    model: str | None = None
    """None for the one that the run was started with."""
    todo_driven: bool = False
    check_interval: float = 0.0
    """Seconds between two continuations."""
    limits: Limits = field(default_factory=Limits)
    delegates: bool = False
    history: int = HISTORY
    compact_after: int = COMPACT_AFTER
    remind_after: int | None = REMIND_AFTER

    def may_call(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)


_WORK: Final = (*READING, "write_file", "edit_file", "run_command", "TodoWrite", "*__*")

BUILT_IN: Final = {
    agent.name: agent
    for agent in (
        AgentDefinition("supervisor", SUPERVISOR, (*_WORK, *PLAN_TOOLS, "delegate"), todo_driven=True, delegates=True),
        AgentDefinition("researcher", RESEARCHER, (*READING, "TodoWrite", "*__*")),
        AgentDefinition("coder", CODER, _WORK, todo_driven=True),
        AgentDefinition("writer", WRITER, (*READING, "write_file", "edit_file", "TodoWrite")),
    )
}
