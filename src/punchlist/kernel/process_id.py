"""Which process has something in hand, and whether it still lives."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


@cache
def _started(pid: int) -> str:
    """When a process began, in a form that tells it from a later one with the same number."""
    try:
        # The name in brackets may hold blanks and brackets; what follows the last one does not.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def current_process() -> str:
    return process_identity(os.getpid())


def process_identity(pid: int) -> str:
    """What a process of this machine is called, so that `lives` knows it from a later one with the same number."""
    return f"{socket.gethostname()}:{pid}:{_started(pid)}"


def is_running(process: str) -> bool | None:
    """Whether a process that called itself so still runs; None when that cannot be known from here."""
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
