"""Who has started us: the processes above this one.

Some of them only start others, and are not who we work for: shells, scripts for shells whatever they are called, known
runners, and whatever has handed its own arguments on to us and stayed. A runner that does neither is taken for a
program of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_DEEPEST: Final = 40
_SHELLS: Final = ("sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "nu", "pwsh", "busybox")
_RUNNERS: Final = ("env", "sudo", "doas", "timeout", "time", "nice", "nohup", "setsid", "stdbuf", "uv", "uvx", "pipx")
_LAUNCHERS: Final = frozenset((*_SHELLS, *_RUNNERS, "punchlist"))
"""Programs that only start others, and what goes by our own name above us."""


class ParentProcess(NamedTuple):
    pid: int
    names: frozenset[str]
    """What it is called, and the program that it is: a script has a name of its own, and is its shell."""
    command: tuple[str, ...]
    terminal: str = ""
    """The one that it is run from; none for what runs in the background, and for what keeps terminals."""


Look = Callable[[int], tuple[int, ParentProcess] | None]
"""The parent of a process, and what is known of itself."""


def ancestors() -> list[ParentProcess]:
    """The processes above this one, the nearest first; none where that cannot be known."""
    parent = _of_proc if Path("/proc/self/stat").exists() else _of_ps()
    return list(_upwards(os.getppid(), parent))


def host_processes() -> list[ParentProcess]:
    """Those that do more than start others. We run on behalf of the first."""
    ours = tuple(sys.argv[1:])
    return [above for above in ancestors() if not above.names & _LAUNCHERS and not _hands_on(above, ours)]


def _hands_on(above: ParentProcess, ours: tuple[str, ...]) -> bool:
    """Whether it was called with what we were called with."""
    return bool(ours) and above.command[-len(ours) :] == ours


def _upwards(pid: int, look: Look) -> Iterator[ParentProcess]:
    for _ in range(_DEEPEST):
        found = look(pid) if pid > 1 else None
        if found is None:
            return
        pid, above = found
        yield above


def _of_proc(pid: int) -> tuple[int, ParentProcess] | None:
    folder = Path(f"/proc/{pid}")
    try:
        told = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        # The name in brackets may hold blanks and brackets; what follows the last one does not.
        head, _, rest = told.rpartition(")")
        parts, names = rest.split(), {head.partition("(")[2]}
        parent, terminal = int(parts[1]), parts[4] if parts[4] != "0" else ""
    except (OSError, ValueError, IndexError):
        return None
    command: tuple[str, ...] = ()
    # Of a process of another user, these may not be told.
    with suppress(OSError):
        command = tuple(os.fsdecode((folder / "cmdline").read_bytes()).split("\0")[:-1])
    with suppress(OSError):
        names.add(Path(os.readlink(folder / "exe").removesuffix(" (deleted)")).name)
    return parent, ParentProcess(pid, frozenset(names), command, terminal)


def _of_ps() -> Look:
    """Where there is no /proc: one look at all of them. A script is there what its shell was called with."""
    try:
        told = subprocess.run(
            ["ps", "-axww", "-o", "pid=,ppid=,tty=,args="], capture_output=True, errors="replace", timeout=2, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return lambda _: None
    table: dict[int, tuple[int, ParentProcess]] = {}
    for words in (line.split() for line in told.splitlines()):
        if len(words) > 3 and words[0].isdecimal() and words[1].isdecimal():
            pid, parent, terminal, *command = words
            # The shell of a login has a dash before its name.
            names = frozenset({Path(command[0].lstrip("-")).name})
            table[int(pid)] = int(parent), ParentProcess(int(pid), names, tuple(command), terminal.strip("?-"))
    return table.get
