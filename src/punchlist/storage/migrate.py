"""Bringing an older database to this program's schema, on first use and by itself: all its migrations in one
transaction. Two processes that come at the same moment take turns, and the second finds the work done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from punchlist.storage.schema_version import APPLICATION_ID, READ_REVISION, REVISION, is_older, never_was, refuse_newer
from punchlist.storage.store import Store

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


def migrate(store: Store) -> None:
    database = store.database
    with store.engine.begin() as connection:
        if database.kind == "postgresql":
            # The same number for all who come: they take turns.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": APPLICATION_ID})
        found: str = connection.execute(text(READ_REVISION)).scalar_one()
        if found == REVISION:
            return
        refuse_newer(database, found)
        if not is_older(found):
            raise never_was(database, found)
        run_migrations(connection)


def run_migrations(connection: Connection, target: str = "head") -> None:
    """Take a database, or an empty one, to a revision, inside the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "punchlist.storage:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, target)
