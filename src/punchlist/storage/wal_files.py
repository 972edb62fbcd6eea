"""SQLite's write-ahead log (`-wal`) and its index (`-shm`) when the database file is removed or replaced.

SQLite finds them by name. They stay behind when the file is removed or replaced, and SQLite then applies the old log to
the new file. Only a process that has the old file open can tell that the log is stale: it removes the log before it
opens the new file. A process that finds no file at all removes the log as well.

Check and removal happen under a lock on the folder: otherwise two processes could check at the same time, and the
second would remove the new log of the first.

`is_open_here` detects files that this process must not open a second time. When a process closes a file, POSIX drops
all its locks on it, including those of its SQLite connections. Other processes then consider the database unused and
remove its log, and later writes of this process are lost. Code that opens a path given by a user or model calls
`is_open_here` first. The check compares open file descriptors instead of database paths, so it also covers links, the
engine's database and every store in this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

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
