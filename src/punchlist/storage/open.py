"""From a database address to a store that is ready to use."""

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
    """A store on the database as it is; `open_store` also brings its schema up to date."""
    where = parse_database_url(address)
    if where.file is not None:
        return Store(sqlite.SQLite(where.file, synchronous=synchronous), clock)
    return Store(postgres.PostgreSQL(where.location, where.display), clock)


def open_store(address: str, *, clock: Clock = system_clock, synchronous: str = "NORMAL") -> Store:
    store = connect(address, clock=clock, synchronous=synchronous)
    file = parse_database_url(address).file
    store.prepare = partial(_make_ready, file=file.absolute() if file else None)
    store.prepare(store)
    return store


def _make_ready(store: Store, *, file: Path | None) -> None:
    try:
        if file:
            create_folder(file.parent)
            _make_anew(store, file)
            _refuse_cut(file)
        ensure_schema(store)
        if file:
            _remember(file)
            _use_log(store)
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    except Exception as error:
        store.raise_translated(error)


def _make_anew(store: Store, file: Path) -> None:
    """An empty file, where there is none. Whoever removed the one before it wants nothing of what lies beside it.
    The mark goes first: an empty file is then a new file."""
    database = store.database
    if not isinstance(database, sqlite.SQLite) or not database.is_missing():
        return
    real = Path(os.path.realpath(file))
    with wal_files.lock_folder(real.parent):
        if database.is_missing():
            _mark(file).unlink(missing_ok=True)
            for suffix in wal_files.SUFFIXES:
                Path(f"{real}{suffix}").unlink(missing_ok=True)
            database.connect(make=True).close()


def ensure_schema(store: Store) -> None:
    """Create or upgrade the schema. The usual case, a current database, costs one query and no further import."""
    if read_schema_version(store) != SCHEMA_VERSION:
        from punchlist.storage.migrate import migrate

        migrate(store)


def open_existing(address: str) -> Store:
    """A store on a database that must be there already, left at the schema it has."""
    file = parse_database_url(address).file
    try:
        if file is not None:
            if not file.exists():
                raise StoreUnavailable(f"There is no database at {file} yet. It is made on first use.")
            if not file.is_file():
                raise StoreUnavailable(f"{file} is no file, and no database.")
            _refuse_cut(file)
    except OSError as error:
        raise StoreUnavailable(f"Cannot use {file} as a database ({error.strerror}).") from error
    return connect(address)


def _refuse_cut(file: Path) -> None:
    """SQLite takes an empty file for a new database. Where one was made before, it is what is left of that."""
    if not file.exists():
        return
    size = file.stat().st_size
    if size < _HEADER and (size or _mark(file).exists()):
        raise StoreDamaged(
            f"{file} has only {size} bytes left of it. `punchlist db restore BACKUP` goes back to a good copy; "
            f"to begin anew, remove {file} and {_mark(file)}."
        )


def _remember(file: Path) -> None:
    mark = _mark(file)
    if not mark.exists():
        with suppress(OSError):
            mark.write_text(f"{file.name} was made; if it is ever empty, it was cut.\n")


def _use_log(store: Store) -> None:
    """A copy that somebody put in place has no write-ahead log, so that readers and writers wait for each other.

    The file is never opened but by SQLite: when a process closes a file, whatever locks it has on it are gone, those
    of its other connections too, and what they write next is lost.
    """
    connection = store.connections.acquire()
    try:
        # Whoever is at it now will be gone some time.
        with suppress(store.database.driver_error):
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
    finally:
        store.connections.release(connection)


def _mark(file: Path) -> Path:
    return file.with_name(f"{file.name}-made")


def create_folder(folder: Path) -> None:
    """The folder of a SQLite file. One of ours inside a project keeps itself out of version control."""
    if folder.exists():
        return
    try:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        if folder.name == PROJECT_FOLDER:
            (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        raise StoreUnavailable(f"Cannot make the folder {folder} ({error.strerror}).") from error
