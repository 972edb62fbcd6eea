"""Errors are a sentence on stderr and exit code 1, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.script import Script, expected


@pytest.mark.spec("W1")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["todos", "start", "7"], "has no todo '7'"),
        (["todos", "add", "  "], "must be 1 to 500 characters"),
        (["todos", "--turn", "nowhere"], "has no turn 'nowhere'"),
        (["db", "check"], "There is no database at"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_a_sentence_and_json_has_its_code(punchlist: Cli, arguments: list[str], sentence: str) -> None:
    told = punchlist(*arguments, "--json")
    assert told.returncode == 1
    assert told.stderr.startswith("punchlist: ")
    assert sentence in told.stderr
    error = json.loads(told.stdout)["error"]
    assert sentence in error["message"]
    assert error["code"]


@pytest.mark.spec("W1")
def test_what_was_refused_changed_nothing(punchlist: Cli, project: Path) -> None:
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    script.perform_all(3)
    assert punchlist("todos", "edit", "1", "x" * 501).returncode == 1
    assert script.lists() == expected(3)
    script.close()


def test_a_wrong_setting_is_named_with_its_file_and_line(punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text('session = "s"\nsessoin = "t"\n')
    told = punchlist("todos")
    assert told.returncode == 1
    assert "punchlist.toml, line 2: unknown setting 'sessoin'" in told.stderr


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/x", "did not answer"),
        ("postgresql://me:s3cret@127.0.0.1:port/x", "cannot be parsed"),
        ("mysql://me:s3cret@127.0.0.1/x", "not 'mysql'"),
        ("sqlite:///x.db?mode=memory", "mode"),
    ],
)
def test_a_wrong_database_is_said_without_its_password(punchlist: Cli, address: str, sentence: str) -> None:
    for command in ("todos", "db check", "db upgrade"):
        told = punchlist(*command.split(), env={"PUNCHLIST_DATABASE_URL": address})
        assert told.returncode == 1
        assert sentence in told.stderr
        assert "s3cret" not in told.stdout + told.stderr
        assert "Warning" not in told.stderr


@pytest.mark.parametrize("command", ["todos", "db check", "db upgrade"])
def test_a_file_that_is_no_database_is_said_to_be_none(punchlist: Cli, tmp_path: Path, command: str) -> None:
    file = tmp_path / "other.db"
    file.write_bytes(b"something else " * 500)
    told = punchlist(*command.split(), env={"PUNCHLIST_DATABASE_URL": str(file)})
    assert (told.returncode, "is damaged (file is not a database)" in told.stderr) == (1, True)
