"""Integrity check, backup and restore of a database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from punchlist.errors import InvalidInput, StoreBusy, StoreDamaged, StoreUnavailable
from punchlist.kernel.events import Chain
from punchlist.storage import trusted_files
from punchlist.storage.open import create_folder, ensure_schema
from punchlist.storage.schema_objects import schema_differences
from punchlist.storage.schema_version import APPLICATION_ID, READ_VERSION, unsupported_version
from punchlist.storage.sqlite import BUSY_SECONDS, SUFFIXES, SQLite, lock_folder, use_write_ahead_log
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction
from punchlist.trust import Trust

_MAX_PROBLEMS: Final = 10
_ATTEMPTS: Final = 20


def integrity_problems(store: Store) -> list[str]:
    """Problems that SQLite's own checks find. PostgreSQL checks pages when it reads them."""
    if store.database.kind != "sqlite":
        return []
    with store.read() as tx:
        rows = tx.raw(f"PRAGMA integrity_check({_MAX_PROBLEMS})")
        orphans = tx.raw("PRAGMA foreign_key_check")
    problems = [f"integrity: {row[0]}" for row in rows if row[0] != "ok"]
    return problems + [
        f"integrity: a row of {row[0]} references a missing row of {row[2]}" for row in orphans[:_MAX_PROBLEMS]
    ]


def schema_problems(store: Store) -> list[str]:
    """The tables, indexes, triggers and views that differ from those of the current version."""
    connection = store.connections.acquire()
    try:
        cursor = connection.cursor()
        store.database.begin_read(cursor)
        store.database.lift_time_limits(cursor)
        return schema_differences(connection, store.database.kind)[:_MAX_PROBLEMS]
    except Exception as error:
        store.raise_translated(error)
    finally:
        # Its transaction ends with it.
        store.connections.discard(connection)


def count_rows(tx: Transaction, table: str) -> int:
    row = tx.one(Statement(f"SELECT count(*) FROM {table}"))
    return int(row[0]) if row else 0


def table_size(tx: Transaction, table: str, text_columns: list[str]) -> tuple[int, int]:
    """The number of rows, and the characters in their text columns."""
    lengths = "".join(f", coalesce(sum(length({name})), 0)" for name in text_columns)
    row = tx.one(Statement(f"SELECT count(*){lengths} FROM {table}"))
    assert row is not None
    rows, *totals = map(int, row)
    return rows, sum(totals)


def backup(store: Store, target: Path) -> None:
    """Write a consistent copy while other processes write; the file appears complete or not at all."""
    source = _sqlite_path(store)
    if not source.is_file():
        raise StoreUnavailable(f"{source} is not a file: there is no database to copy.")
    if target.exists():
        raise InvalidInput(f"{target} already exists. Name a new file; nothing was written.")
    partial = target.with_name(f"{target.name}.partial")
    try:
        with closing(_open(source, "ro")) as reader, closing(sqlite3.connect(partial)) as writer:
            reader.backup(writer)
            # The copy is a single file without a write-ahead log.
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
        raise StoreDamaged(f"{source} is not a Punchlist database, or its schema is damaged. Nothing was copied.")


def restore(store: Store, copy: Path, trust: Trust | None = None) -> Path | None:
    """Replace the database by a copy. The previous database is kept under the returned name.

    The restored database is the user's own: who restores a copy has chosen its content.

    If the database can still be read, SQLite itself replaces it, and processes that have it open continue with the
    restored one. A database too damaged for that is moved aside.
    """
    path = _sqlite_path(store)
    there = path.exists()
    if there and not path.is_file():
        raise InvalidInput(f"{path} is not a file and cannot be replaced by a database. Nothing was changed.")
    _check_copy(copy)
    if there and copy.samefile(path):
        raise InvalidInput(f"{copy} is the database itself. Name a copy that `punchlist db backup` wrote.")
    store.close()
    create_folder(path.parent)
    try:
        with _up_to_date(copy, path, store.chain) as ready:
            trust = trust or Trust.of_user(os.environ)
            if not there or not trusted_files.is_adopted(path, trust) or not _is_whole(path):
                return _put_in_place(path, ready, trust)
            trusted_files.copy_number(path, ready)
            with closing(_open(ready, "rw")) as reader:
                return _exchange(path, reader, trust)
    except (sqlite3.Error, OSError) as error:
        if _is_busy(error):
            store.raise_translated(error)
        where = f" The previous database is still in {path}." if there else ""
        raise StoreUnavailable(f"Cannot restore {copy} ({error}).{where}") from error


@contextmanager
def _up_to_date(copy: Path, path: Path, chain: Chain | None) -> Iterator[Path]:
    """A copy of the copy, upgraded to the current schema, which processes with the database open expect.

    `chain` signs the new events of a copy whose schema had no signatures yet.
    """
    with TemporaryDirectory(prefix=f"{path.name}.restoring-", dir=path.parent) as folder:
        ready = Path(folder) / path.name
        with closing(_open(copy.resolve(), "ro")) as reader, closing(_open(ready, "rwc")) as writer:
            reader.backup(writer)
            use_write_ahead_log(writer)
        with closing(Store(SQLite(ready))) as store:
            store.chain = chain
            try:
                ensure_schema(store)
            except Exception as error:
                store.raise_translated(error)
        _sync(ready)
        yield ready


class _ConcurrentWrite(Exception):
    """Another process wrote after the previous database was saved."""


def _exchange(path: Path, reader: sqlite3.Connection, trust: Trust) -> Path:
    """Save a copy of a database and replace it, so that every write of other processes is in one of the two.

    The copy is made under the write lock. SQLite cannot pass that lock on to the connection that replaces the
    database: if another process writes in between, the copy is made again.
    """
    with closing(_open(path, "rw")) as lock, closing(_open(path, "rw", patience=0)) as writer:
        # Lets other processes read while the database is replaced.
        use_write_ahead_log(lock)
        for _ in range(_ATTEMPTS):
            lock.execute("BEGIN IMMEDIATE")
            before = _changes(lock)
            # Chosen under the lock: another restore may have used a name just before.
            kept = _free_name(path)
            try:
                with closing(_open(path, "ro")) as source, closing(sqlite3.connect(kept)) as target:
                    source.backup(target)
                trusted_files.sign(kept, trust)
                _replace(reader, writer, lock)
                return kept
            except _ConcurrentWrite:
                kept.unlink()
            except BaseException:
                # After the replacement, this is the only copy of the previous database.
                if _changes(lock) == before:
                    kept.unlink(missing_ok=True)
                    trusted_files.forget(kept, trust)
                raise
    trusted_files.forget(kept, trust)
    raise StoreBusy(f"Other processes write to {path} continuously. Nothing was changed; stop them and try again.")


def _replace(reader: sqlite3.Connection, writer: sqlite3.Connection, lock: sqlite3.Connection) -> None:
    """Release the lock and replace the database, unless another process has written in between."""
    before = _changes(lock)
    # One snapshot of the whole copy; and both logs are open before other processes can continue.
    reader.execute("BEGIN")
    reader.execute("PRAGMA schema_version").fetchone()
    writer.execute("PRAGMA schema_version").fetchone()
    checked = False

    def check(status: int, _remaining: int, _total: int) -> None:
        # After the first page no other process can write, and nothing is committed before the last.
        nonlocal checked
        if not checked and (status == sqlite3.SQLITE_BUSY or _changes(lock) != before):
            raise _ConcurrentWrite
        checked = True

    lock.execute("COMMIT")
    try:
        reader.backup(writer, pages=1, progress=check)
    finally:
        reader.execute("COMMIT")


def _changes(connection: sqlite3.Connection) -> object:
    """A value that changes when another connection commits."""
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


def _put_in_place(path: Path, ready: Path, trust: Trust) -> Path | None:
    """Move the copy to the path, where there is no readable database; a damaged one is moved aside.

    The folder lock stops other Punchlist processes from creating a database; a file that another program puts there
    meanwhile is not touched.
    """
    with lock_folder(path.parent):
        # First: a process that finds the file at its path must find it signed.
        trusted_files.sign(ready, trust, name=path)
        kept = _move_aside(path)
        where = f" The previous database is in {kept}." if kept else ""
        if path.exists():
            raise StoreBusy(f"Another program created {path} meanwhile. It was not touched; try again.{where}")
        try:
            ready.rename(path)
        except OSError as error:
            raise StoreUnavailable(f"Cannot move the copy to {path} ({error}).{where}") from error
    return kept


def _move_aside(path: Path) -> Path | None:
    """Move the file first: a process that misses it waits until there is one again."""
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
        raise StoreDamaged(f"{copy} is not a readable database ({error}). Nothing was changed.") from error
    if version is None:
        raise InvalidInput(f"{copy} is not a Punchlist database.")
    if verdict != "ok":
        raise StoreDamaged(f"{copy} is damaged ({verdict}). Nothing was changed.")
    if problem := unsupported_version(str(copy), version):
        raise problem


def _version_of(connection: sqlite3.Connection) -> str | None:
    """The schema version of a Punchlist file; None for any other file."""
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        return None
    try:
        row = connection.execute(READ_VERSION).fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        # The version table does not exist.
        return None
    return str(row[0]) if row else None


def _open(path: Path, mode: str, patience: float | None = None) -> sqlite3.Connection:
    """Open an absolute path; waits for locks as long as the store does unless `patience` is given."""
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
        raise InvalidInput("This database is on a PostgreSQL server: use pg_dump and pg_restore.")
    # Not `resolve`, which raises for a link to itself.
    return Path(os.path.realpath(store.database.path))


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
