"""Reads a SQLite file that SQLite itself cannot open: on a read-only mount, in a folder without write permission, or on
a full disk.

A database with a write-ahead log needs 32 KB beside it for the index of the log, even for reading. Where these cannot
be created, no process has the database open (or its index would exist), so the file can be read as it is. If it has a
log or journal with content, as a process that was killed leaves it, a private copy is read instead, in which SQLite
applies them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

_PENDING: Final = ("-wal", "-journal")
_MEMORY: Final = "/dev/shm"


class Snapshots:
    """Finds what to open instead of a file; keeps a copy as long as the file does not change."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._copy: tuple[object, Path] | None = None

    def uri(self) -> str:
        """The URI of a readable file with the content of the database. Raises OSError if there is none."""
        state = self.state()
        if not any(size for _, size, _ in state[1:]):
            return f"{Path(self._file).as_uri()}?mode=ro&immutable=1"
        if self._copy is None or self._copy[0] != state:
            folder = self._make_copy()
            if self.state() != state:
                raise OSError(f"{self._file} was changed while it was copied")
            self._copy = state, folder
        return f"{(self._copy[1] / 'copy.db').as_uri()}?mode=rw"

    def state(self) -> tuple[tuple[int, int, int], ...]:
        """Changes whenever the database does: inode, size and time of the file and of its logs."""
        os.stat(self._file)
        return tuple(_state(self._file + suffix) for suffix in ("", *_PENDING))

    def _make_copy(self) -> Path:
        error: OSError | None = None
        # In memory if the disk with the temporary files is full too.
        for place in (None, _MEMORY):
            try:
                folder = Path(tempfile.mkdtemp(prefix="punchlist-read-", dir=place))
            except OSError as problem:
                error = error or problem
                continue
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            try:
                for suffix in ("", *_PENDING):
                    with suppress(FileNotFoundError):
                        shutil.copyfile(self._file + suffix, folder / f"copy.db{suffix}")
                return folder
            except OSError as problem:
                shutil.rmtree(folder, ignore_errors=True)
                error = error or problem
        assert error is not None
        raise error


def _state(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns
