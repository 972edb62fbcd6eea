"""What `--help` says of every command, and how the program takes what it does not know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer
from tests.conftest import Cli
from tests.surfaces.snapshots.compare import assert_all
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from punchlist.surfaces.cli.main import app


def _commands() -> Iterator[list[str]]:
    """Every command there is, as one types it."""
    waiting: list[tuple[list[str], object]] = [([], get_command(app))]
    while waiting:
        words, command = waiting.pop()
        yield words
        if isinstance(command, TyperGroup):
            context = typer.Context(command)
            waiting += [([*words, name], command.get_command(context, name)) for name in command.list_commands(context)]


def test_the_help_of_every_command_is_as_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for words in _commands():
        result = CliRunner().invoke(app, [*words, "--help"], prog_name="punchlist")
        assert result.exit_code == 0
        shown["-".join(["punchlist", *words])] = result.output
    assert_all("help-", shown)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["toods"],
        ["todos", "add"],
        ["todos", "--bogus"],
        ["log", "--limit", "0"],
        ["db", "restore", "copy.db"],
    ],
    ids=" ".join,
)
def test_a_wrong_use_ends_with_2_and_says_how_it_is_used(punchlist: Cli, arguments: list[str]) -> None:
    answer = punchlist(*arguments)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "Usage: punchlist" in answer.stderr or "--yes" in answer.stderr
    assert "Traceback" not in answer.stderr
