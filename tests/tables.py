"""Our tables, as SQLAlchemy finds them in a new database; and SQLAlchemy's way to a store's database."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from sqlalchemy import Engine, MetaData, create_engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.pool import NullPool

from punchlist.storage.open import open_store
from punchlist.storage.postgres import PostgreSQL
from punchlist.storage.schema_version import VERSION_TABLE
from punchlist.storage.sqlite import SQLite
from punchlist.storage.store import Store


def engine_of(store: Store) -> Engine:
    """Independent of the store's own transactions: for reflection, and for changes behind the program's back."""
    database = store.database
    if isinstance(database, PostgreSQL):
        url = database.url
        return create_engine(
            "postgresql+psycopg://", creator=lambda: psycopg.connect(url, client_encoding="utf8"), poolclass=NullPool
        )
    assert isinstance(database, SQLite)
    engine = create_engine("sqlite://", creator=database.connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def is_search_index(name: str) -> bool:
    """Tables that FTS5 of SQLite makes for itself."""
    return name.startswith("search_index")


@cache
def our_tables() -> MetaData:
    found = MetaData()
    with TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "new.db"))
        with warnings.catch_warnings():
            # An index of an expression is of no use to these tests.
            warnings.filterwarnings("ignore", "Skipped unsupported reflection of expression-based index")
            found.reflect(engine_of(store), only=lambda name, _: name != VERSION_TABLE and not is_search_index(name))
        store.close()
    return found
