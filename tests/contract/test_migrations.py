"""Numbered SQL files bring every older database to the schema of a new one, once, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from sqlalchemy import inspect
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import ReflectedIndex
from tests.conftest import ROOT
from tests.contract.migrations import AFTER_NEXT, EXTRA, NEXT, folder_with, made_at
from tests.contract.missions import SLUG, developer_experience
from tests.tables import engine_of, is_search_index, our_tables

from punchlist.errors import SchemaTooNew, SchemaTooOld, StoreError
from punchlist.kernel.ids import new_id
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.storage.migrate import FOLDER, migrate, migrations, text_columns
from punchlist.storage.open import connect, open_store, read_schema_version
from punchlist.storage.schema_version import (
    APPLICATION_ID,
    BASELINE,
    SCHEMA_VERSION,
    VERSION_TABLE,
)
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store

PROCESSES = 6


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
        for table in found.get_table_names()
    }


def _options(index: ReflectedIndex) -> list[str]:
    return sorted(f"{name}={value}" for name, value in index.get("dialect_options", {}).items())


def _rows(store: Store, table: str) -> list[Any]:
    with store.read() as tx:
        return tx.all(Statement(f"SELECT * FROM {table}"))


# --- the files ----------------------------------------------------------------------------------------------


def test_the_files_are_numbered_from_the_baseline_to_the_version_this_program_writes() -> None:
    versions = [migration.version for migration in migrations()]
    assert versions == sorted(set(versions))
    assert (versions[0], versions[-1]) == (BASELINE, SCHEMA_VERSION)
    assert len(versions) == len([file for file in FOLDER.iterdir() if file.is_file()])


def test_the_tables_of_the_files_are_those_of_a_new_database() -> None:
    assert text_columns() == {
        name: [column.name for column in table.c if str(column.type) == "TEXT"]
        for name, table in our_tables().tables.items()
    }


@pytest.mark.parametrize("version", [migration.version for migration in migrations()])
def test_a_database_of_each_version_is_upgraded_to_the_schema_of_a_new_one(
    empty_database: str, tmp_path: Path, version: str
) -> None:
    older = made_at(empty_database, version, tmp_path)
    assert read_schema_version(older) == version
    older.close()
    upgraded = open_store(empty_database)
    shape = _shape(engine_of(upgraded))
    upgraded.close()
    assert {name for name in shape if not is_search_index(name)} == {*our_tables().tables, VERSION_TABLE}
    assert shape == _shape_of_a_new_one(empty_database)


_NEW: Final[dict[str, object]] = {}
"""By kind of database."""


def _shape_of_a_new_one(database: str) -> object:
    kind = database.partition(":")[0]
    if kind not in _NEW:
        _empty(database)
        new = open_store(database)
        _NEW[kind] = _shape(engine_of(new))
        new.close()
    return _NEW[kind]


def _empty(database: str) -> None:
    if database.startswith("sqlite"):
        Path(database.removeprefix("sqlite:///")).unlink()
        return
    with psycopg.connect(database, autocommit=True) as connection:
        tables = ", ".join((*our_tables().tables, VERSION_TABLE, "extra"))
        connection.execute(f"DROP TABLE IF EXISTS {tables}".encode())


# --- the runner, with a migration that only this test has ------------------------------------------------------


def test_a_later_migration_is_applied_once_and_keeps_every_row(store: Store, tmp_path: Path) -> None:
    with store.write() as tx:
        tx.run(Statement("INSERT INTO conversations (id, created_at) VALUES ('kept', 'now')"))
    folder = folder_with(tmp_path / "more", **EXTRA)
    for _ in range(2):
        migrate(store, folder)
    assert read_schema_version(store) == NEXT
    assert _rows(store, "extra") == [(1, "applied")]
    [[id, *_, note]] = _rows(store, "conversations")
    assert (id, note) == ("kept", "")


@pytest.mark.spec("M15")
def test_messages_of_an_older_database_get_their_author_and_todo(empty_database: str, tmp_path: Path) -> None:
    older, todo_id = made_at(empty_database, "0021", tmp_path), new_id()
    texts = {"feedback": f"[TODO {todo_id}]\n> Again.", "other": "A note."}
    with older.write() as tx:
        tx.run(Statement("INSERT INTO conversations (id, created_at) VALUES ('c', 'now')"))
        for position, (id, text) in enumerate(texts.items(), start=1):
            values = {"id": id, "position": position, "text": text, "actor": f"person:{id}"}
            tx.run(
                Statement(
                    "INSERT INTO messages (id, conversation_id, position, role, content, created_at) "
                    "VALUES (:id, 'c', :position, 'system', :text, 'now')"
                ),
                **values,
            )
            tx.run(
                Statement(
                    "INSERT INTO events (stream, version, at, conversation_id, actor, action, subject, reason, data, "
                    "hash) VALUES ('conversation:c', :position, 'now', 'c', :actor, 'say', :id, '', '{}', '')"
                ),
                **values,
            )
    migrate(older)
    found = _columns(older, "SELECT id, posted_by, todo_id FROM messages ORDER BY position")
    assert found == [("feedback", "person:feedback", todo_id), ("other", "person:other", None)]
    older.close()


@pytest.mark.spec("M15")
def test_plots_contain_the_readings_and_completed_todos_of_an_older_database(store: Store, tmp_path: Path) -> None:
    team, metric = developer_experience(store), "local-build-time"
    for value, at in enumerate(("2026-02-20T08:59:59.999999Z", "1969-12-31T23:59:59.9Z", "2026-02-20T09:00Z")):
        Metrics(store).record(team.person, SLUG, metric, value, at=at)
    for slugs in (["cache-hit-rate", metric], []):
        todo = team.todo_in(TodoStatus.IN_PROGRESS, f"Touches {slugs}")
        team.todos.complete(team.lead, SLUG, todo.id, metric, metrics_impacted=slugs)
    tables = [f"SELECT * FROM {name} ORDER BY 1, 2, 3" for name in ("metric_rollups", "metric_marks")]
    before = [_columns(store, sql) for sql in tables]
    assert [len(rows) for rows in before] == [3 + 3 + 2, 2]
    with store.write() as tx:
        for sql in ("DROP TABLE metric_rollups", "DROP TABLE metric_marks"):
            tx.run(Statement(sql))
        tx.run(Statement(f"UPDATE {VERSION_TABLE} SET version_num = '0022'"))
    migrate(store, folder_with(tmp_path / "with-plots", up_to="0023"))
    assert [_columns(store, sql) for sql in tables] == before


def _columns(store: Store, sql: str) -> list[tuple[object, ...]]:
    with store.read() as tx:
        return [tuple(row) for row in tx.raw(sql)]


def test_a_new_database_gets_every_migration(empty_database: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "more", **EXTRA)
    store = made_at(empty_database, SCHEMA_VERSION, tmp_path)
    migrate(store, folder)
    upgraded = _shape(engine_of(store))
    store.close()
    _empty(empty_database)
    new = connect(empty_database)
    migrate(new, folder)
    assert _shape(engine_of(new)) == upgraded
    new.close()


def test_processes_that_upgrade_at_the_same_moment_apply_a_migration_once(database: str, tmp_path: Path) -> None:
    made_at(database, SCHEMA_VERSION, tmp_path).close()
    folder = folder_with(tmp_path / "more", **EXTRA)
    work = (
        "import sys; from pathlib import Path; from punchlist.storage.migrate import migrate; "
        "from punchlist.storage.open import connect; store = connect(sys.argv[1]); sys.stdin.readline(); "
        "migrate(store, Path(sys.argv[2]))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", work, database, str(folder)], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(PROCESSES)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in started] == [(b"", 0)] * PROCESSES
    store = connect(database)
    assert _rows(store, "extra") == [(1, "applied")]
    store.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(store: Store, tmp_path: Path) -> None:
    before = _shape(engine_of(store))
    broken = "ALTER TABLE conversations ADD COLUMN other TEXT;\nINSERT INTO nowhere VALUES (1);\n"
    folder = folder_with(tmp_path / "broken", **EXTRA, **{f"m{AFTER_NEXT}_broken": broken})
    with pytest.raises((StoreError, psycopg.Error)):
        migrate(store, folder)
    assert read_schema_version(store) == SCHEMA_VERSION
    assert _shape(engine_of(store)) == before


# --- other versions -----------------------------------------------------------------------------------------


def test_a_database_older_than_the_baseline_is_refused_with_instructions(store: Store, database: str) -> None:
    _record_version(store, "0003")
    with pytest.raises(SchemaTooOld, match=r"schema 0003.*upgrades from 0004.*punchlist export.*punchlist import"):
        open_store(database)
    assert read_schema_version(store) == "0003"


def test_a_database_newer_than_this_program_is_refused(store: Store, database: str, tmp_path: Path) -> None:
    migrate(store, folder_with(tmp_path / "more", **EXTRA))
    with pytest.raises(SchemaTooNew, match=rf"schema {NEXT}.*up to {SCHEMA_VERSION}.*upgrade Punchlist"):
        open_store(database)


def _record_version(store: Store, version: str) -> None:
    with store.write() as tx:
        tx.run(Statement(f"UPDATE {VERSION_TABLE} SET version_num = :version"), version=version)


# --- a base install -----------------------------------------------------------------------------------------


def test_sqlite_needs_neither_sqlalchemy_nor_psycopg_to_be_created_and_upgraded(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "more", **EXTRA)
    work = (
        "import sys; sys.modules.update(dict.fromkeys(('sqlalchemy', 'psycopg', 'alembic'))); "
        "from pathlib import Path; from punchlist.storage.migrate import migrate; "
        "from punchlist.storage.open import open_store; migrate(open_store(sys.argv[1]), Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", work, str(tmp_path / "base.db"), str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    store = connect(str(tmp_path / "base.db"))
    assert _rows(store, "extra") == [(1, "applied")]
    store.close()


def test_a_server_without_its_driver_says_what_to_install(tmp_path: Path) -> None:
    work = (
        "import sys; sys.modules['psycopg'] = None; sys.argv = ['punchlist', 'todos']; "
        "from punchlist.app import main; main()"
    )
    environment = {"PUNCHLIST_DATABASE_URL": "postgresql://localhost/punchlist", "HOME": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", work], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert "PostgreSQL support is not installed. Install it with: pip install 'punchlist[postgres]'" in said.stderr
    assert said.stdout == ""


# --- at once ------------------------------------------------------------------------------------------------


def test_two_who_make_a_database_at_once_do_so_whatever_the_server_is_set_to(postgres_url: str) -> None:
    """With snapshots by default, a process that waited for the other would not see what it has made."""
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
