"""Bringing a database to this program's schema, on first use and by itself.

A new database is made from the schema at once, without loading the migration tool; an older one
goes through its migrations in one transaction; a newer one is refused. Two processes that come at
the same moment take turns, and the second finds the work done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from punchlist.errors import StoreDamaged, StoreUnavailable
from punchlist.storage.revision import (
    APPLICATION_ID,
    READ_REVISION,
    REVISION,
    VERSION_TABLE,
    current_revision,
    is_older,
    never_was,
    refuse_newer,
)
from punchlist.storage.schema import GUARDS, metadata
from punchlist.storage.sqlite import SQLite, use_write_ahead_log
from punchlist.storage.store import Database, Store

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


def migrate(store: Store) -> None:
    database = store.database
    if isinstance(database, SQLite):
        _claim_file(store, database)
    with store.engine.begin() as connection:
        if database.kind == "postgresql":
            # The same number for all who come: they take turns.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": APPLICATION_ID})
        found = _revision_inside(connection)
        if found == REVISION:
            return
        if found is None:
            _create(connection, database)
        else:
            refuse_newer(database, found)
            if not is_older(found):
                raise never_was(database, found)
            run_migrations(connection)


def _revision_inside(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(READ_REVISION)).scalar_one_or_none()


def _claim_file(store: Store, database: SQLite) -> None:
    """Make sure that a SQLite file is ours or new before anything is written to it."""
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


def _create(connection: Connection, database: Database) -> None:
    in_the_way = sorted({*metadata.tables, VERSION_TABLE} & set(inspect(connection).get_table_names()))
    if in_the_way:
        raise _no_version(database)
    metadata.create_all(connection, checkfirst=False)
    for guard in GUARDS:
        connection.execute(text(guard))
    connection.execute(text(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES (:revision)"), {"revision": REVISION})
    if database.kind == "sqlite":
        connection.execute(text(f"PRAGMA application_id = {APPLICATION_ID}"))


def _no_version(database: Database) -> StoreDamaged:
    return StoreDamaged(
        f"The database {database.name} says no schema version but has tables: it is damaged, or another "
        "program's. Nothing was changed."
    )


def run_migrations(connection: Connection, target: str = "head") -> None:
    """Take a database, or an empty one, to a revision, inside the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "punchlist.storage:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, target)
