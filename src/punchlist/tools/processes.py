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
    session: int
    mark: str
    name: str


class _Table:
    """All processes of ours and of this user that run, as of a moment ago."""

    def __init__(self) -> None:
        self._taken = 0.0
        self._found: list[Running] = []

    def look(self, since: float) -> list[Running]:
        """As they were at some moment after `since`: an older look may not know a program yet, or know it still."""
        now = time.monotonic()
        if self._taken < since or now - self._taken > _FRESH:
            self._taken = now
            self._found = _all()
        return self._found


_TABLE: Final = _Table()


def _all() -> list[Running]:
    found: list[Running] = []
    for _ in range(3):
        read = [_read(int(entry)) for entry in os.listdir("/proc") if entry.isdigit()]
        found = [one for one in read if one is not None and one.pid]
        if None not in read:
            break
        # One ended before it was looked at, and may have left a child that is not in the list: once more.
    return found


_ENDED: Final = Running(0, 0, 0, "", "")


def _read(pid: int) -> Running | None:
    """What is known of a process; None when there is no such process any more."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        state, _, group, session = rest.split()[:4]
    except (OSError, ValueError):
        return None
    if state in b"ZX":
        return _ENDED
    return Running(pid, int(group), int(session), _mark(pid), name.decode(errors="replace"))


def _mark(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        # Somebody else's, or one with more rights than we have.
        return ""
    begin = f"{MARK}=".encode()
    if begin not in environment:
        return ""
    found = (one for one in environment.split(b"\x00") if one.startswith(begin))
    return next(found, begin)[len(begin) :].decode(errors="replace")


def still_running(mark: str, group: int | None = None, since: float = 0.0) -> list[Running]:
    """The processes of a call that are still there, or were a moment ago, but not before `since`."""
    if not os.path.isdir("/proc/self"):
        return []
    return [one for one in _TABLE.look(since) if one.pid != os.getpid() and (one.mark == mark or one.session == group)]


async def end_all(mark: str, group: int | None, patience: float = PATIENCE, since: float = 0.0) -> None:
    """End a call's processes: asked first, then made to. `since` is when the first of them was started."""
    if not _alive(mark, group, since):
        return
    _send(mark, group, signal.SIGTERM)
    until = time.monotonic() + patience
    while (left := until - time.monotonic()) > 0 and _alive(mark, group, since):
        await asyncio.sleep(min(_LOOK, left))
    # Again and again, since a program may start another between our look and our signal.
    for _ in range(50):
        if not _alive(mark, group, since):
            return
        _send(mark, group, signal.SIGKILL)
        await asyncio.sleep(_LOOK)


def _alive(mark: str, group: int | None, since: float) -> bool:
    if os.path.isdir("/proc/self"):
        return bool(still_running(mark, group, since))
    try:
        if group is not None:
            os.killpg(group, 0)
            return True
    except OSError:
        pass
    return False


def _send(mark: str, group: int | None, number: signal.Signals) -> None:
    if group is not None:
        with contextlib.suppress(OSError):
            os.killpg(group, number)
    _kill((one.pid for one in still_running(mark, group) if one.group != group), number)


def _kill(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
