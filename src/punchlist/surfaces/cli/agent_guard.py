"""Commands that only the user may run: an agent cannot answer, trust, install or change rules for the user.

A command is refused if it runs inside an agent's tool call. The evidence: the mark that our commands carry, variables
that agents set, and the parent processes, which keep their mark when a command clears its own environment (`env -i`).
A process that also leaves its parents behind (a double fork) becomes a child of the Punchlist that runs the call
(`kernel/orphans.py`, on Linux). Elsewhere, and in programs that use the library, it is found in the sandbox only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from punchlist.agent.turn_start import is_started_turn
from punchlist.errors import NotAllowed
from punchlist.kernel.process_tree import MARK_VARIABLE
from punchlist.kernel.processes import ParentProcess, ancestors

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
_STARTED_BY_PERSON: Final = frozenset(("chat",))
"""Commands whose child processes can be a person's own: turns, and the editor. Calls of others carry the mark or have
another of our commands between."""
_INTERPRETER: Final = re.compile(r"(python|pypy)[^/]*")
_OWN_SCRIPT: Final = re.compile(r"(?:.*/)?punchlist(?:\.exe|/__main__\.py)?")
_VALUED_OPTION: Final = re.compile(r"-[^-cmWX]*([cmWX])(.*)")


def refuse_for_agents(action: str) -> None:
    """Raise if this command runs inside an agent's tool call. The attempt is logged."""
    _refuse(action, agent_evidence())


def refuse_in_tool_calls(action: str) -> None:
    """As `refuse_for_agents`, for what third-party agents start for themselves, such as MCP servers: only a tool call
    of our own agents is refused."""
    marked = next((parent.pid for parent in ancestors() if _has_mark(parent.pid)), None)
    if os.environ.get(MARK_VARIABLE):
        _refuse(action, f"{MARK_VARIABLE} is set")
    elif marked is not None:
        _refuse(action, f"its parent process {marked} is a tool call")


def _refuse(action: str, evidence: str | None) -> None:
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
    for place, parent in enumerate(above):
        if _has_mark(parent.pid):
            return f"its parent process {parent.pid} is a tool call"
        if _is_our_agent(parent) and not (place == 0 and is_started_turn(parent.pid)):
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
    """Whether a process is one of our commands, which can run tool calls. A wrapper such as `timeout 60 punchlist run`
    is none: it runs no call itself."""
    arguments = own_arguments(parent.command)
    return bool(arguments) and not arguments[0].startswith("-") and arguments[0] not in _STARTED_BY_PERSON


def own_arguments(command: Sequence[str]) -> Sequence[str]:
    """The arguments of `punchlist`, if a process with this command line is a Python that runs it; else none."""
    if not command or not _INTERPRETER.match(command[0].rpartition("/")[2].lower()):
        return ()
    rest = list(command[1:])
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            return rest if _OWN_SCRIPT.fullmatch(word) else ()
        if valued := _VALUED_OPTION.fullmatch(word):
            letter, value = valued[1], valued[2] or (rest.pop(0) if rest else "")
            if letter in "cm":
                return rest if (letter, value) == ("m", "punchlist") else ()
    return ()


def _registered_agent(above: list[ParentProcess]) -> str | None:
    """A parent process that is a third-party agent with a session in this project."""
    from punchlist.config import load
    from punchlist.host_sessions import HostSessions

    pid = HostSessions(load(), os.environ).agent_among(above)
    return None if pid is None else f"its parent process {pid} is an agent with a session here"
