"""`punchlist db`: where the lists are, whether they are well, copies and going back to one."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.processes import answered
from tests.faults.script import Script, expected

from punchlist.storage.maintenance import backup
from punchlist.storage.schema_version import APPLICATION_ID, SCHEMA_VERSION


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
    assert (told["healthy"], told["problems"], told["revision"]) == (True, [], SCHEMA_VERSION)
    assert {size["table"]: size["rows"] for size in told["sizes"]}["turn_todos"] == 6


def test_a_check_changes_nothing_not_even_the_schema(punchlist: Cli, project: Path) -> None:
    _agent(project, 3).close()
    path = project / ".punchlist" / "punchlist.db"
    _set_schema(path, "9999")
    before = path.read_bytes()
    refused = punchlist("db", "check")
    assert "9999" in refused.stdout + refused.stderr
    assert path.read_bytes() == before


@pytest.mark.spec("X5")
@pytest.mark.parametrize(
    ("schema", "advice"),
    [("", "db restore"), ("0000", "db restore"), ("0003", "punchlist export"), ("9999", "newer"), ("zzz", "newer")],
)
def test_a_database_with_another_schema_is_not_called_healthy(
    punchlist: Cli, project: Path, schema: str, advice: str
) -> None:
    _agent(project, 3).close()
    _set_schema(project / ".punchlist" / "punchlist.db", schema)
    shown = punchlist("db", "check")
    assert shown.returncode == 1
    assert "Healthy" not in shown.stdout
    assert shown.stderr == ""
    told = punchlist("db", "check", "--json")
    assert told.returncode == 1
    report = json.loads(told.stdout)
    assert (report["healthy"], report["revision"], report["sizes"]) == (False, schema, [])
    [problem] = report["problems"]
    assert schema in problem
    assert SCHEMA_VERSION in problem
    assert advice in problem
    assert problem in shown.stdout


def _set_schema(path: Path, schema: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE punchlist_schema SET version_num = ?", [schema])
        connection.commit()


def test_an_upgrade_says_what_it_did(punchlist: Cli, project: Path) -> None:
    assert punchlist("db", "upgrade").stdout == f"Created a new database, schema {SCHEMA_VERSION}.\n"
    assert punchlist("db", "upgrade").stdout == f"Already at schema {SCHEMA_VERSION}.\n"


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
    assert unasked.returncode == 1
    assert "--yes" in unasked.stderr
    answer = answered(project, environment, b"copy.db?", b"n\n", "db", "restore", "copy.db")
    assert answer.returncode == 1, answer
    assert b"Traceback" not in answer.stderr
    found = _agent(project, 0)
    assert found.lists() == expected(6)
    found.close()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/null")


def _folder(path: Path) -> None:
    path.mkdir()


def _sql(*statements: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    return make


NO_FILES = [
    pytest.param(_fifo, id="a pipe"),
    pytest.param(_device, id="a device"),
    pytest.param(_folder, id="a folder"),
]


@pytest.mark.parametrize(
    "make",
    [
        *NO_FILES,
        pytest.param(_sql("VACUUM"), id="an empty database"),
        pytest.param(_sql(f"PRAGMA application_id = {APPLICATION_ID}"), id="our mark and nothing else"),
        pytest.param(
            _sql(f"PRAGMA application_id = {APPLICATION_ID}", "CREATE TABLE punchlist_schema (version_num)"),
            id="our mark and no version",
        ),
        pytest.param(_sql("CREATE TABLE songs (title)"), id="another program's database"),
    ],
)
def test_what_is_not_our_database_is_not_copied(
    punchlist: Cli, project: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "odd.db")
    refused = punchlist("db", "backup", "copy.db", env={"PUNCHLIST_DATABASE_URL": str(tmp_path / "odd.db")})
    assert refused.returncode == 1
    assert "odd.db" in refused.stderr or "/dev/null" in refused.stderr
    assert "unexpected" not in refused.stderr
    assert list(project.glob("copy*")) == []


@pytest.mark.parametrize("make", NO_FILES)
def test_nothing_is_restored_over_what_is_no_file(
    punchlist: Cli, project: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    script = _agent(project, 3)
    backup(script.house.store, project / "copy.db")
    script.close()
    odd = tmp_path / "odd.db"
    make(odd)
    before = odd.stat()
    refused = punchlist("db", "restore", "--yes", "copy.db", env={"PUNCHLIST_DATABASE_URL": str(odd)})
    assert refused.returncode == 1
    assert "is not a file" in refused.stderr
    assert (odd.stat().st_ino, odd.stat().st_mode) == (before.st_ino, before.st_mode)
    assert [path.name for path in tmp_path.glob("odd*")] == ["odd.db"]


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("name", [".punchlist/punchlist.db", "link.db", "hard.db"])
def test_a_database_is_not_restored_from_itself(punchlist: Cli, project: Path, name: str, journal: str) -> None:
    _agent(project, 3).close()
    path = project / ".punchlist" / "punchlist.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    (project / "link.db").symlink_to(path)
    (project / "hard.db").hardlink_to(path)
    refused = punchlist("db", "restore", "--yes", name)
    assert refused.returncode == 1
    assert f"{name} is the database itself" in refused.stderr
    assert list(path.parent.glob("*before-restore*")) == []
    found = _agent(project, 0)
    assert found.lists() == expected(3)
    found.close()
