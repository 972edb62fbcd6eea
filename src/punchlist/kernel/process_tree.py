"""Finds and terminates all processes that a command has started.

A command gets its own session and a mark in its environment. Its children inherit both; a child that leaves the session
still has the mark. A child that also clears its environment is found by its parents, while they run. If they have
ended, this process receives it, on Linux (`orphans.py`); elsewhere, and in programs that use the library, it is found
in the sandbox only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from punchlist.kernel import orphans
from punchlist.kernel.processes import start_time

MARK_VARIABLE: Final = "PUNCHLIST_CALL"
TERM_SECONDS: Final = 0.25
"""Seconds between SIGTERM and SIGKILL."""
_POLL_SECONDS: Final = 0.01
_KERNEL_THREAD: Final = 0x0020_0000
_EXITING: Final = 0x4
_READ_ATTEMPTS: Final = 10
_RETRY_SECONDS: Final = 0.0005
_CACHE_SECONDS: Final = 0.02
"""The minimum lifetime of a process scan: many calls may end at the same time."""


class ChildProcess(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    mark: str
    name: str


class _ProcessTable:
    """A cached scan of the running processes."""

    def __init__(self) -> None:
        self._taken = 0.0
        self._fresh_until = 0.0
        self._by_mark: dict[str, list[ChildProcess]] = {}
        self._by_session: dict[int, list[ChildProcess]] = {}
        self._by_parent: dict[int, list[ChildProcess]] = {}

    def of(self, mark: str, session: int | None, since: float) -> list[ChildProcess]:
        """The processes of a call, from a scan after `since`: an older one may miss a process or list a dead one."""
        if self._taken < since or time.monotonic() > self._fresh_until:
            self._scan()
        marked = self._by_mark.get(mark, [])
        if session is None:
            return marked
        found = marked + [other for other in self._by_session.get(session, []) if other.mark != mark]
        children = self._by_parent.get(os.getpid(), [])
        left = orphans.are_of_command(session, ((child.pid, child.session) for child in children))
        known = {process.pid for process in found}
        found += [child for child in children if child.pid in left and child.pid not in known]
        known.update(left)
        # Grows while it is read: the children of children.
        for process in found:
            children = [child for child in self._by_parent.get(process.pid, []) if child.pid not in known]
            known.update(child.pid for child in children)
            found += children
        return found

    def _scan(self) -> None:
        taken = time.monotonic()
        by_mark: dict[str, list[ChildProcess]] = {}
        by_session: dict[int, list[ChildProcess]] = {}
        by_parent: dict[int, list[ChildProcess]] = {}
        for process in _all():
            by_mark.setdefault(process.mark, []).append(process)
            by_session.setdefault(process.session, []).append(process)
            by_parent.setdefault(process.parent, []).append(process)
        # Published only when complete: another thread may scan as well.
        self._by_mark, self._by_session, self._by_parent, self._taken = by_mark, by_session, by_parent, taken
        # With thousands of processes a scan is slow, so it is valid for longer.
        now = time.monotonic()
        self._fresh_until = now + max(_CACHE_SECONDS, 2 * (now - taken))


@cache
def _process_table() -> _ProcessTable:
    return _ProcessTable()


def _all() -> list[ChildProcess]:
    found: list[ChildProcess] = []
    known: set[str] = set()
    # A process that ended during the scan may have left a child that was not listed: list again.
    while new := {entry for entry in os.listdir("/proc") if entry.isdigit()} - known:
        found += [process for entry in new if (process := _read(int(entry)))]
        known |= new
    return found


def _read(pid: int) -> ChildProcess | None:
    """None if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        state, parent, group, session, _, _, flags = rest.split()[:7]
    except (OSError, ValueError):
        return None
    if state in b"ZX":
        return None
    mark = "" if int(flags) & _KERNEL_THREAD else _mark(pid, 1 if int(flags) & _EXITING else _READ_ATTEMPTS)
    return ChildProcess(pid, int(parent), int(group), int(session), mark, name.decode(errors="replace"))


def _mark(pid: int, readings: int) -> str:
    environment = b""
    try:
        for _ in range(readings):
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            if environment:
                break
            # During exec, the environment is empty for a moment.
            time.sleep(_RETRY_SECONDS)
    except OSError:
        # A process of another user, or with more privileges.
        return ""
    begin = f"{MARK_VARIABLE}=".encode()
    if begin not in environment:
        return ""
    found = (entry for entry in environment.split(b"\x00") if entry.startswith(begin))
    return next(found, begin)[len(begin) :].decode(errors="replace")


def still_running(mark: str, group: int | None = None, since: float = 0.0) -> list[ChildProcess]:
    """The processes of a call that ran in a scan after `since`."""
    if not os.path.isdir("/proc/self"):
        return []
    return [process for process in _process_table().of(mark, group, since) if process.pid != os.getpid()]


async def terminate(mark: str, group: int | None, patience: float = TERM_SECONDS, since: float = 0.0) -> None:
    """Terminate the processes of a call: SIGTERM, then SIGKILL. `since` is when the first was started."""
    import asyncio

    for pause in _termination(mark, group, patience, since):
        await asyncio.sleep(pause)


def terminate_blocking(mark: str, group: int | None, patience: float = TERM_SECONDS, since: float = 0.0) -> None:
    """As `terminate`, for a thread."""
    for pause in _termination(mark, group, patience, since):
        time.sleep(pause)


def _termination(mark: str, group: int | None, patience: float, since: float) -> Iterator[float]:
    """The steps of termination; yields the seconds to wait after each."""
    if not _alive(mark, group, since):
        return
    # A process without mark and session loses its place in the tree when its parent ends: remember it.
    tree = {process.pid: start_time(process.pid) for process in still_running(mark, group, since)}
    _send(mark, group, signal.SIGTERM)
    sent = time.monotonic()
    while (left := sent + patience - time.monotonic()) > 0:
        yield min(_POLL_SECONDS, left)
        if not _alive(mark, group, sent) and not _same(tree):
            return
    # Repeated, since a process may fork between scan and signal.
    for _ in range(50):
        _send(mark, group, signal.SIGKILL)
        _kill(_same(tree), signal.SIGKILL)
        sent = time.monotonic()
        yield _POLL_SECONDS
        if not _alive(mark, group, sent) and not _same(tree):
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
    _kill((process.pid for process in still_running(mark, group) if process.group != group), number)


def _kill(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _same(processes: Mapping[int, str]) -> list[int]:
    """Those of the processes, given with their start times, that still run."""
    return [pid for pid, started in processes.items() if started and _read(pid) and start_time(pid) == started]
