"""The log that SQLite keeps beside a file (`-wal`), its index (`-shm`), and what becomes of them without the file.

SQLite finds them by their names. When the file is removed or replaced they stay, and whoever opens the next one lays
the old log over it. Only those who have the old file open know the log for what it is: they take its names away before
they open the next one. Whoever finds no file at all knows it too.

What is looked at is removed before anybody else looks: else two could do so at once, and the second would take away
the new log of the first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from punchlist.storage.open_files import is_open_here

Identity = tuple[int, int]
SUFFIXES: Final = ("-wal", "-shm")


class WalFiles(NamedTuple):
    """What lies beside a file."""

    path: str
    """Of the file itself, whatever links lead to it."""
    parts: tuple[Identity | None, ...]

    def is_open(self) -> bool:
        """Here; else who has just connected has got one that lost its name meanwhile."""
        try:
            return sys.platform == "win32" or is_open_here(os.stat(f"{self.path}-wal"), os.O_RDONLY)
        except OSError:
            return False

    def is_current(self) -> bool:
        """Else nobody will ever find what is written to it: somebody took it for a leftover."""
        return self.parts[0] == identity(self.path + "-wal")

    def remove(self) -> None:
        """Take the names away from exactly these, which are still open: no other file has their numbers."""
        with lock_folder(Path(self.path).parent):
            for suffix, part in zip(SUFFIXES, self.parts, strict=True):
                if part is not None and part == identity(self.path + suffix):
                    os.unlink(self.path + suffix)


def find_wal_files(file: str) -> WalFiles | None:
    """None where there is no log."""
    place = os.path.realpath(file)
    parts = tuple(identity(place + suffix) for suffix in SUFFIXES)
    return None if parts[0] is None else WalFiles(place, parts)


def identity(path: str) -> Identity | None:
    """Which file has a name now."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Nobody else makes a database in a folder meanwhile, or takes one away."""
    if sys.platform == "win32":
        # Where nobody can remove what is open.
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A file system without such locks is no reason to do nothing.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
