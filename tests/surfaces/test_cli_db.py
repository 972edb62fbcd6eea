"""`punchlist db`: where the lists are, whether they are well, copies and going back to one."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.processes import Program
from tests.faults.script import Script, expected

from punchlist.storage.revision import REVISION
from punchlist.storage.upkeep import backup


def _agent(project: Path, changes: int) -> Script:
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    script.perform_all(changes)
    return script


def test_the_path_is_told_without_making_a_database(punchlist: Cli, project: Path) -> None:
    assert punchlist("db", "path").stdout == f"{project}/.punchlist/punchlist.db\n"
    server = {"PUNCHLIST_DATABASE_URL": "postgres://me:s3cret@db.example/lists"}
    told = json.loads(punchlist("db", "path", "--json", env=server).stdout)
    assert told["database"].startswith("postgresql")
    assert "s3cret" not in told["database"]
    assert not (project / ".punchlist").exists()


@pytest.mark.spec("X5")
def test_a_healthy_database_is_said_to_be_so_with_its_size(punchlist: Cli, project: Path) -> None:
    _agent(project, 8).close()
    shown = punchlist("db", "check")
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert "✓ Healthy" in shown.stdout
    told = json.loads(punchlist("db", "check", "--json").stdout)
    assert (told["healthy"], told["problems"], told["revision"]) == (True, [], REVISION)
    assert {size["table"]: size["rows"] for size in told["sizes"]}["turn_todos"] == 6


def test_a_check_changes_nothing_not_even_the_schema(punchlist: Cli, project: Path) -> None:
    _agent(project, 3).close()
    path = project / ".punchlist" / "punchlist.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE punchlist_schema SET version_num = '9999'")
        connection.commit()
    before = path.read_bytes()
    refused = punchlist("db", "check")
    assert "9999" in refused.stdout + refused.stderr
    assert path.read_bytes() == before


def test_an_upgrade_says_what_it_did(punchlist: Cli, project: Path) -> None:
    assert punchlist("db", "upgrade").stdout == f"Made a new database, schema {REVISION}.\n"
    assert punchlist("db", "upgrade").stdout == f"Already at schema {REVISION}.\n"


def test_a_copy_is_made_and_restored_and_the_old_database_kept(punchlist: Cli, project: Path) -> None:
    script = _agent(project, 5)
    copied = punchlist("db", "backup", "copy.db")
    assert copied.stdout == f"Wrote copy.db ({os.stat(project / 'copy.db').st_size:,} bytes).\n"
    script.perform(5)
    script.close()
    restored = punchlist("db", "restore", "--yes", "copy.db", "--json")
    assert restored.returncode == 0, restored.stderr
    kept = json.loads(restored.stdout)["kept"]
    for address, changes in ((script.house.settings.database, 5), (kept, 6)):
        found = Script(address, "default")
        assert found.lists() == expected(changes)
        found.close()


def test_a_restore_asks_where_there_is_somebody_to_ask(
    punchlist: Cli, project: Path, environment: dict[str, str]
) -> None:
    script = _agent(project, 5)
    backup(script.house.store, project / "copy.db")
    script.perform(5)
    script.close()
    unasked = punchlist("db", "restore", "copy.db")
    assert unasked.returncode == 2
    assert "--yes" in unasked.stderr
    with Program(project, environment, "db", "restore", "copy.db", columns=200) as restore:
        restore.answer("n\n")
        answer = restore.end()
    assert answer.code == 1, answer
    assert b"Traceback" not in answer.err
    found = _agent(project, 0)
    assert found.lists() == expected(6)
    found.close()
