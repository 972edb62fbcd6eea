"""Processes of this machine: the identity of one, whether it still runs, and the program that started this one.

Of the programs above this one, such as an agent, those that only launch others are skipped: shells, shell scripts of
any name, known runners, and wrappers that pass their own arguments on. An unknown runner that does not do so counts as
a program.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_MAX_DEPTH: Final = 40
_SHELLS: Final = ("sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "nu", "pwsh", "busybox")
_RUNNERS: Final = ("env", "sudo", "doas", "timeout", "time", "nice", "nohup", "setsid", "stdbuf", "uv", "uvx", "pipx")
_LAUNCHERS: Final = frozenset((*_SHELLS, *_RUNNERS, "punchlist"))
"""Programs that only launch others, and our own launcher script."""


@cache
def _started(pid: int) -> str:
    return start_time(pid)


def start_time(pid: int) -> str:
    """The start time of a process, which distinguishes it from a later one with the same pid."""
    try:
        # The name in parentheses may contain blanks and parentheses; the fields after the last one do not.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def current_process() -> str:
    return process_identity(os.getpid())


def process_identity(pid: int) -> str:
    """The identity of a process on this machine, for `is_running`."""
    return f"{socket.gethostname()}:{pid}:{_started(pid)}"


def is_running(process: str) -> bool | None:
    """Whether a process with this identity still runs; None if it ran on another machine."""
    host, _, rest = process.rpartition(":")[0].rpartition(":")
    started = process.rpartition(":")[2]
    if host != socket.gethostname() or not rest.isdigit():
        return None
    pid = int(rest)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    _started.cache_clear()
    return not started or _started(pid) == started


# --- the programs above this one --------------------------------------------------------------------------


class ParentProcess(NamedTuple):
    pid: int
    names: frozenset[str]
    """The process name and the name of its executable: for a script, its own name and the shell."""
    command: tuple[str, ...]
    terminal: str = ""
    """The controlling terminal; empty for background processes and terminal emulators."""


ReadProcess = Callable[[int], tuple[int, ParentProcess] | None]
"""Gives the parent pid and the description of a process."""


def ancestors() -> list[ParentProcess]:
    """The ancestors of this process, nearest first; empty if they cannot be determined."""
    parent = _of_proc if Path("/proc/self/stat").exists() else _of_ps()
    return list(_upwards(os.getppid(), parent))


def host_processes() -> list[ParentProcess]:
    """The ancestors that are not launchers. This process works for the first."""
    arguments = tuple(sys.argv[1:])
    return [above for above in ancestors() if not above.names & _LAUNCHERS and not _passes_on(above, arguments)]


def _passes_on(above: ParentProcess, arguments: tuple[str, ...]) -> bool:
    """Whether the process was called with the arguments of this one."""
    return bool(arguments) and above.command[-len(arguments) :] == arguments


def _upwards(pid: int, read: ReadProcess) -> Iterator[ParentProcess]:
    for _ in range(_MAX_DEPTH):
        found = read(pid) if pid > 1 else None
        if found is None:
            return
        pid, above = found
        yield above


def _of_proc(pid: int) -> tuple[int, ParentProcess] | None:
    folder = Path(f"/proc/{pid}")
    try:
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        # The name in parentheses may contain blanks and parentheses; the fields after the last one do not.
        head, _, rest = stat.rpartition(")")
        parts, names = rest.split(), {head.partition("(")[2]}
        parent, terminal = int(parts[1]), parts[4] if parts[4] != "0" else ""
    except (OSError, ValueError, IndexError):
        return None
    command: tuple[str, ...] = ()
    # Not readable for processes of other users.
    with suppress(OSError):
        command = tuple(os.fsdecode((folder / "cmdline").read_bytes()).split("\0")[:-1])
    with suppress(OSError):
        names.add(Path(os.readlink(folder / "exe").removesuffix(" (deleted)")).name)
    return parent, ParentProcess(pid, frozenset(names), command, terminal)


def _of_ps() -> ReadProcess:
    """Without /proc: one call of `ps`, which shows a script as an argument of its shell."""
    try:
        output = subprocess.run(
            ["ps", "-axww", "-o", "pid=,ppid=,tty=,args="], capture_output=True, errors="replace", timeout=2, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return lambda _: None
    table: dict[int, tuple[int, ParentProcess]] = {}
    for words in (line.split() for line in output.splitlines()):
        if len(words) > 3 and words[0].isdecimal() and words[1].isdecimal():
            pid, parent, terminal, *command = words
            # A login shell has a dash before its name.
            names = frozenset({Path(command[0].lstrip("-")).name})
            table[int(pid)] = int(parent), ParentProcess(int(pid), names, tuple(command), terminal.strip("?-"))
    return table.get
