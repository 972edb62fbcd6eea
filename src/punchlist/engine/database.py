"""Where the engine keeps what it knows: a file beside our SQLite file, a schema of its own on PostgreSQL."""

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
_POOL: Final = 10


class EngineConnection:
    """SQLite's driver begins no transaction for tables that are made: whoever is killed meanwhile leaves half of them,
    and two who begin at once make them both. While the database is opened, every transaction is a whole one."""

    def __init__(self) -> None:
        self._open = True

    @contextmanager
    def whole(self) -> Iterator[None]:
        self._open = False
        try:
            yield
        finally:
            self._open = True

    def begin(self, connection: Connection) -> None:
        if not self._open:
            connection.exec_driver_sql("BEGIN IMMEDIATE")


class EngineDatabase(NamedTuple):
    url: str
    engine: Engine | None
    """None where the engine makes its own."""
    opening: EngineConnection


def engine_file(store: Store) -> Path:
    assert isinstance(store.database, SQLite)
    ours = store.database.path
    return ours.with_name(f"{ours.stem}-engine.db")


def engine_database(store: Store) -> EngineDatabase:
    if isinstance(store.database, PostgreSQL):
        return EngineDatabase(_engine_url(store.database), None, EngineConnection())
    file = engine_file(store)
    url = URL.create("sqlite", database=str(file)).render_as_string()
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False}, pool_size=_POOL)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        # SQLite before 3.42 counts in whole seconds, and what it lacks stops the engine from starting.
        connection.create_function("unixepoch", -1, lambda *_: time.time())
        connection.create_function("strftime", -1, _strftime)
        use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.isolation_level = "IMMEDIATE"

    opening = EngineConnection()
    event.listen(engine, "begin", opening.begin)
    return EngineDatabase(url, engine, opening)


def _engine_url(database: PostgreSQL) -> str:
    """The engine has another reader for addresses than PostgreSQL: it is given one that both read alike."""
    from psycopg.conninfo import conninfo_to_dict

    said = {name: str(value) for name, value in conninfo_to_dict(database.url).items()}
    url = URL.create(
        "postgresql+psycopg",
        username=said.pop("user", None),
        password=said.pop("password", None),
        database=said.pop("dbname", None),
        query=said,
    )
    return url.render_as_string(hide_password=False)


def _strftime(format: str, *_when: Any) -> str:
    if format == "%s":
        return f"{time.time():.6f}"
    return time.strftime(format, time.gmtime())
