"""Making a new database: the whole schema in one transaction, as SQL, without what migrates older ones.

Two processes that come at the same moment take turns, and the second finds the work done.
"""

from __future__ import annotations

from typing import Final

from punchlist.errors import StoreDamaged, StoreUnavailable
from punchlist.storage import schema
from punchlist.storage.schema_version import APPLICATION_ID, READ_REVISION, REVISION, VERSION_TABLE, current_revision
from punchlist.storage.sqlite import SQLite, use_write_ahead_log
from punchlist.storage.statements import Statement
from punchlist.storage.store import Database, Store, Transaction

_FIND_REVISION: Final = Statement(READ_REVISION)
_SET_REVISION: Final = Statement(f"INSERT INTO {VERSION_TABLE} VALUES (:revision)")


def claim(store: Store) -> None:
    """Make sure that a SQLite file is ours or new before anything is written to it."""
    database = store.database
    if not isinstance(database, SQLite):
        return
    connection = database.connect(make=True)
    try:
        # In this order: whoever makes the tables at this moment sets the id in the same transaction.
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID and (tables or application_id):
            raise StoreUnavailable(
                f"{database.path} is a database of another program. Nothing was changed; "
                "point PUNCHLIST_DATABASE_URL at a file of its own."
            )
        if tables and current_revision(store) is None:
            raise _no_version(database)
        use_write_ahead_log(connection)
    finally:
        connection.close()


def make(store: Store) -> str:
    """The revision that the database has then: whoever was first may have been an older program."""
    database = store.database
    with store.write() as tx:
        if not database.one_writer:
            # The same number for all who come: they take turns.
            tx.raw(f"SELECT pg_advisory_xact_lock({APPLICATION_ID})")
        there = {name for (name,) in tx.raw(database.list_tables)}
        if VERSION_TABLE in there and (row := tx.one(_FIND_REVISION)):
            return str(row[0])
        if there & {*schema.tables(), VERSION_TABLE}:
            raise _no_version(database)
        _make_tables(tx, database)
    return REVISION


def _make_tables(tx: Transaction, database: Database) -> None:
    for statement in schema.statements(database.kind):
        tx.run(statement)
    tx.run(Statement(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    tx.run(_SET_REVISION, revision=REVISION)
    if isinstance(database, SQLite):
        tx.raw(f"PRAGMA application_id = {APPLICATION_ID}")


def _no_version(database: Database) -> StoreDamaged:
    return StoreDamaged(
        f"The database {database.name} says no schema version but has tables: it is damaged, or another "
        "program's. Nothing was changed."
    )
