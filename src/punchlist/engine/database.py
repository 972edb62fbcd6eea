"""Where DBOS stores its state: a file beside the SQLite database, or a schema of its own on PostgreSQL."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine

from punchlist.storage.postgres import PostgreSQL
from punchlist.storage.sqlite import SQLite, use_write_ahead_log
from punchlist.storage.store import Store

SCHEMA: Final = "punchlist_engine"
_POOL_SIZE: Final = 10


class BeginImmediate:
    """Starts real transactions while DBOS creates its tables.

    Python's SQLite driver opens no transaction for CREATE TABLE. Without one, a process that is killed leaves half of
    the tables behind, and two processes that start together create them twice.
    """

    def __init__(self) -> None:
        self._enabled = False

    @contextmanager
    def enabled(self) -> Iterator[None]:
        self._enabled = True
        try:
            yield
        finally:
            self._enabled = False

    def on_begin(self, connection: Connection) -> None:
        if self._enabled:
            connection.exec_driver_sql("BEGIN IMMEDIATE")


class EngineDatabase(NamedTuple):
    url: str
    engine: Engine | None
    """None on PostgreSQL, where DBOS creates its own."""
    begin_immediate: BeginImmediate


def engine_file(store: Store) -> Path:
    assert isinstance(store.database, SQLite)
    path = store.database.path
    return path.with_name(f"{path.stem}-engine.db")


def engine_database(store: Store) -> EngineDatabase:
    begin_immediate = BeginImmediate()
    if isinstance(store.database, PostgreSQL):
        return EngineDatabase(_postgres_url(store.database), None, begin_immediate)
    url = URL.create("sqlite", database=str(engine_file(store))).render_as_string()
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False}, pool_size=_POOL_SIZE)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        # DBOS needs fractions of seconds, which these functions of SQLite before 3.42 do not have.
        connection.create_function("unixepoch", -1, lambda *_: time.time())
        connection.create_function("strftime", -1, _strftime)
        use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.isolation_level = "IMMEDIATE"

    event.listen(engine, "begin", begin_immediate.on_begin)
    return EngineDatabase(url, engine, begin_immediate)


def _postgres_url(database: PostgreSQL) -> str:
    """The address in a form that libpq and SQLAlchemy read alike."""
    from psycopg.conninfo import conninfo_to_dict

    parts = {name: str(value) for name, value in conninfo_to_dict(database.url).items()}
    url = URL.create(
        "postgresql+psycopg",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        database=parts.pop("dbname", None),
        query=parts,
    )
    return url.render_as_string(hide_password=False)


def _strftime(format: str, *_when: Any) -> str:
    if format == "%s":
        return f"{time.time():.6f}"
    return time.strftime(format, time.gmtime())
