"""A PostgreSQL server that cuts connections: said, and work goes on without a restart (trust test 2)."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.faults.processes import Program, punchlist
from tests.faults.script import Script, expected


def _cut_connections(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.mark.parametrize("cuts", [20, pytest.param(1_000, marks=pytest.mark.soak)], ids=["seconds", "full"])
def test_a_store_whose_idle_connections_are_cut_goes_on_as_if_nothing_was(postgres_url: str, cuts: int) -> None:
    script = Script(postgres_url)
    for change in range(cuts):
        script.perform(change)
        _cut_connections(postgres_url)
    assert script.lists() == expected(cuts)
    assert script.problems() == []
    script.close()


@pytest.mark.parametrize("arguments", [("todos", "--watch"), ("log", "--follow")], ids=" ".join)
def test_a_watch_outlives_a_connection_that_is_cut(
    postgres_url: str, tmp_path: Path, environment: dict[str, str], arguments: tuple[str, str]
) -> None:
    script = Script(postgres_url, "default")
    script.house.checklists.add(script.scope, "Before", reason="before it was cut")
    env = {**environment, "PUNCHLIST_DATABASE_URL": postgres_url, "PUNCHLIST_SESSION": "default"}
    with Program(tmp_path, env, *arguments) as watch:
        watch.wait_for("efore")
        _cut_connections(postgres_url)
        later = Script(postgres_url, "default")
        later.house.checklists.add(later.scope, "After", reason="after it was cut")
        watch.wait_for("fter")
    for opened in (script, later):
        opened.close()


def test_a_role_that_may_not_make_tables_is_told_so(
    postgres_url: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("REVOKE ALL ON SCHEMA public FROM public")
        connection.execute("DROP ROLE IF EXISTS punchlist_poor")
        connection.execute("CREATE ROLE punchlist_poor LOGIN")
    poor = postgres_url.replace("://punchlist@", "://punchlist_poor@").replace("://postgres:", "://punchlist_poor:")
    answer = punchlist(tmp_path, {**environment, "PUNCHLIST_DATABASE_URL": poor}, "todos")
    assert answer.code == 1
    assert b"unexpected" not in answer.err
    assert b"CREATE TABLE" not in answer.err
