"""Looking after a database: its own integrity check, copies, and going back to one."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from punchlist.errors import InvalidInput, StoreDamaged, StoreUnavailable
from punchlist.storage.revision import APPLICATION_ID, REVISION
from punchlist.storage.sqlite import SQLite, use_write_ahead_log
from punchlist.storage.store import Store

_MOST: Final = 10


def integrity_problems(store: Store) -> list[str]:
    """What the database itself finds wrong. PostgreSQL checks pages as it reads them."""
    if store.database.kind != "sqlite":
        return []
    with store.read() as tx:
        rows = tx.raw(f"PRAGMA integrity_check({_MOST})")
        orphans = tx.raw("PRAGMA foreign_key_check")
    problems = [f"integrity: {row[0]}" for row in rows if row[0] != "ok"]
    return problems + [f"integrity: a row of {row[0]} points to nothing in {row[2]}" for row in orphans[:_MOST]]


def backup(store: Store, target: Path) -> None:
    """A consistent copy while others go on writing; there all at once, or not at all."""
    source = _sqlite_path(store)
    if target.exists():
        raise InvalidInput(f"{target} exists already. Name a new file; nothing was written.")
    partial = target.with_name(f"{target.name}.partial")
    try:
        with (
            closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=30)) as reader,
            closing(sqlite3.connect(partial)) as writer,
        ):
            reader.backup(writer)
            # A copy stands alone: no write-ahead log beside it.
            writer.execute("PRAGMA journal_mode = DELETE")
        _sync(partial)
        os.replace(partial, target)
    except (sqlite3.Error, OSError) as error:
        partial.unlink(missing_ok=True)
        raise StoreUnavailable(f"Cannot write the copy to {target} ({error}).") from error


def restore(store: Store, copy: Path) -> Path | None:
    """Put a copy in place of the database; what was there is kept beside it, under the name returned.

    Done by SQLite itself where the database can still be read: processes that have it open go on
    with the restored one. A database too damaged for that is moved aside.
    """
    path = _sqlite_path(store)
    _check_copy(copy)
    store.close()
    kept = _free_name(path) if path.exists() else None
    try:
        if kept:
            _set_aside(path, kept)
        with (
            closing(sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)) as reader,
            closing(sqlite3.connect(path, timeout=30)) as writer,
        ):
            reader.backup(writer)
            use_write_ahead_log(writer)
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"Cannot restore {copy} ({error}). What was there is in {kept or path}.") from error
    return kept


def _set_aside(path: Path, kept: Path) -> None:
    """Keep what is there: a copy of a database that can be read, the files themselves of one that cannot."""
    try:
        with closing(sqlite3.connect(path, timeout=30)) as reader, closing(sqlite3.connect(kept)) as writer:
            (verdict,) = reader.execute("PRAGMA integrity_check(1)").fetchone()
            reader.backup(writer)
        if verdict == "ok":
            return
    except sqlite3.Error:
        pass
    kept.unlink(missing_ok=True)
    for suffix in ("-wal", "-shm", ""):
        old = path.with_name(path.name + suffix)
        if old.exists():
            os.replace(old, kept.with_name(kept.name + suffix))


def _check_copy(copy: Path) -> None:
    if not copy.is_file():
        raise InvalidInput(f"There is no file {copy}.")
    try:
        with closing(sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if application_id != APPLICATION_ID:
                raise InvalidInput(f"{copy} is not a Punchlist database.")
            (revision,) = connection.execute("SELECT version_num FROM punchlist_schema").fetchone()
    except sqlite3.Error as error:
        raise StoreDamaged(f"{copy} cannot be read as a database ({error}). Nothing was changed.") from error
    if verdict != "ok":
        raise StoreDamaged(f"{copy} is damaged itself ({verdict}). Nothing was changed.")
    if revision > REVISION:
        raise InvalidInput(f"{copy} has schema {revision}; this Punchlist knows up to {REVISION}.")


def _free_name(path: Path) -> Path:
    number = 1
    while (name := path.with_name(f"{path.name}.before-restore-{number}")).exists():
        number += 1
    return name


def _sqlite_path(store: Store) -> Path:
    if not isinstance(store.database, SQLite):
        raise InvalidInput("This database is a PostgreSQL server: use pg_dump and pg_restore for copies.")
    return store.database.path.resolve()


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
