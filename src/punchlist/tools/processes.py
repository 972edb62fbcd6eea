"""Programs run for a call, and the certainty that they and all they started are gone afterwards.

A program gets a session of its own and a mark in its environment. Its children inherit both; one
that leaves the session still carries the mark. (One that also clears its environment gets away.)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

MARK: Final = "PUNCHLIST_CALL"
PATIENCE: Final = 0.25
"""Seconds between asking programs to end and ending them."""
_LOOK: Final = 0.01
_FRESH: Final = 0.02
"""Seconds for which one look at all processes serves everybody: a hundred calls may end at once."""


class Running(NamedTuple):
    pid: int
    group: int
    mark: str
    name: str


class _Table:
    """All processes of ours and of this user that run, as of a moment ago."""

    def __init__(self) -> None:
        self._taken = 0.0
        self._found: list[Running] = []

    def look(self) -> list[Running]:
        if time.monotonic() - self._taken > _FRESH:
            self._found = [one for entry in os.listdir("/proc") if entry.isdigit() and (one := _read(int(entry)))]
            self._taken = time.monotonic()
        return self._found


_TABLE: Final = _Table()


def _read(pid: int) -> Running | None:
    try:
        folder = Path(f"/proc/{pid}")
        name, _, rest = (folder / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
        state, _, group = rest.split()[:3]
        if state in "ZX":
            return None
        environment = (folder / "environ").read_bytes()
    except (OSError, ValueError):
        return None
    at = environment.find(f"{MARK}=".encode())
    found = at >= 0 and (at == 0 or environment[at - 1] == 0)
    mark = environment[at + len(MARK) + 1 :].partition(b"\x00")[0].decode(errors="replace") if found else ""
    return Running(pid, int(group), mark, name)


def still_running(mark: str, group: int | None = None) -> list[Running]:
    """The processes of a call that are still there."""
    if not os.path.isdir("/proc/self"):
        return []
    return [one for one in _TABLE.look() if one.pid != os.getpid() and (one.mark == mark or one.group == group)]


async def end_all(mark: str, group: int | None, patience: float = PATIENCE) -> None:
    """End a call's processes: asked first, then made to."""
    await _send(mark, group, signal.SIGTERM)
    until = time.monotonic() + patience
    while time.monotonic() < until and _alive(mark, group):
        await asyncio.sleep(_LOOK)
    # Again and again, since a program may start another between our look and our signal.
    for _ in range(50):
        if not _alive(mark, group):
            return
        await _send(mark, group, signal.SIGKILL)
        await asyncio.sleep(_LOOK)


def _alive(mark: str, group: int | None) -> bool:
    if os.path.isdir("/proc/self"):
        return bool(still_running(mark, group))
    try:
        if group is not None:
            os.killpg(group, 0)
            return True
    except OSError:
        pass
    return False


async def _send(mark: str, group: int | None, number: signal.Signals) -> None:
    if group is not None:
        with contextlib.suppress(OSError):
            os.killpg(group, number)
    _kill((one.pid for one in still_running(mark, group) if one.group != group), number)


def _kill(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
