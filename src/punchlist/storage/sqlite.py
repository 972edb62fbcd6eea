"""SQLite: write-ahead log, one writer at a time who waits for its turn, errors in plain words."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import Any, Final
from weakref import WeakSet

from punchlist.errors import Conflict, StoreBusy, StoreDamaged, StoreUnavailable
from punchlist.storage.statements import Kind
from punchlist.storage.wal_files import Identity, WalFiles, find_wal_files, identity

BUSY_SECONDS: Final = 30.0
"""How long a writer waits for the others. Writes take well under a millisecond each."""
_SLICE_SECONDS: Final = 1.0
_MOMENT: Final = 0.002

NO_WAIT: Final = ContextVar("at once", default=False)
"""Set by whoever cannot wait for other writers, such as an event loop: then a write begins at once or not at all."""


class WouldBlock(StoreBusy):
    """Nothing has begun: somebody else is writing."""


class SQLite:
    """The `Database` of a SQLite file."""

    kind: Kind = "sqlite"
    one_writer = True
    list_tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    driver_error: type[Exception] = sqlite3.Error

    def __init__(self, path: Path, *, synchronous: str = "NORMAL") -> None:
        self.path = path
        self.name = f"sqlite:///{path}"
        # Not `abspath`, to which `link/..` is the link's own folder: to whoever opens it, it is not.
        self._file = str(path.absolute())
        self._open: WeakSet[_SqliteConnection] = WeakSet()
        self._counting = Lock()
        self._settings = (
            "PRAGMA foreign_keys = ON",
            "PRAGMA trusted_schema = OFF",
            "PRAGMA cell_size_check = ON",
            # What is taken out, such as a secret that a call no longer needs, is not left in the file.
            "PRAGMA secure_delete = ON",
            f"PRAGMA synchronous = {synchronous}",
        )

    def connect(self, *, make: bool = False) -> _SqliteConnection:
        """To a file that is there; only with `make` to a new one, which nobody takes for one that was emptied."""
        # Other threads may be at a file that has lost its name.
        with self._counting:
            others = [] if make else list(self._open)
        for other in others:
            other.let_go_of_log()
        # Asked first: of a file that takes the name just now it is then said that it is another one.
        file = identity(self._file)
        connection = sqlite3.connect(
            f"{Path(self._file).as_uri()}?mode={'rwc' if make else 'rw'}",
            uri=True,
            isolation_level=None,
            timeout=_SLICE_SECONDS,
            check_same_thread=False,
            factory=_SqliteConnection,
        )
        try:
            connection.file = file
            for setting in self._settings:
                connection.execute(setting)
            self._remember_log(connection)
        except BaseException:
            connection.close()
            raise
        with self._counting:
            self._open.add(connection)
        return connection

    def is_missing(self) -> bool:
        return identity(self._file) is None

    def is_same_file(self, connection: _SqliteConnection, *, with_log: bool = False) -> bool:
        if connection.log is None:
            self._remember_log(connection)
        if connection.file is None or connection.file != identity(self._file):
            return False
        return not with_log or connection.log is None or connection.log.is_current()

    def _remember_log(self, connection: _SqliteConnection) -> None:
        # In this order: it is the file's own as long as the file has the name.
        log = find_wal_files(self._file)
        if log is None or connection.file is None or connection.file != identity(self._file):
            return
        if log.is_open():
            connection.log = log
        else:
            connection.file = None

    def begin_write(self, cursor: sqlite3.Cursor) -> None:
        if NO_WAIT.get():
            self._begin_at_once(cursor)
            return
        _be_patient(cursor, True)
        # In slices: while SQLite itself waits, Python cannot act on Ctrl-C.
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                cursor.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise

    def _begin_at_once(self, cursor: sqlite3.Cursor) -> None:
        _be_patient(cursor, False)
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            raise self._would_wait() from None

    def _would_wait(self) -> WouldBlock:
        return WouldBlock(f"{self.path} is being written to by somebody else.")

    def begin_read(self, cursor: sqlite3.Cursor) -> None:
        if not NO_WAIT.get():
            _be_patient(cursor, True)
        cursor.execute("BEGIN")

    def commit(self, cursor: sqlite3.Cursor) -> None:
        cursor.execute("COMMIT")

    def is_disconnect(self, error: Exception) -> bool:
        del error  # A file is not a connection: it cannot be cut.
        return False

    def change_counter(self, cursor: sqlite3.Cursor) -> int:
        return int(cursor.execute("PRAGMA data_version").fetchone()[0])

    def translate(self, error: Exception) -> Exception:
        # Not every driver error has a code: the ones Python raises itself have none.
        if not isinstance(error, sqlite3.Error):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            if NO_WAIT.get():
                return self._would_wait()
            return StoreBusy(
                f"{self.path} was busy for too long: another process holds it. Nothing was changed; try again."
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return self._damaged(str(error))
        if code == sqlite3.SQLITE_FULL:
            return StoreUnavailable(f"The disk is full: {self.path} was not changed. Free some space and try again.")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return StoreUnavailable(f"Cannot write {self.path} ({error}). Check that the folder exists and is yours.")
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM):
            return StoreUnavailable(f"{self.path} was not changed: the disk reported an error ({error}).")
        if code == sqlite3.SQLITE_CONSTRAINT:
            return (
                Conflict(f"Somebody else was first ({error}). Read the list again and retry.")
                if "UNIQUE" in str(error)
                else error
            )
        # Our statements are fixed and tested: if one does not fit, the file is not as we made it.
        return self._damaged(str(error))

    def _damaged(self, detail: str) -> StoreDamaged:
        return StoreDamaged(
            f"{self.path} is damaged ({detail}). Run `punchlist db check` for the extent, "
            "and `punchlist db restore BACKUP` to go back to a good copy."
        )


class _SqliteConnection(sqlite3.Connection):
    patient = True
    """How long it waits for others is remembered, since setting it costs as much as a small statement."""
    file: Identity | None = None
    """The file that had the name just before it was opened; None if there was none."""
    log: WalFiles | None = None
    """What lies beside it, as soon as there is something."""

    def let_go_of_log(self) -> None:
        """Of a file that has lost its name: whoever opens the next one would take the log for that one's."""
        log = self.log
        if log is not None and self.file != identity(log.path):
            with suppress(OSError):
                log.remove()

    def close(self) -> None:
        if self.log is not None and self.file != identity(self.log.path):
            # So that it is complete, wherever it is now.
            with suppress(sqlite3.Error):
                self.rollback()
                self.execute("PRAGMA wal_checkpoint")
        self.let_go_of_log()
        self.log = None
        super().close()


def _be_patient(cursor: sqlite3.Cursor, patient: bool) -> None:
    connection: Any = cursor.connection
    if connection.patient is not patient:
        seconds = _SLICE_SECONDS if patient else _MOMENT
        cursor.execute(f"PRAGMA busy_timeout = {seconds * 1_000:.0f}")
        connection.patient = patient


def use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Readers do not wait for writers, nor writers for readers. The file remembers it."""
    until = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # Others are at the same file at the same moment, and SQLite does not wait for this one.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(random.uniform(0.001, 0.02))
