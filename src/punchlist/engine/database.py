"""Where DBOS stores its state: a file beside the SQLite database, or a schema of its own on PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine

from punchlist.errors import NotAllowed
from punchlist.storage import trusted_files
from punchlist.storage.adoption import set_aside
from punchlist.storage.postgres import PostgreSQL
from punchlist.storage.sqlite import SQLite, lock_folder, use_write_ahead_log
from punchlist.storage.store import Store
from punchlist.trust import Trust

SCHEMA: Final = "punchlist_engine"
JSON_SERIALIZATION: Final = "portable_json"
"""The only serialization that rows of the engine may name; one that names none is decoded as JSON too."""
POOL_SIZE: Final = 10
"""Connections of DBOS in each worker, on both databases. Its polls use half of them at most."""


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
    parameters: Mapping[str, Any] = MappingProxyType({})
    """Of connections to PostgreSQL."""


def engine_file(store: Store) -> Path:
    assert isinstance(store.database, SQLite)
    path = store.database.path
    return path.with_name(f"{path.stem}-engine.db")


def claim_engine_file(store: Store, trust: Trust) -> Path | None:
    """Make sure that the engine's file is this user's; the new name of a file of another author, which is set aside.

    Nothing is lost with it: the runs are in the store, and the worker starts those that the engine does not know.
    """
    if not isinstance(store.database, SQLite):
        return None
    file = engine_file(store)
    kept = None
    with lock_folder(file.parent):
        if os.path.lexists(file) and not (trusted_files.is_regular(file) and trusted_files.is_adopted(file, trust)):
            kept = set_aside(file)
        if not file.exists() or not file.stat().st_size:
            trusted_files.create_file(file, trust)
    return kept


def check_stored_values(store: Store) -> None:
    """Refuse to start while the engine's tables hold a value that is not JSON.

    DBOS decodes each row as the row itself says, and decoding a pickle runs the code in it.
    """
    if isinstance(store.database, PostgreSQL):
        with store.read() as tx:
            tables = [
                f"{SCHEMA}.{name}"
                for (name,) in tx.raw(
                    "SELECT table_name FROM information_schema.columns "
                    f"WHERE table_schema = '{SCHEMA}' AND column_name = 'serialization' ORDER BY table_name"
                )
            ]
            found = [table for table in tables if tx.raw(_not_json(table))]
    else:
        with closing(sqlite3.connect(engine_file(store))) as connection:
            tables = [
                name
                for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                if any(column[1] == "serialization" for column in connection.execute(f'PRAGMA table_info("{name}")'))
            ]
            found = [table for table in tables if connection.execute(_not_json(table)).fetchone()]
    if found:
        raise NotAllowed(
            f"The engine's table {found[0]} holds rows that Punchlist did not write: their values are not JSON, and "
            "decoding them could run any program. No run was started. Find out who wrote them; then delete the rows "
            f"whose serialization is not '{JSON_SERIALIZATION}'."
        )


def _not_json(table: str) -> str:
    return f"SELECT 1 FROM {table} WHERE serialization <> '{JSON_SERIALIZATION}' LIMIT 1"


def engine_database(store: Store) -> EngineDatabase:
    begin_immediate = BeginImmediate()
    if isinstance(store.database, PostgreSQL):
        return EngineDatabase(_postgres_url(store.database), None, begin_immediate, store.database.parameters)
    url = URL.create("sqlite", database=str(engine_file(store))).render_as_string()
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False}, pool_size=POOL_SIZE)

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
