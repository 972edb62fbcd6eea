"""`punchlist agents`: who there is, what is set, and where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

FILE = """
[agent]
model = "openai:for-all"
max_cost = 2.5

[agents.coder]
max_todo_continuations = 3
model = "ollama:own"

[agents.reviewer]
prompt = "You review.\\nTwice."
description = "says what is wrong"
"""


def listed(punchlist: Cli) -> dict[str, dict[str, Any]]:
    done = punchlist("agents", "--json")
    assert done.returncode == 0, done.stderr
    return {agent["name"]: agent for agent in json.loads(done.stdout)}


@pytest.fixture
def users_file(environment: dict[str, str]) -> Path:
    file = Path(environment["HOME"], ".config/punchlist/punchlist.toml")
    file.parent.mkdir(parents=True)
    file.write_text(FILE)
    return file


@pytest.mark.spec("C1", "T13")
def test_the_agents_are_listed_with_their_model_and_what_they_are_for(punchlist: Cli, users_file: Path) -> None:
    lines = punchlist("agents").stdout.splitlines()
    assert lines == punchlist("agents", "list").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["supervisor", "openai:for-all"],
        ["researcher", "openai:for-all"],
        ["coder", "ollama:own"],
        ["writer", "openai:for-all"],
        ["mission-lead", "openai:for-all"],
        ["pillar-owner", "openai:for-all"],
        ["reviewer", "openai:for-all"],
    ]
    assert lines[-1].endswith("says what is wrong")
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.spec("C1")
def test_an_agent_is_shown_with_its_settings_and_where_they_come_from(punchlist: Cli, users_file: Path) -> None:
    coder = listed(punchlist)["coder"]
    assert coder == json.loads(punchlist("agents", "show", "coder", "--json").stdout)
    assert coder["definedIn"] == ["built in", str(users_file)]
    assert coder["model"] == "ollama:own"
    assert coder["settings"]["max_todo_continuations"] == 3
    assert coder["settings"]["max_cost"] == 2.5
    assert not coder["delegates"]

    shown = punchlist("agents", "show", "coder").stdout
    told = dict(line.split(maxsplit=1) for line in shown.splitlines()[1:] if "│" not in line and line)
    assert told["defined"] == f"built in, changed by {users_file}"
    assert told["max_todo_continuations"] == "3"
    assert told["max_tokens"] == "none"
    assert told["todo_driven_execution"] == "yes"

    reviewer = punchlist("agents", "show", "reviewer").stdout
    assert reviewer.startswith("reviewer: says what is wrong\n")
    assert reviewer.endswith("\n\n  │ You review.\n  │ Twice.\n")


def test_without_a_file_they_are_built_in_and_have_the_runs_model(punchlist: Cli) -> None:
    found = listed(punchlist)
    assert list(found) == ["supervisor", "researcher", "coder", "writer", "mission-lead", "pillar-owner"]
    assert all((agent["definedIn"], agent["model"]) == (["built in"], None) for agent in found.values())
    assert "model of the run" in punchlist("agents").stdout


def test_what_nobody_has_trusted_is_left_out_and_said(punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text(FILE.replace("Twice.", "Tw\\u001bice."))
    assert punchlist("agents").returncode == 1
    (project / "punchlist.toml").write_text(FILE)
    done = punchlist("agents", "--json")
    coder = {agent["name"]: agent for agent in json.loads(done.stdout)}["coder"]
    assert "reviewer" not in done.stdout
    assert (coder["model"], coder["settings"]["max_cost"]) == (None, 2.5)
    assert (
        'are ignored until you trust them with `punchlist trust`:\n  - agent.model = "openai:for-all"\n' in done.stderr
    )
    assert '  - agents.reviewer.prompt = "You review.\\nTwice."\n' in done.stderr


def test_an_agent_that_is_not_there_is_an_error_that_names_the_nearest(punchlist: Cli) -> None:
    done = punchlist("agents", "show", "codr", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "not_found"
    assert "Did you mean coder?" in done.stderr


def test_a_mistake_in_the_file_ends_the_command_with_its_line(punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text("[agents.coder]\nmaxTodoContinuations = 5\n")
    done = punchlist("agents")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{project}/punchlist.toml, line 2: agents.coder.maxTodoContinuations: is not known." in done.stderr
    assert "Did you mean max_todo_continuations?" in done.stderr
