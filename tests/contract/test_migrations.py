"""The two ways to a schema, made at once and migrated step by step, lead to the same place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import ReflectedIndex

from punchlist.storage.migrate import run_migrations
from punchlist.storage.opening import connect, open_store
from punchlist.storage.revision import REVISION, VERSION_TABLE
from punchlist.storage.schema import metadata


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
        for table in metadata.tables
    }


def _options(index: ReflectedIndex) -> list[str]:
    return sorted(f"{name}={value}" for name, value in index.get("dialect_options", {}).items())


def test_a_migrated_database_has_the_same_schema_as_a_new_one(engine: Engine, database: str) -> None:
    with engine.begin() as connection:
        run_migrations(connection)
    migrated = _shape(engine)
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            metadata.drop_all(connection)
            connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")
    fresh = open_store(database)
    assert migrated == _shape(fresh.engine)
    fresh.close()


def test_the_newest_migration_is_the_revision_this_program_writes() -> None:
    config = Config()
    config.set_main_option("script_location", "punchlist.storage:migrations")
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]
