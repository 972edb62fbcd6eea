"""Detects files that this process must not open a second time.

When a process closes a file, POSIX drops all its locks on it, including those of its SQLite connections. Other
processes then consider the database unused and remove its log, and later writes of this process are lost. Code that
opens a path given by a user or model calls `is_open_here` first.

The check compares open file descriptors instead of database paths, so it also covers links, the engine's database and
every store in this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final

_MAX_DESCRIPTORS: Final = 1_024


def is_open_here(file: os.stat_result, way: int = os.O_RDWR) -> bool:
    """Whether this process has a file open for reading and writing, as SQLite does; with `O_RDONLY`, in any mode."""
    if sys.platform == "win32":
        # On Windows, locks belong to the file handle.
        return False
    import fcntl

    for number in _descriptors():
        try:
            if os.path.samestat(os.fstat(number), file) and fcntl.fcntl(number, fcntl.F_GETFL) & way == way:
                return True
        except OSError:
            # Closed meanwhile, such as the descriptor used to list the folder.
            continue
    return False


def _descriptors() -> Iterable[int]:
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        # Without /dev/fd: descriptors are allocated from the lowest number.
        return range(_MAX_DESCRIPTORS)
