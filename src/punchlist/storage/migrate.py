"""Creates and upgrades databases: the numbered SQL files in `migrations/`, in plain Python.

The baseline creates every table; each later file (`0005_NAME.sql`) changes them. A new database gets all files, an
older one those above its version, in one transaction together with the recorded version: a failure changes nothing.
Processes that come at the same moment take turns, and the later ones find the work done.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from punchlist.errors import StoreUnavailable
from punchlist.storage.event_log import sign_new_database
from punchlist.storage.open import read_schema_version
from punchlist.storage.schema_version import (
    APPLICATION_ID,
    READ_VERSION,
    VERSION_TABLE,
    unsupported_version,
    untracked_tables,
)
from punchlist.storage.sqlite import SQLite, use_write_ahead_log
from punchlist.storage.statements import Kind, Statement
from punchlist.storage.store import Store, Transaction

FOLDER: Final = Path(__file__).with_name("migrations")
_CREATE_TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.DOTALL | re.MULTILINE)
_TEXT_COLUMN: Final = re.compile(r"^ +(\w+) TEXT\b", re.MULTILINE)
_ONLY: Final = re.compile(r"^-- Only (SQLite|PostgreSQL):$", re.MULTILINE)
_DROP_TABLE: Final = re.compile(r"^DROP TABLE (\w+)", re.MULTILINE)
_ADD_TEXT_COLUMN: Final = re.compile(r"^ALTER TABLE (\w+) ADD COLUMN (\w+) TEXT\b", re.MULTILINE)

_FIND_VERSION: Final = Statement(READ_VERSION)
CREATE_VERSION: Final = f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
_INSERT_VERSION: Final = Statement(f"INSERT INTO {VERSION_TABLE} VALUES (:version)")
_UPDATE_VERSION: Final = Statement(f"UPDATE {VERSION_TABLE} SET version_num = :version")


class Migration(NamedTuple):
    version: str
    sql: str

    def statements(self, kind: Kind) -> list[Statement]:
        """The statements for one database: all but those after a comment that says `Only` and the other's name."""
        sql = self.sql.replace("BIGSERIAL", "INTEGER") if kind == "sqlite" else self.sql
        statements = [statement for statement in sql.split(";\n") if statement.strip()]
        return [
            Statement(each) for each in statements if (only := _ONLY.search(each)) is None or only[1].lower() == kind
        ]


def migrations(folder: Path | None = None) -> list[Migration]:
    """Every numbered file, oldest first."""
    files = sorted((folder or FOLDER).glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return [Migration(file.name[:4], file.read_text(encoding="utf-8")) for file in files]


@cache
def text_columns() -> dict[str, list[str]]:
    """The names of all tables, each with its text columns."""
    sql = "\n".join(migration.sql for migration in migrations())
    tables = {name: _TEXT_COLUMN.findall(columns) for name, columns in _CREATE_TABLE.findall(sql)}
    for table, column in _ADD_TEXT_COLUMN.findall(sql):
        tables[table].append(column)
    for table in _DROP_TABLE.findall(sql):
        del tables[table]
    return tables


def migrate(store: Store, folder: Path | None = None) -> None:
    """Bring a database, new or older, to the newest version."""
    available = migrations(folder)
    _check_version(store, read_schema_version(store), available)
    if isinstance(store.database, SQLite):
        _check_ownership(store, store.database)
    with store.write(long=True) as tx:
        if not store.database.one_writer:
            # All processes use the same key, so that they take turns.
            tx.raw(f"SELECT pg_advisory_xact_lock({APPLICATION_ID})")
        version = _recorded_version(tx, store)
        _check_version(store, version, available)
        pending = [migration for migration in available if version is None or migration.version > version]
        if pending:
            _apply(tx, store, version, pending)


def _check_version(store: Store, version: str | None, available: list[Migration]) -> None:
    if version is None or version == available[-1].version:
        return
    if problem := unsupported_version(store.database.name, version):
        raise problem


def _apply(tx: Transaction, store: Store, version: str | None, pending: list[Migration]) -> None:
    for migration in pending:
        for statement in migration.statements(store.database.kind):
            tx.run(statement)
    if version is None:
        tx.run(Statement(CREATE_VERSION))
    tx.run(_INSERT_VERSION if version is None else _UPDATE_VERSION, version=pending[-1].version)
    if store.chain is not None:
        sign_new_database(tx, store.chain)
    if isinstance(store.database, SQLite):
        tx.raw(f"PRAGMA application_id = {APPLICATION_ID}")


def _check_ownership(store: Store, database: SQLite) -> None:
    """Refuse the SQLite file of another program before anything is written to it."""
    connection = database.connect(make=True)
    try:
        # In this order: a process that creates the tables at this moment sets the id in the same transaction.
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID and (tables or application_id):
            raise StoreUnavailable(
                f"{database.path} is a database of another program. Nothing was changed; "
                "point PUNCHLIST_DATABASE_URL at a separate file."
            )
        if tables and read_schema_version(store) is None:
            raise untracked_tables(database)
        use_write_ahead_log(connection)
    finally:
        connection.close()


def _recorded_version(tx: Transaction, store: Store) -> str | None:
    """None for a new database."""
    tables = {name for (name,) in tx.raw(store.database.list_tables)}
    if VERSION_TABLE in tables and (row := tx.one(_FIND_VERSION)):
        return str(row[0])
    if tables & {*text_columns(), VERSION_TABLE}:
        raise untracked_tables(store.database)
    return None
