"""Looking after a database: its own integrity check, copies, and going back to one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from punchlist.errors import InvalidInput, StoreBusy, StoreDamaged, StoreUnavailable
from punchlist.storage.open import create_folder, ensure_schema
from punchlist.storage.schema_version import APPLICATION_ID, READ_VERSION, unsupported_version
from punchlist.storage.sqlite import BUSY_SECONDS, SQLite, use_write_ahead_log
from punchlist.storage.store import Store
from punchlist.storage.wal_files import SUFFIXES, lock_folder

_MOST: Final = 10
_ATTEMPTS: Final = 20


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
    if not source.is_file():
        raise StoreUnavailable(f"{source} is no file, so there is no database to copy.")
    if target.exists():
        raise InvalidInput(f"{target} exists already. Name a new file; nothing was written.")
    partial = target.with_name(f"{target.name}.partial")
    try:
        with closing(_open(source, "ro")) as reader, closing(sqlite3.connect(partial)) as writer:
            reader.backup(writer)
            # A copy stands alone: no write-ahead log beside it.
            writer.execute("PRAGMA journal_mode = DELETE")
            ours = _version_of(writer) is not None
        if ours:
            _sync(partial)
            os.replace(partial, target)
    except (sqlite3.Error, OSError) as error:
        partial.unlink(missing_ok=True)
        raise StoreUnavailable(f"Cannot write the copy to {target} ({error}).") from error
    if not ours:
        partial.unlink(missing_ok=True)
        raise StoreDamaged(f"{source} is not a Punchlist database, or has lost its schema. Nothing was copied.")


def restore(store: Store, copy: Path) -> Path | None:
    """Put a copy in place of the database; what was there is kept beside it, under the name returned.

    Done by SQLite itself where the database can still be read: processes that have it open go on
    with the restored one. A database too damaged for that is moved aside.
    """
    path = _sqlite_path(store)
    there = path.exists()
    if there and not path.is_file():
        raise InvalidInput(f"{path} is no file: a database cannot be put in its place. Nothing was changed.")
    _check_copy(copy)
    if there and copy.samefile(path):
        raise InvalidInput(f"{copy} is the database itself. Name a copy that `punchlist db backup` wrote.")
    store.close()
    create_folder(path.parent)
    try:
        with _up_to_date(copy, path) as ready:
            if not there or not _is_whole(path):
                return _put_in_place(path, ready)
            with closing(_open(ready, "rw")) as reader:
                return _exchange(path, reader)
    except (sqlite3.Error, OSError) as error:
        if _is_busy(error):
            store.raise_translated(error)
        where = f" What was there is in {path}." if there else ""
        raise StoreUnavailable(f"Cannot restore {copy} ({error}).{where}") from error


@contextmanager
def _up_to_date(copy: Path, path: Path) -> Iterator[Path]:
    """A copy of the copy, beside the database, with this program's schema: whoever has the database open expects it."""
    with TemporaryDirectory(prefix=f"{path.name}.restoring-", dir=path.parent) as folder:
        ready = Path(folder) / path.name
        with closing(_open(copy.resolve(), "ro")) as reader, closing(_open(ready, "rwc")) as writer:
            reader.backup(writer)
            use_write_ahead_log(writer)
        with closing(Store(SQLite(ready))) as store:
            try:
                ensure_schema(store)
            except Exception as error:
                store.raise_translated(error)
        _sync(ready)
        yield ready


class _ConcurrentWrite(Exception):
    """What was set aside is no longer all there is."""


def _exchange(path: Path, reader: sqlite3.Connection) -> Path:
    """Set a copy of a database aside and replace it, so that what others write is in the one or in the other.

    Nobody writes while it is copied. SQLite cannot hand that lock on to whoever replaces it: if somebody got hold of
    it in between, it is copied again.
    """
    with closing(_open(path, "rw")) as lock, closing(_open(path, "rw", patience=0)) as writer:
        # Else nobody could look while somebody replaces.
        use_write_ahead_log(lock)
        for _ in range(_ATTEMPTS):
            lock.execute("BEGIN IMMEDIATE")
            before = _changes(lock)
            # Chosen under the lock: another restore may have taken a name until a moment ago.
            kept = _free_name(path)
            try:
                with closing(_open(path, "ro")) as source, closing(sqlite3.connect(kept)) as target:
                    source.backup(target)
                _replace(reader, writer, lock)
                return kept
            except _ConcurrentWrite:
                kept.unlink()
            except BaseException:
                # Once the database is replaced, what was there is nowhere else.
                if _changes(lock) == before:
                    kept.unlink(missing_ok=True)
                raise
    raise StoreBusy(f"Others write to {path} all the time. Nothing was changed; try again when they have ended.")


def _replace(reader: sqlite3.Connection, writer: sqlite3.Connection, lock: sqlite3.Connection) -> None:
    """Let go of the lock and replace the database, unless somebody else has written in between."""
    before = _changes(lock)
    # One view of it all, rather than one of each page; and its log is found before the others may go on.
    reader.execute("BEGIN")
    reader.execute("PRAGMA schema_version").fetchone()
    writer.execute("PRAGMA schema_version").fetchone()
    looked = False

    def look(status: int, _remaining: int, _total: int) -> None:
        # After the first page nobody else can write, and nothing is committed before the last.
        nonlocal looked
        if not looked and (status == sqlite3.SQLITE_BUSY or _changes(lock) != before):
            raise _ConcurrentWrite
        looked = True

    lock.execute("COMMIT")
    try:
        reader.backup(writer, pages=1, progress=look)
    finally:
        reader.execute("COMMIT")


def _changes(connection: sqlite3.Connection) -> object:
    """Differs after another connection has written."""
    return connection.execute("PRAGMA data_version").fetchone()


def _is_whole(path: Path) -> bool:
    try:
        with closing(_open(path, "rw")) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        if _is_busy(error):
            raise
        return False
    return bool(verdict == "ok")


def _put_in_place(path: Path, ready: Path) -> Path | None:
    """Where there is nothing, or nothing that can be read: that is moved aside. Nobody of ours makes a new database in
    the name meanwhile; what somebody else puts there is left alone."""
    with lock_folder(path.parent):
        kept = _move_aside(path)
        where = f" What was there before is in {kept}." if kept else ""
        if path.exists():
            raise StoreBusy(f"Somebody else has just put a file at {path}. It was not touched; try again.{where}")
        try:
            ready.rename(path)
        except OSError as error:
            raise StoreUnavailable(f"Cannot put the copy at {path} ({error}).{where}") from error
    return kept


def _move_aside(path: Path) -> Path | None:
    """The file first: who looks for it then waits until there is one again."""
    if not path.exists():
        for suffix in SUFFIXES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return None
    kept = _free_name(path)
    for suffix in ("", *SUFFIXES):
        old = path.with_name(path.name + suffix)
        if old.exists():
            old.rename(kept.with_name(kept.name + suffix))
    return kept


def _check_copy(copy: Path) -> None:
    if not copy.is_file():
        raise InvalidInput(f"There is no file {copy}.")
    try:
        with closing(_open(copy.resolve(), "ro")) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            version = _version_of(connection)
    except sqlite3.Error as error:
        raise StoreDamaged(f"{copy} cannot be read as a database ({error}). Nothing was changed.") from error
    if version is None:
        raise InvalidInput(f"{copy} is not a Punchlist database.")
    if verdict != "ok":
        raise StoreDamaged(f"{copy} is damaged itself ({verdict}). Nothing was changed.")
    if problem := unsupported_version(str(copy), version):
        raise problem


def _version_of(connection: sqlite3.Connection) -> str | None:
    """The schema of a file that is ours; None for any other."""
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        return None
    try:
        row = connection.execute(READ_VERSION).fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        # There is no such table.
        return None
    return str(row[0]) if row else None


def _open(path: Path, mode: str, patience: float | None = None) -> sqlite3.Connection:
    """On a path from the root; waits for others as long as everybody does, if nothing else is said."""
    patience = BUSY_SECONDS if patience is None else patience
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=patience, isolation_level=None)


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _free_name(path: Path) -> Path:
    number = 1
    while (name := path.with_name(f"{path.name}.before-restore-{number}")).exists():
        number += 1
    return name


def _sqlite_path(store: Store) -> Path:
    if not isinstance(store.database, SQLite):
        raise InvalidInput("This database is a PostgreSQL server: use pg_dump and pg_restore for copies.")
    # Not `resolve`, which raises its own error for a link to itself.
    return Path(os.path.realpath(store.database.path))


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
