"""A command whose extra is not installed prints the install line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Cli


@pytest.fixture
def without_agent(tmp_path: Path) -> dict[str, str]:
    """An environment in which pydantic, which only the extra `agent` installs, cannot be imported."""
    folder = tmp_path / "hidden"
    folder.mkdir()
    (folder / "pydantic.py").write_text('raise ModuleNotFoundError("No module named \'pydantic\'", name="pydantic")\n')
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    "command",
    [
        ("run", "Do it."),
        ("run", "--resume"),
        ("demo",),
        ("tools", "list"),
        ("tools", "call", "list_directory"),
        ("policy", "list"),
    ],
    ids=" ".join,
)
def test_a_missing_extra_is_named_with_its_install_line(
    punchlist: Cli, without_agent: dict[str, str], command: tuple[str, ...]
) -> None:
    done = punchlist(*command, env=without_agent)
    assert done.returncode == 2
    assert done.stderr == "punchlist: The agent is not installed. Install it with: pip install 'punchlist[agent]'\n"


@pytest.mark.parametrize(
    "command",
    [("todos", "add", "A"), ("inbox",), ("sessions",), ("log",), ("db", "check"), (), ("--help",)],
    ids=" ".join,
)
def test_the_lists_need_no_extra(punchlist: Cli, without_agent: dict[str, str], command: tuple[str, ...]) -> None:
    punchlist("todos", "add", "First")
    assert punchlist(*command, env=without_agent).returncode == 0
