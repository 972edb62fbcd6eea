"""The two ways to a schema, made at once and migrated step by step, lead to the same place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import ReflectedIndex
from tests.tables import our_tables

from punchlist.storage.migrate import run_migrations
from punchlist.storage.open import connect, open_store
from punchlist.storage.schema_version import APPLICATION_ID, REVISION, VERSION_TABLE


@pytest.fixture
def engine(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if database.startswith("sqlite"):
        database = f"sqlite:///{tmp_path_factory.mktemp('migrated')}/punchlist.db"
    store = connect(database)
    yield store.engine
    store.close()


def _shape(engine: Engine) -> dict[str, Any]:
    """Everything about the tables that a query could notice."""
    found = inspect(engine)
    return {
        table: {
            "columns": [(c["name"], str(c["type"]), c["nullable"], c["default"]) for c in found.get_columns(table)],
            "key": found.get_pk_constraint(table)["constrained_columns"],
            "indexes": sorted(
                (str(i["name"]), i["column_names"], i["unique"], _options(i)) for i in found.get_indexes(table)
            ),
            "foreign": sorted((f["constrained_columns"], f["referred_table"]) for f in found.get_foreign_keys(table)),
            "checks": sorted((str(c["name"]), c["sqltext"]) for c in found.get_check_constraints(table)),
        }
        for table in our_tables().tables
    }


def _options(index: ReflectedIndex) -> list[str]:
    return sorted(f"{name}={value}" for name, value in index.get("dialect_options", {}).items())


def test_a_migrated_database_has_the_same_schema_as_a_new_one(engine: Engine, database: str) -> None:
    with engine.begin() as connection:
        run_migrations(connection)
    migrated = _shape(engine)
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            our_tables().drop_all(connection)
            connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")
    fresh = open_store(database)
    assert migrated == _shape(fresh.engine)
    fresh.close()


def test_the_newest_migration_is_the_revision_this_program_writes() -> None:
    config = Config()
    config.set_main_option("script_location", "punchlist.storage:migrations")
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]


def test_two_who_make_a_database_at_once_do_so_whatever_the_server_is_set_to(postgres_url: str) -> None:
    """With snapshots by default, whoever has waited for the other would not see what it has made."""
    with psycopg.connect(postgres_url, autocommit=True) as other, ThreadPoolExecutor(2) as pool:
        name = other.info.dbname
        other.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'".encode())
        other.execute("SELECT pg_advisory_lock(%s)", [APPLICATION_ID])
        opening = [pool.submit(open_store, postgres_url) for _ in range(2)]
        until = time.monotonic() + 30
        while _waiting(other) < 2:
            assert time.monotonic() < until
        other.execute("SELECT pg_advisory_unlock(%s)", [APPLICATION_ID])
        for one in opening:
            one.result(30).close()


def _waiting(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ).fetchone()
    return int(row[0]) if row else 0
