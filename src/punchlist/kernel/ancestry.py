"""Who has started us: the processes above this one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_DEEPEST: Final = 40
_SHELLS: Final = ("sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "nu", "pwsh", "busybox")
_LAUNCHERS: Final = frozenset(
    (*_SHELLS, "env", "sudo", "doas", "timeout", "time", "nice", "nohup", "setsid", "stdbuf", "uv", "uvx", "pipx")
)
"""Programs that only start others."""


class Above(NamedTuple):
    pid: int
    name: str


def ancestors() -> list[Above]:
    """The processes above this one, the nearest first; none where that cannot be known."""
    parent = _of_proc if Path("/proc/self/stat").exists() else _of_ps()
    return list(_upwards(os.getppid(), parent))


def host() -> int | None:
    """The program on whose behalf we run: the nearest above us that does more than start others."""
    return next((above.pid for above in ancestors() if above.name.lstrip("-") not in _LAUNCHERS), None)


def _upwards(pid: int, look: Callable[[int], tuple[int, str] | None]) -> Iterator[Above]:
    for _ in range(_DEEPEST):
        found = look(pid) if pid > 1 else None
        if found is None:
            return
        parent, name = found
        yield Above(pid, name)
        pid = parent


def _of_proc(pid: int) -> tuple[int, str] | None:
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The name in brackets may hold blanks and brackets; what follows the last one does not.
        head, _, rest = told.rpartition(")")
        return int(rest.split()[1]), head.partition("(")[2]
    except (OSError, ValueError, IndexError):
        return None


def _of_ps() -> Callable[[int], tuple[int, str] | None]:
    """Where there is no /proc: one look at all of them."""
    try:
        told = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,comm="], capture_output=True, text=True, timeout=2, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return lambda _: None
    rows = [line.split(None, 2) for line in told.splitlines()]
    table = {int(row[0]): (int(row[1]), Path(row[2]).name) for row in rows if len(row) == 3}
    return table.get
