"""What `--help` says of every command, and how the program takes what it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tests.conftest import Cli
from tests.surfaces.snapshots.compare import assert_all
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from punchlist.surfaces.cli.main import GROUPS, app


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
        ["toods"],
        ["db"],
        ["todos", "add"],
        ["todos", "--bogus"],
        ["log", "--limit", "0"],
    ],
    ids=" ".join,
)
def test_a_wrong_use_ends_with_2_and_says_how_it_is_used(punchlist: Cli, arguments: list[str]) -> None:
    answer = punchlist(*arguments)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "Usage: punchlist" in answer.stderr or "--yes" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(("name", "wanted"), [("todo", "'todos', or 'mission todo'"), ("conversations", "'sessions'")])
def test_a_likely_name_prints_the_command(punchlist: Cli, name: str, wanted: str) -> None:
    answer = punchlist(name, "show")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert f"Error: No such command '{name}'. Use {wanted}" in answer.stderr


def test_a_missing_choice_lists_the_choices(punchlist: Cli) -> None:
    answer = punchlist("install")
    assert "Choose from: claude-code, codex, gemini, opencode" in answer.stderr


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_help_fits_the_terminal_and_is_complete(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = CliRunner().invoke(app, ["--help"], prog_name="punchlist").output
    assert max(map(len, shown.splitlines())) <= columns
    assert "..." not in shown.replace("[ARGS]...", "")
    titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", *(f"{group}:" for group in GROUPS)]


def test_without_a_command_there_is_an_overview(punchlist: Cli, project: Path) -> None:
    answer = punchlist()
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("No lists here yet.\n")
    assert not (project / ".punchlist").exists()
    punchlist("todos", "add", "Write the tests")
    shown = punchlist().stdout
    assert "Session default: 1 open todo." in shown
    assert "1 ○ Write the tests" in shown
    assert "The inbox is empty." in shown
    assert "punchlist run GOAL" in shown
    (project / ".punchlist" / "punchlist.db").write_bytes(b"no database" * 100)
    damaged = punchlist()
    assert damaged.returncode == 0
    assert "punchlist run GOAL" in damaged.stdout
