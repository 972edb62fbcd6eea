"""Commands that only the user may run: an agent cannot answer, trust, install or change rules for the user.

A command is refused if it runs inside an agent's tool call. The evidence: the mark that our commands carry, variables
that agents set, and the parent processes, which keep their mark when a command clears its own environment (`env -i`).
A process that also leaves its parents behind (a double fork) is not found, except in the sandbox, which keeps it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from punchlist.errors import NotAllowed
from punchlist.kernel.parent_processes import ParentProcess, ancestors
from punchlist.kernel.processes import MARK_VARIABLE

AGENT_VARIABLES: Final = (
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)
"""Variables that agents set for the commands that they run."""
_RUNS_AGENTS: Final = frozenset(("run", "worker", "serve", "tools", "demo"))


def refuse_for_agents(action: str) -> None:
    """Raise if this command runs inside an agent's tool call. The attempt is logged."""
    evidence = agent_evidence()
    if evidence is None:
        return
    from punchlist.integrations.hook_log import write_log

    write_log(Path.cwd(), os.environ, f"refused: `punchlist {action}` inside an agent's tool call ({evidence})")
    raise NotAllowed(
        f"`punchlist {action}` is for you, not for an agent, and it runs inside an agent's tool call ({evidence}). "
        "Run it in a terminal of your own."
    )


def refuse_looser_mode_for_agents(mode: str | None) -> None:
    """An agent cannot start another agent that asks less often."""
    if mode in {"auto-edit", "yolo"}:
        refuse_for_agents(f"--mode {mode}")


def agent_evidence() -> str | None:
    """Why this process belongs to an agent's tool call; None if it does not."""
    for name in (MARK_VARIABLE, *AGENT_VARIABLES):
        if os.environ.get(name):
            return f"{name} is set"
    above = ancestors()
    for parent in above:
        if _has_mark(parent.pid):
            return f"its parent process {parent.pid} is a tool call"
        if _is_our_agent(parent):
            return f"its parent process {parent.pid} runs an agent"
    return _registered_agent(above)


def _has_mark(pid: int) -> bool:
    """Whether a process was started with the mark of a tool call, whatever it did to its variables since."""
    try:
        started_with = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    mark = f"{MARK_VARIABLE}=".encode()
    return started_with.startswith(mark) or b"\0" + mark in started_with


def _is_our_agent(parent: ParentProcess) -> bool:
    for at, word in enumerate(parent.command[:-1]):
        program = word == "punchlist" or (word.endswith("/punchlist") and at < 3)
        module = word == "-m" and parent.command[at + 1] == "punchlist"
        following = parent.command[at + 2 : at + 3] if module else parent.command[at + 1 : at + 2] if program else ()
        if _RUNS_AGENTS.intersection(following):
            return True
    return False


def _registered_agent(above: list[ParentProcess]) -> str | None:
    """A parent process that is a third-party agent with a session in this project."""
    from punchlist.config import load
    from punchlist.host_sessions import HostSessions

    pid = HostSessions(load(), os.environ).agent_among(above)
    return None if pid is None else f"its parent process {pid} is an agent with a session here"
