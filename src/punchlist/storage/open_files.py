"""Files that this process must not open a second time.

When a process closes a file, all its locks on it are gone (POSIX), those of its database connections too. Other
processes then take the database for theirs alone and remove its log, and what is written here next is lost. To open the
file is already the harm, so whoever is about to open one that others have named asks first.

What is asked is which files are open, not where databases lie: that holds for links, for the engine's own database, and
for every store in this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final

_MOST: Final = 1_024


def is_open_here(file: os.stat_result, way: int = os.O_RDWR) -> bool:
    """Whether this process has a file open for reading and writing, as SQLite has all of its own that it may write to;
    or in another way: `O_RDONLY` is any."""
    if sys.platform == "win32":
        # Where locks belong to whoever opened the file.
        return False
    import fcntl

    for number in _descriptors():
        try:
            if os.path.samestat(os.fstat(number), file) and fcntl.fcntl(number, fcntl.F_GETFL) & way == way:
                return True
        except OSError:
            # Closed meanwhile, such as the one that the folder was listed with.
            continue
    return False


def _descriptors() -> Iterable[int]:
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        # In a jail without it: numbers are given from below.
        return range(_MOST)
