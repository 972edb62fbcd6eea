"""SQLite's write-ahead log (`-wal`) and its index (`-shm`) when the database file is removed or replaced.

SQLite finds them by name. They stay behind when the file is removed or replaced, and SQLite then applies the old log to
the new file. Only a process that has the old file open can tell that the log is stale: it removes the log before it
opens the new file. A process that finds no file at all removes the log as well.

Check and removal happen under a lock on the folder: otherwise two processes could check at the same time, and the
second would remove the new log of the first.
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
    """The WAL files of a database file."""

    path: str
    """The database file, with links resolved."""
    parts: tuple[Identity | None, ...]

    def is_open(self) -> bool:
        """Whether this process has the log open; if not, it was replaced since the connection was opened."""
        try:
            return sys.platform == "win32" or is_open_here(os.stat(f"{self.path}-wal"), os.O_RDONLY)
        except OSError:
            return False

    def is_current(self) -> bool:
        """Whether the log is still at its path; if not, writes to it are lost."""
        return self.parts[0] == identity(self.path + "-wal")

    def remove(self) -> None:
        """Remove exactly these files, identified by inode: they are still open, so no other file can have it."""
        with lock_folder(Path(self.path).parent):
            for suffix, part in zip(SUFFIXES, self.parts, strict=True):
                if part is not None and part == identity(self.path + suffix):
                    os.unlink(self.path + suffix)


def find_wal_files(file: str) -> WalFiles | None:
    """None if there is no log."""
    place = os.path.realpath(file)
    parts = tuple(identity(place + suffix) for suffix in SUFFIXES)
    return None if parts[0] is None else WalFiles(place, parts)


def identity(path: str) -> Identity | None:
    """The identity (device and inode) of the file at a path."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Prevent other Punchlist processes from creating or removing a database in a folder."""
    if sys.platform == "win32":
        # Windows does not allow to remove an open file.
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Continue on a file system without locks.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
