"""Bringing a database to this program's schema, on first use and by itself.

A new database is made from the schema at once, without loading the migration tool; an older one
goes through its migrations in one transaction; a newer one is refused. Two processes that come at
the same moment take turns, and the second finds the work done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import inspect, text

from punchlist.errors import SchemaTooNew, StoreDamaged, StoreUnavailable
from punchlist.storage.schema import APPLICATION_ID, GUARDS, REVISION, metadata

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

VERSION_TABLE: Final = "punchlist_schema"
_LOCK_KEY: Final = APPLICATION_ID
_READ_REVISION: Final = f"SELECT version_num FROM {VERSION_TABLE}"


def bring_up_to_date(engine: Engine) -> None:
    found = current_revision(engine)
    if found != REVISION:
        _refuse_newer(engine, found)
        _migrate(engine)


def current_revision(engine: Engine) -> str | None:
    """The revision a database is at; None where our version table is not there to be read."""
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute(_READ_REVISION)
        row = cursor.fetchone()
        return str(row[0]) if row else None
    except engine.dialect.loaded_dbapi.Error:
        return None
    finally:
        connection.close()


def _migrate(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        _claim_file(engine)
    else:
        engine = engine.execution_options(isolation_level="READ COMMITTED")
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        found = _revision_inside(connection)
        if found == REVISION:
            return
        if found is None:
            _create(connection)
        else:
            _refuse_newer(engine, found)
            run_migrations(connection)


def _refuse_newer(engine: Engine, found: str | None) -> None:
    if found is not None and found > REVISION:
        raise SchemaTooNew(
            f"The database {engine.url.render_as_string()} has schema {found}; this Punchlist knows up to {REVISION}. "
            "It was written by a newer version: upgrade Punchlist, or use another database."
        )


def _revision_inside(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(_READ_REVISION)).scalar_one_or_none()


def _claim_file(engine: Engine) -> None:
    """Make sure that a SQLite file is ours or new before anything is written to it."""
    from punchlist.storage.sqlite import use_write_ahead_log

    connection = engine.raw_connection()
    try:
        driver = connection.driver_connection
        assert driver is not None
        # In this order: whoever makes the tables at this moment sets the id in the same transaction.
        (tables,) = driver.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application_id,) = driver.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID and (tables or application_id):
            raise StoreUnavailable(
                f"{engine.url.database} is a database of another program. Nothing was changed; "
                "point PUNCHLIST_DATABASE_URL at a file of its own."
            )
        if tables and current_revision(engine) is None:
            raise _no_version(engine.url)
        use_write_ahead_log(driver)
    finally:
        connection.close()


def _create(connection: Connection) -> None:
    in_the_way = sorted({*metadata.tables, VERSION_TABLE} & set(inspect(connection).get_table_names()))
    if in_the_way:
        raise _no_version(connection.engine.url)
    metadata.create_all(connection, checkfirst=False)
    for guard in GUARDS:
        connection.execute(text(guard))
    connection.execute(text(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES (:revision)"), {"revision": REVISION})
    if connection.dialect.name == "sqlite":
        connection.execute(text(f"PRAGMA application_id = {APPLICATION_ID}"))


def _no_version(url: URL) -> StoreDamaged:
    return StoreDamaged(
        f"The database {url.render_as_string()} says no schema version but has tables: it is damaged, or another "
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
