"""Databases of older and newer programs, and new ones that several processes make at once (trust test 7)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from sqlalchemy import Engine, MetaData, text
from tests.contract.migrations import made_at
from tests.faults.processes import ROOT, module
from tests.faults.script import Lists, Script, expected
from tests.tables import engine_of, our_tables

from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import SchemaTooNew
from punchlist.plan import validation as plan_validation
from punchlist.storage import trusted_files
from punchlist.storage.migrate import migrations
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION, VERSION_TABLE
from punchlist.trust import Trust

NEWER = "9999"
OPENERS = 8
ROUNDS = 6
PART = 10_000


# --- older ----------------------------------------------------------------------------------------------


class Full(NamedTuple):
    """What a database at this program's schema has, with some checklists and many todos."""

    lists: Lists
    rows: dict[str, list[dict[str, Any]]]
    """By table, in the order of the primary key."""

    def of(self, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
        return [tuple(row[column] for column in columns) for row in self.rows[table]]


@pytest.fixture(scope="module")
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Full:
    script = _filled(str(tmp_path_factory.mktemp("full") / "full.db"), request.param)
    engine = engine_of(script.house.store)
    rows = {
        table.name: [
            dict(zip(table.c.keys(), row, strict=True)) for row in _rows(engine, table.name, list(table.c.keys()))
        ]
        for table in our_tables().sorted_tables
    }
    found = Full(script.lists(), rows)
    script.close()
    return found


@pytest.mark.parametrize(
    "full",
    [200, pytest.param(100_000, marks=pytest.mark.soak)],
    ids=lambda todos: f"{todos}-todos",
    indirect=True,
)
@pytest.mark.parametrize("version", [migration.version for migration in migrations()])
def test_an_older_database_is_brought_along_without_losing_a_row(
    empty_database: str,
    tmp_path: Path,
    shared_data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    full: Full,
) -> None:
    # The key that signed the rows.
    monkeypatch.setenv("XDG_DATA_HOME", str(shared_data_folder))
    older = made_at(empty_database, version, tmp_path)
    kept = _pour(full, engine_of(older))
    if version < "0007":
        # Checksums did not cover the order yet.
        with engine_of(older).begin() as connection:
            connection.execute(text("UPDATE turn_todos SET checksum = checksum - priority * 4294967296"))
    older.close()
    if empty_database.startswith("sqlite"):
        trusted_files.sign(Path(empty_database.removeprefix("sqlite:///")), Trust.of_user(os.environ))
    opened = Script(empty_database)
    assert opened.lists() == full.lists
    assert opened.problems() == []
    for table, columns in kept.items():
        after = _rows(engine_of(opened.house.store), table, columns)
        assert after == (full.of(table, columns) if table == "events" else sorted(full.of(table, columns))), table
    opened.close()


def _filled(address: str, todos: int) -> Script:
    script = Script(address)
    script.perform_all(20)
    script.house.conversations.end_turn(script.scope, reason="full")
    size = min(todos, 1_000)
    batch = plan_validation.parse_items([{"title": f"Todo {n}", "context": "ü" * 20} for n in range(size)])
    for number in range(todos // size):
        if number % 10 == 0:
            script.house.conversations.end_turn(script.scope, reason="full")
        turn = script.house.conversations.open_turn(script.scope)
        script.house.plans.create(_in_turn(script.scope, turn.id), batch)
    return script


def _in_turn(scope: Scope, turn_id: str) -> TurnScope:
    return TurnScope(scope.conversation_id, scope.actor, turn_id)


def _pour(full: Full, target: Engine) -> dict[str, list[str]]:
    """Copy all rows into a database that may not know every column yet; what it knows, by table."""
    known = MetaData()
    known.reflect(target)
    copied: dict[str, list[str]] = {}
    with target.begin() as connection:
        for table in our_tables().sorted_tables:
            if table.name not in known.tables:
                continue
            older = known.tables[table.name]
            columns = copied[table.name] = [column.name for column in table.c if column.name in older.c]
            rows = full.of(table.name, columns)
            connection.execute(older.delete())
            for first in range(0, len(rows), PART):
                part = [dict(zip(columns, row, strict=True)) for row in rows[first : first + PART]]
                connection.execute(older.insert(), part)
    return copied


def _rows(engine: Engine, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{column}"' for column in columns)
    keys = ", ".join(f'"{column.name}"' for column in our_tables().tables[table].primary_key)
    with engine.connect() as connection:
        found = connection.execute(text(f'SELECT {names} FROM "{table}" ORDER BY {keys}'))
        return sorted(tuple(row) for row in found) if table != "events" else [tuple(row) for row in found]


# --- newer ----------------------------------------------------------------------------------------------


def test_a_newer_server_is_refused_and_left_as_it_is(postgres_url: str) -> None:
    script = Script(postgres_url)
    script.perform_all(8)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '{NEWER}'".encode())
    before = _dump(engine_of(script.house.store))
    with pytest.raises(SchemaTooNew, match=rf"{NEWER}.*up to {SCHEMA_VERSION}"):
        open_store(postgres_url)
    assert _dump(engine_of(script.house.store)) == before
    script.close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_newer_file_is_refused_and_not_a_byte_of_it_is_changed(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "punchlist.db"
    script = Script(str(path))
    script.perform_all(8)
    script.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '{NEWER}'")
        connection.commit()
        # A copy that `db backup` wrote, and newer programs perhaps, keep no write-ahead log.
        connection.execute(f"PRAGMA journal_mode = {journal}")
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match=rf"{NEWER}.*up to {SCHEMA_VERSION}"):
        open_store(str(path))
    assert path.read_bytes() == before


def _dump(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    everything = MetaData()
    everything.reflect(engine)
    with engine.connect() as connection:
        return {
            name: sorted(map(tuple, connection.execute(table.select())), key=repr)
            for name, table in everything.tables.items()
        }


# --- new ------------------------------------------------------------------------------------------------


class _Opener:
    """A process that opens what it is told to."""

    def __init__(self, session: str) -> None:
        self._process = subprocess.Popen(
            module("tests.faults.opener", session),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def open(self, address: str, home: Path) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{home}\t{address}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def openers() -> Iterator[list[_Opener]]:
    made = [_Opener(f"s{number}") for number in range(OPENERS)]
    assert {opener.answer() for opener in made} == {"ready"}
    yield made
    for opener in made:
        opener.end()


@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(300, marks=pytest.mark.soak)], ids=lambda rounds: f"{rounds}-rounds"
)
def test_processes_that_open_a_new_database_at_the_same_moment_all_succeed(
    empty_database: str, tmp_path: Path, home: Path, openers: list[_Opener], rounds: int
) -> None:
    for number in range(rounds):
        address = _sibling(empty_database, tmp_path / str(number))
        for opener in openers:
            opener.open(address, home)
        assert [opener.answer() for opener in openers] == ["done"] * OPENERS
        found = [Script(address, f"s{number}") for number in range(OPENERS)]
        assert [script.lists() for script in found] == [expected(1)] * OPENERS
        assert found[0].problems() == []
        for script in found:
            script.close()


def test_processes_that_make_a_database_anew_after_it_was_removed_all_succeed(
    tmp_path: Path, home: Path, openers: list[_Opener]
) -> None:
    path = tmp_path / "punchlist.db"
    for _ in range(ROUNDS):
        for opener in openers:
            opener.open(str(path), home)
        assert [opener.answer() for opener in openers] == ["done"] * OPENERS
        # As people do it: the file, and not what may stand beside it.
        path.unlink()


def _sibling(address: str, folder: Path) -> str:
    """Another new database of the same kind: a file in a folder, or a schema named like it."""
    if address.startswith("sqlite"):
        return f"sqlite:///{folder}/punchlist.db"
    name = f"new_{folder.name}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    return f"{address}&options=-csearch_path%3D{name}"
