"""Names a process so that others can check whether it still runs."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


@cache
def _started(pid: int) -> str:
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
