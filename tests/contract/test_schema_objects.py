"""`db check` tells which table, index, trigger or view was added, removed or changed (X5, TRUST 30 and 32)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.migrations import made_at
from tests.cpu_time import nominal_milliseconds

from punchlist.audit.check import check
from punchlist.storage.migrate import migrations
from punchlist.storage.open import digest_of, open_store
from punchlist.storage.schema_objects import expected_objects, schema_differences, stored_objects
from punchlist.storage.schema_version import SCHEMA_DIGESTS, SCHEMA_VERSION
from punchlist.storage.store import Store

PROCEDURE = "CREATE FUNCTION approve() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
TRIGGER = "CREATE TRIGGER approve AFTER INSERT ON approvals"
BOTH = {
    "a table": ("CREATE TABLE extra (id TEXT)", "the table extra was added"),
    "a view": ("CREATE VIEW todos AS SELECT id FROM turn_todos", "the view todos was added"),
    "an index": ("CREATE INDEX extra ON turns (id)", "the index extra on turns was added"),
    "a column": ("ALTER TABLE approvals ADD COLUMN extra TEXT DEFAULT 'x'", "the table approvals was changed"),
    "a renamed column": ("ALTER TABLE traces RENAME COLUMN output TO shown", "the table traces was changed"),
    "no table": ("DROP TABLE traces", "the table traces is missing"),
    "no index": ("DROP INDEX idx_turn_todos_one_in_progress", "the index idx_turn_todos_one_in_progress is missing"),
}
SQLITE = {
    "a trigger": (
        f"{TRIGGER} BEGIN UPDATE approvals SET status = 'approved'; END",
        "the trigger approve on approvals was added",
    ),
    "a table named like statistics": (
        "INSERT INTO sqlite_master VALUES ('table', 'sqlite_stat1', 'sqlite_stat1', 0, 'CREATE VIEW sqlite_stat1 AS "
        "SELECT 1')",
        "the table sqlite_stat1 was added",
    ),
    "another condition": (
        "UPDATE sqlite_master SET sql = replace(sql, '''completed''', '''done''') WHERE name = 'turn_todos'",
        "the table turn_todos was changed",
    ),
}
POSTGRESQL = {
    "a trigger": (
        f"{PROCEDURE}; {TRIGGER} FOR EACH ROW EXECUTE FUNCTION approve()",
        "the trigger approve on approvals was added",
    ),
    "a rule": ("CREATE RULE silent AS ON DELETE TO events DO NOTHING", "the rule silent on events was added"),
    "a policy": ("CREATE POLICY hidden ON events USING (actor <> 'me')", "the policy hidden on events was added"),
    "row security": ("ALTER TABLE events ENABLE ROW LEVEL SECURITY", "the table events was changed"),
    "a default": ("ALTER TABLE events ALTER COLUMN actor SET DEFAULT current_user", "the table events was changed"),
    "no foreign key": ("ALTER TABLE turns DROP CONSTRAINT turns_conversation_id_fkey", "the table turns was changed"),
    "no condition": ("ALTER TABLE approvals DROP CONSTRAINT ck_approvals_status", "the table approvals was changed"),
    "another condition": (
        "DROP INDEX idx_turns_open; CREATE UNIQUE INDEX idx_turns_open ON turns (conversation_id) "
        "WHERE end_reason = 'x'",
        "the index idx_turns_open was changed",
    ),
}


def _execute(store: Store, sql: str) -> None:
    with closing(store.database.connect()) as connection:
        if store.database.kind == "sqlite":
            connection.execute("PRAGMA writable_schema = ON")
        connection.execute(sql)


@pytest.mark.spec("X5")
@pytest.mark.parametrize("change", [*BOTH, *SQLITE, *POSTGRESQL])
def test_the_check_names_the_schema_object_that_differs(store: Store, change: str) -> None:
    statement, named = {**BOTH, **(SQLITE if store.database.kind == "sqlite" else POSTGRESQL)}.get(change, ("", ""))
    if not statement:
        pytest.skip("the other database")
    assert check(store, SCHEMA_VERSION).problems == []
    _execute(store, statement)
    assert f"schema: {named}" in check(store, SCHEMA_VERSION).problems


def test_the_recorded_digests_are_those_of_a_new_database(store: Store) -> None:
    """After a new migration: write the digest that this test shows into `schema_version.py`."""
    kind = store.database.kind
    with closing(store.database.connect()) as connection:
        assert digest_of(stored_objects(connection, kind)) == SCHEMA_DIGESTS[kind]
        assert sorted(stored_objects(connection, kind)) == sorted(expected_objects(kind))


@pytest.mark.parametrize("version", [migration.version for migration in migrations()])
def test_a_database_of_each_version_has_the_objects_of_its_version(
    empty_database: str, tmp_path: Path, version: str
) -> None:
    older = made_at(empty_database, version, tmp_path)
    with closing(older.database.connect()) as connection:
        assert schema_differences(connection, older.database.kind, version) == []
    older.close()
    opened = open_store(empty_database)
    with closing(opened.database.connect()) as connection:
        assert schema_differences(connection, opened.database.kind) == []
    opened.close()


def test_statistics_are_no_difference(store: Store) -> None:
    _execute(store, "ANALYZE")
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_comparison_of_an_unchanged_file_takes_well_under_a_millisecond(store: Store) -> None:
    with closing(store.database.connect()) as connection:
        assert schema_differences(connection, "sqlite") == []
        assert nominal_milliseconds(lambda: schema_differences(connection, "sqlite")) < 1
