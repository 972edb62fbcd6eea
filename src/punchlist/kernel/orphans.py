"""Processes that leave the process that started them, which this process then receives as its children (Linux).

Without this, a process of a command that leaves its session, its environment and its parents (`env -i setsid -f`)
belongs to the first process of the system: it is not found when the command ends, and does not look like a part of an
agent's tool call. Only the `punchlist` program receives orphans: in a program that uses the library, the orphans of
other children would arrive as well, and it does not expect to have to reap them.

An orphan is a child in a session of its own that was not started here. It belongs to one of the commands that ran when
it began, and is ended with the last of them. Zombies are reaped while commands run and when they end.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from punchlist import kernel
from punchlist.kernel.processes import start_time

REAP_SECONDS: Final = 0.25
"""Seconds between two looks for zombies while a command runs."""
_PR_SET_CHILD_SUBREAPER: Final = 36
_TOLERANCE: Final = 0.02
"""The system counts start times in hundredths of a second."""

_kept: set[int] = set()
"""This process, once it receives orphans."""
_children: dict[int, float] = {}
"""The child processes with sessions of their own that were started here, and when."""
_commands: set[int] = set()
"""Those of them that are running commands."""
_starts: dict[int, float] = {}
"""When each start that is not finished began: its process is not in `_children` yet."""


def keep() -> None:
    """From now on, receive the orphans of child processes."""
    if _kept or not kernel.is_program or not sys.platform.startswith("linux"):
        return
    import ctypes

    with suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        if prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            _kept.add(os.getpid())


def are_kept() -> bool:
    return bool(_kept)


# --- own child processes --------------------------------------------------------------------------------------------


@contextmanager
def starting() -> Iterator[Callable[[int], None]]:
    """Start a process with a session of its own in this block, and pass its pid to the function."""
    began = time.monotonic()
    place = object()
    _starts[id(place)] = began

    def add(pid: int) -> None:
        _children[pid] = began

    try:
        yield add
    finally:
        del _starts[id(place)]


def add_command(pid: int) -> None:
    _commands.add(pid)


def end_command(pid: int) -> None:
    """The command has ended, or is about to be ended: what it has left is not spared for it."""
    _commands.discard(pid)


def forget(pid: int) -> None:
    """The process was started here, and has been reaped."""
    _commands.discard(pid)
    _children.pop(pid, None)


# --- orphans --------------------------------------------------------------------------------------------------------


def are_of_command(command: int, children: Iterable[tuple[int, int]]) -> list[int]:
    """The orphans that are to be ended with a command, of the child processes of this one and their sessions."""
    begun = _children.get(command)
    if not _kept or begun is None:
        return []
    return [
        pid
        for pid, session in children
        if _is_orphan(pid, session) and session not in _others(command) and _belongs(_begun(pid), command, begun)
    ]


def _others(command: int) -> set[int]:
    """The sessions of processes that were started here, and were not left with the command."""
    return _children.keys() - {command}


def _belongs(orphan_begun: float, command: int, begun: float) -> bool:
    running = [_children.get(other, 0.0) for other in _commands.copy() if other != command]
    return orphan_begun >= begun - _TOLERANCE and all(other > orphan_begun + _TOLERANCE for other in running)


def _is_orphan(pid: int, session: int) -> bool:
    if session == os.getsid(0) or pid in _children:
        return False
    # It may be a process that another thread is starting.
    starts = _starts.copy().values()
    return not starts or _begun(pid) < min(starts) - _TOLERANCE


def _begun(pid: int) -> float:
    """When a process was started, on the clock `time.monotonic`."""
    ticks = start_time(pid)
    if not ticks:
        return 0.0
    since_boot = int(ticks) / os.sysconf("SC_CLK_TCK")
    return since_boot - time.clock_gettime(time.CLOCK_BOOTTIME) + time.monotonic()


def reap() -> None:
    """Reap the orphans that have ended."""
    if not _kept:
        return
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if not _reap(ended.si_pid):
                # A child that others wait for. There may be orphans behind it.
                _reap_all()
                return


def _reap_all() -> None:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            _reap(int(entry))


def _reap(pid: int) -> bool:
    """False if it is not an orphan of this process."""
    try:
        if _is_orphan(pid, os.getsid(pid)):
            return os.waitpid(pid, os.WNOHANG)[0] == pid
    except OSError:
        pass
    return False
