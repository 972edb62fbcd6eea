"""SQLite: write-ahead log, one writer at a time, translated errors."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakSet

from punchlist.errors import Conflict, StoreBusy, StoreDamaged, StoreUnavailable
from punchlist.storage.statements import Kind

if TYPE_CHECKING:
    from punchlist.storage.snapshot import Snapshots

BUSY_SECONDS: Final = 30.0
"""How long a writer waits for other writers. A write takes well under a millisecond."""
_SLICE_SECONDS: Final = 1.0
_NO_WAIT_SECONDS: Final = 0.002

NO_WAIT: Final = ContextVar("no_wait", default=False)
"""Set by callers that cannot wait for other writers, such as an event loop: a write begins at once or raises."""


class WouldBlock(StoreBusy):
    """Another process is writing. No transaction was begun."""


class SQLite:
    """The `Database` of a SQLite file."""

    kind: Kind = "sqlite"
    one_writer = True
    list_tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    driver_error: type[Exception] = sqlite3.Error

    def __init__(self, path: Path, *, synchronous: str = "NORMAL") -> None:
        self.path = path
        self.name = f"sqlite:///{path}"
        # Not `abspath`, which resolves `link/..` to the folder of the link instead of its target's.
        self._file = str(path.absolute())
        self._open: WeakSet[_SqliteConnection] = WeakSet()
        self._counting = Lock()
        self._snapshots: Snapshots | None = None
        self._settings = (
            "PRAGMA foreign_keys = ON",
            "PRAGMA trusted_schema = OFF",
            "PRAGMA cell_size_check = ON",
            # Overwrites deleted content, such as a secret that a call no longer needs.
            "PRAGMA secure_delete = ON",
            f"PRAGMA synchronous = {synchronous}",
        )

    def connect(self, *, make: bool = False) -> _SqliteConnection:
        """Open an existing file; with `make`, create it if necessary."""
        # Other threads may still use a file that was removed or replaced.
        with self._counting:
            others = [] if make else list(self._open)
        for other in others:
            other.remove_stale_log()
        # Before the file is opened: a file that replaces it meanwhile is then detected as another one.
        file = identity(self._file)
        connection = _open(f"{Path(self._file).as_uri()}?mode={'rwc' if make else 'rw'}")
        try:
            connection.file = file
            # The first statement that reads the file.
            self._configure(connection)
            self._remember_log(connection)
        except BaseException as error:
            connection.close()
            if not make and _cannot_read(error):
                return self._open_snapshot(file, error)
            raise
        with self._counting:
            self._open.add(connection)
        return connection

    def _configure(self, connection: _SqliteConnection) -> None:
        for setting in self._settings:
            connection.execute(setting)

    def _open_snapshot(self, file: Identity | None, obstacle: BaseException) -> _SqliteConnection:
        """Open the database for reading where nothing can be written."""
        from punchlist.storage.snapshot import Snapshots

        if self._snapshots is None:
            self._snapshots = Snapshots(self._file)
        try:
            connection = _open(self._snapshots.uri())
        except (OSError, sqlite3.Error):
            raise obstacle from None
        connection.file, connection.obstacle = file, obstacle
        self._configure(connection)
        return connection

    def read_only_reason(self) -> str | None:
        if self._snapshots is None:
            return None
        return f"{self.path} was opened for reading only: nothing can be written beside it."

    def is_missing(self) -> bool:
        return identity(self._file) is None

    def is_same_file(self, connection: _SqliteConnection, *, with_log: bool = False) -> bool:
        if connection.log is None and connection.obstacle is None:
            self._remember_log(connection)
        if connection.file is None or connection.file != identity(self._file):
            return False
        return not with_log or connection.log is None or connection.log.is_current()

    def _remember_log(self, connection: _SqliteConnection) -> None:
        # In this order: the log belongs to the file as long as the file is at the path.
        log = find_wal_files(self._file)
        if log is None or connection.file is None or connection.file != identity(self._file):
            return
        if log.is_open():
            connection.log = log
        else:
            connection.file = None

    def is_reusable(self, connection: _SqliteConnection) -> bool:
        # The next transaction may be able to write, or find a newer file.
        return connection.obstacle is None

    def begin_write(self, cursor: sqlite3.Cursor) -> None:
        connection: Any = cursor.connection
        if connection.obstacle is not None:
            raise self._unwritable(connection.obstacle)
        if NO_WAIT.get():
            self._begin_at_once(cursor)
            return
        _set_patience(cursor, True)
        # In slices: Python cannot handle Ctrl-C while SQLite waits.
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                cursor.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise

    def _unwritable(self, obstacle: Exception) -> Exception:
        if getattr(obstacle, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            return obstacle
        return StoreUnavailable(
            f"Cannot write {self.path}: it is on a read-only file system, or you may not write to its folder. Nothing "
            "was changed."
        )

    def _begin_at_once(self, cursor: sqlite3.Cursor) -> None:
        _set_patience(cursor, False)
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            raise self._would_block() from None

    def _would_block(self) -> WouldBlock:
        return WouldBlock(f"Another process is writing to {self.path}.")

    def begin_read(self, cursor: sqlite3.Cursor) -> None:
        if not NO_WAIT.get():
            _set_patience(cursor, True)
        cursor.execute("BEGIN")

    def lift_time_limits(self, cursor: Any) -> None:
        del cursor  # There are none.

    def commit(self, cursor: sqlite3.Cursor) -> None:
        cursor.execute("COMMIT")

    def is_disconnect(self, error: Exception) -> bool:
        del error  # A file has no connection to lose.
        return False

    def change_counter(self, cursor: sqlite3.Cursor) -> int:
        connection: Any = cursor.connection
        if connection.obstacle is not None and self._snapshots is not None:
            return hash(self._snapshots.state())
        return int(cursor.execute("PRAGMA data_version").fetchone()[0])

    def translate(self, error: Exception) -> Exception:
        # Errors that Python itself raises have no code.
        if not isinstance(error, sqlite3.Error):
            return error
        detail = getattr(error, "sqlite_errorcode", 0)
        code = detail & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            if NO_WAIT.get():
                return self._would_block()
            return StoreBusy(f"{self.path} was locked by another process for too long. Nothing was changed; try again.")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return self.damaged(str(error))
        if code == sqlite3.SQLITE_FULL or detail == sqlite3.SQLITE_IOERR_SHMSIZE:
            return StoreUnavailable(f"The disk is full: {self.path} was not changed. Free some space and try again.")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return StoreUnavailable(
                f"Cannot write {self.path} ({error}). Check that the folder exists and that you may write to it."
            )
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM):
            return StoreUnavailable(f"{self.path} was not changed: the disk reported an error ({error}).")
        if code == sqlite3.SQLITE_CONSTRAINT:
            return (
                Conflict(f"Another writer was first ({error}). Read the list again and retry.")
                if "UNIQUE" in str(error)
                else error
            )
        # The statements are fixed and tested: one that does not fit means that the file was changed.
        return self.damaged(str(error))

    def damaged(self, detail: str) -> StoreDamaged:
        return StoreDamaged(
            f"{self.path} is damaged ({detail}). Run `punchlist db check` for the extent, "
            "and `punchlist db restore BACKUP` to restore a backup."
        )


class _SqliteConnection(sqlite3.Connection):
    patient = True
    """The current busy timeout is cached: setting it costs as much as a small statement."""
    file: Identity | None = None
    """The file at the path just before the connection was opened; None if there was none."""
    log: WalFiles | None = None
    """The WAL files of the connection, as soon as they exist."""
    obstacle: BaseException | None = None
    """Why the database can be read only; the connection reads a snapshot."""

    def remove_stale_log(self) -> None:
        """Remove the log of a file that was replaced: SQLite would apply it to the new file."""
        log = self.log
        if log is not None and self.file != identity(log.path):
            with suppress(OSError):
                log.remove()

    def close(self) -> None:
        if self.log is not None and self.file != identity(self.log.path):
            # Move the log into the file, wherever it is now.
            with suppress(sqlite3.Error):
                self.rollback()
                self.execute("PRAGMA wal_checkpoint")
        self.remove_stale_log()
        self.log = None
        super().close()


def _open(uri: str) -> _SqliteConnection:
    return sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        timeout=_SLICE_SECONDS,
        check_same_thread=False,
        factory=_SqliteConnection,
    )


_WRITE_ERRORS: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL)
_INDEX_ERRORS: Final = (sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP)
"""The index of the log cannot be created or extended."""


def _cannot_read(error: BaseException) -> bool:
    """Whether SQLite cannot read because nothing can be written beside the file."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in _WRITE_ERRORS or code in _INDEX_ERRORS


def _set_patience(cursor: sqlite3.Cursor, patient: bool) -> None:
    connection: Any = cursor.connection
    if connection.patient is not patient:
        seconds = _SLICE_SECONDS if patient else _NO_WAIT_SECONDS
        cursor.execute(f"PRAGMA busy_timeout = {seconds * 1_000:.0f}")
        connection.patient = patient


def use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Readers and writers do not block each other in this mode, which is stored in the file."""
    until = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # SQLite does not apply the busy timeout to this statement.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(random.uniform(0.001, 0.02))


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
