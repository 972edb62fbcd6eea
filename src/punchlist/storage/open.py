"""Opens the database at a URL: creates, checks and upgrades it as needed."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from punchlist.config import PROJECT_FOLDER
from punchlist.errors import StoreDamaged, StoreUnavailable
from punchlist.kernel.clock import Clock, system_clock
from punchlist.storage import postgres, sqlite, wal_files
from punchlist.storage.database_url import parse_database_url
from punchlist.storage.schema_version import SCHEMA_VERSION, read_schema_version
from punchlist.storage.store import Store

_HEADER: Final = 100


def connect(address: str, *, clock: Clock = system_clock, synchronous: str = "NORMAL") -> Store:
    """A store on the database as it is, without creating or upgrading it."""
    where = parse_database_url(address)
    if where.file is not None:
        return Store(sqlite.SQLite(where.file, synchronous=synchronous), clock)
    return Store(postgres.PostgreSQL(where.location, where.display), clock)


def open_store(address: str, *, clock: Clock = system_clock, synchronous: str = "NORMAL") -> Store:
    store = connect(address, clock=clock, synchronous=synchronous)
    file = parse_database_url(address).file
    store.prepare = partial(_prepare, file=file.absolute() if file else None)
    store.prepare(store)
    return store


def _prepare(store: Store, *, file: Path | None) -> None:
    try:
        if file:
            create_folder(file.parent)
            _create_file(store, file)
            _refuse_truncated(file)
        ensure_schema(store)
        if file:
            _write_marker(file)
            _enable_log(store)
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    except Exception as error:
        store.raise_translated(error)


def _create_file(store: Store, file: Path) -> None:
    """Create an empty file if there is none, and remove the marker and WAL files of a deleted one.

    The marker goes first, so that the empty file counts as new.
    """
    database = store.database
    if not isinstance(database, sqlite.SQLite) or not database.is_missing():
        return
    real = Path(os.path.realpath(file))
    with wal_files.lock_folder(real.parent):
        if database.is_missing():
            _marker(file).unlink(missing_ok=True)
            for suffix in wal_files.SUFFIXES:
                Path(f"{real}{suffix}").unlink(missing_ok=True)
            database.connect(make=True).close()


def ensure_schema(store: Store) -> None:
    """Create or upgrade the schema. The usual case, a current database, costs one query and no further import."""
    if read_schema_version(store) != SCHEMA_VERSION:
        from punchlist.storage.migrate import migrate

        migrate(store)


def open_existing(address: str) -> Store:
    """A store on an existing database, without upgrading it."""
    file = parse_database_url(address).file
    try:
        if file is not None:
            if not file.exists():
                raise StoreUnavailable(f"There is no database at {file} yet. The first command that writes creates it.")
            if not file.is_file():
                raise StoreUnavailable(f"{file} is not a file.")
            _refuse_truncated(file)
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    return connect(address)


def _refuse_truncated(file: Path) -> None:
    """SQLite treats an empty file as a new database. If the marker exists, the file was truncated."""
    if not file.exists():
        return
    size = file.stat().st_size
    if size < _HEADER and (size or _marker(file).exists()):
        raise StoreDamaged(
            f"{file} was truncated to {size} bytes. Run `punchlist db restore BACKUP` to restore a backup; "
            f"to start with an empty database, remove {file} and {_marker(file)}."
        )


def _write_marker(file: Path) -> None:
    marker = _marker(file)
    if not marker.exists():
        with suppress(OSError):
            marker.write_text(f"{file.name} was created. If it is empty now, it was truncated.\n")


def _enable_log(store: Store) -> None:
    """Enable the write-ahead log, which a file copied into place does not have.

    Only through SQLite: a process that opens and closes the file itself drops the locks of its own connections (POSIX).
    """
    connection = store.connections.acquire()
    try:
        # Fails while another connection is open; the next start tries again.
        with suppress(store.database.driver_error):
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
    finally:
        store.connections.release(connection)


def _marker(file: Path) -> Path:
    return file.with_name(f"{file.name}-made")


def create_folder(folder: Path) -> None:
    """Create the folder of a SQLite file. A `.punchlist` folder ignores itself in git."""
    if folder.exists():
        return
    try:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        if folder.name == PROJECT_FOLDER:
            (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        raise StoreUnavailable(f"Cannot create the folder {folder} ({error.strerror}).") from error
