"""What a program of ours has started, and the certainty that it is all gone afterwards.

A program gets a session of its own and a mark in its environment. Its children inherit both; one
that leaves the session still carries the mark. (One that also clears its environment gets away.)
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MARK_VARIABLE: Final = "PUNCHLIST_CALL"
TERM_SECONDS: Final = 0.25
"""Seconds between asking programs to end and ending them."""
_LOOK: Final = 0.01
_OF_THE_KERNEL: Final = 0x0020_0000
_ENDING: Final = 0x4
_READINGS: Final = 10
_MOMENT: Final = 0.0005
_FRESH: Final = 0.02
"""Seconds for which one look at all processes serves everybody, at least: a hundred calls may end at once."""


class ChildProcess(NamedTuple):
    pid: int
    group: int
    session: int
    mark: str
    name: str


class _ProcessTable:
    """All processes of ours and of this user that run, as of a moment ago."""

    def __init__(self) -> None:
        self._taken = 0.0
        self._fresh_until = 0.0
        self._by_mark: dict[str, list[ChildProcess]] = {}
        self._by_session: dict[int, list[ChildProcess]] = {}

    def of(self, mark: str, session: int | None, since: float) -> list[ChildProcess]:
        """As they were at some moment after `since`: an older look may not know a program yet, or know it still."""
        if self._taken < since or time.monotonic() > self._fresh_until:
            self._look()
        marked = self._by_mark.get(mark, [])
        if session is None:
            return marked
        return marked + [one for one in self._by_session.get(session, []) if one.mark != mark]

    def _look(self) -> None:
        taken = time.monotonic()
        by_mark: dict[str, list[ChildProcess]] = {}
        by_session: dict[int, list[ChildProcess]] = {}
        for one in _all():
            by_mark.setdefault(one.mark, []).append(one)
            by_session.setdefault(one.session, []).append(one)
        # Known to be new only once it is whole: another thread may be looking, too.
        self._by_mark, self._by_session, self._taken = by_mark, by_session, taken
        # With thousands of processes there must be time for something else than looking at them.
        now = time.monotonic()
        self._fresh_until = now + max(_FRESH, 2 * (now - taken))


_TABLE: Final = _ProcessTable()


def _all() -> list[ChildProcess]:
    found: list[ChildProcess] = []
    known: set[str] = set()
    # One that ended before it was looked at may have left a child that was not in the list: once more.
    while new := {entry for entry in os.listdir("/proc") if entry.isdigit()} - known:
        found += [one for entry in new if (one := _read(int(entry)))]
        known |= new
    return found


def _read(pid: int) -> ChildProcess | None:
    """What is known of a process; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        state, _, group, session, _, _, flags = rest.split()[:7]
    except (OSError, ValueError):
        return None
    if state in b"ZX":
        return None
    mark = "" if int(flags) & _OF_THE_KERNEL else _mark(pid, 1 if int(flags) & _ENDING else _READINGS)
    return ChildProcess(pid, int(group), int(session), mark, name.decode(errors="replace"))


def _mark(pid: int, readings: int) -> str:
    environment = b""
    try:
        for _ in range(readings):
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            if environment:
                break
            # One that becomes another program has none for a moment, and is not to be missed because of that.
            time.sleep(_MOMENT)
    except OSError:
        # Somebody else's, or one with more rights than we have.
        return ""
    begin = f"{MARK_VARIABLE}=".encode()
    if begin not in environment:
        return ""
    found = (one for one in environment.split(b"\x00") if one.startswith(begin))
    return next(found, begin)[len(begin) :].decode(errors="replace")


def still_running(mark: str, group: int | None = None, since: float = 0.0) -> list[ChildProcess]:
    """The processes of a call that are still there, or were a moment ago, but not before `since`."""
    if not os.path.isdir("/proc/self"):
        return []
    return [one for one in _TABLE.of(mark, group, since) if one.pid != os.getpid()]


async def terminate(mark: str, group: int | None, patience: float = TERM_SECONDS, since: float = 0.0) -> None:
    """End a call's processes: asked first, then made to. `since` is when the first of them was started."""
    import asyncio

    for pause in _ending(mark, group, patience, since):
        await asyncio.sleep(pause)


def terminate_blocking(mark: str, group: int | None, patience: float = TERM_SECONDS, since: float = 0.0) -> None:
    """As `end_all`, for a thread that may wait."""
    for pause in _ending(mark, group, patience, since):
        time.sleep(pause)


def _ending(mark: str, group: int | None, patience: float, since: float) -> Iterator[float]:
    """The steps of ending them; after each, how long to wait for the next."""
    if not _alive(mark, group, since):
        return
    _send(mark, group, signal.SIGTERM)
    sent = time.monotonic()
    while (left := sent + patience - time.monotonic()) > 0:
        yield min(_LOOK, left)
        if not _alive(mark, group, sent):
            return
    # Again and again, since a program may start another between our look and our signal.
    for _ in range(50):
        _send(mark, group, signal.SIGKILL)
        sent = time.monotonic()
        yield _LOOK
        if not _alive(mark, group, sent):
            return


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
