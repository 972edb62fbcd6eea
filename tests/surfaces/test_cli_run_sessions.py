"""Which session `punchlist run` works in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

PLAN = "- calls: [{tool: create_todo, arguments: {items: [{title: Look}]}}]\n"
LIST = "- calls: [{tool: list_todo, arguments: {status: all}}]\n"
DONE = "- calls: [{tool: complete_todo, arguments: {todoId: '{{ items[0].id }}', outcome: done}}]\n- Done.\n"


@pytest.fixture
def run(punchlist: Cli, project: Path) -> Any:
    def call(replies: str, *arguments: str, code: int = 0) -> dict[str, Any]:
        (project / "script.yaml").write_text(replies)
        done = punchlist("run", *arguments, "--model", "rehearsal:script.yaml", "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    return call


@pytest.mark.spec("T14", "C16")
def test_a_goal_begins_a_new_session_and_continue_adds_to_the_last(punchlist: Cli, run: Any) -> None:
    first = run("- One.\n", "First.")["conversationId"]
    second = run("- Two.\n", "Second.")["conversationId"]
    assert first.startswith("run-")
    assert first != second
    assert run("- Three.\n", "-c", "Third.")["conversationId"] == second
    assert run("- Four.\n", "-s", first, "Fourth.")["conversationId"] == first
    assert run("- Five.\n", "--continue", "Fifth.")["conversationId"] == first
    assert json.loads(punchlist("todos", "--json").stdout)["session"] == first


@pytest.mark.spec("T14")
def test_without_a_goal_the_open_items_are_finished(punchlist: Cli, run: Any) -> None:
    left = run(PLAN + "- Later.\n", "Do it.", "--no-auto-complete-todos", code=3)
    done = run(PLAN + LIST + DONE)
    assert (done["conversationId"], done["reason"]) == (left["conversationId"], "completed")
    nothing = punchlist("run", "--model", "rehearsal:script.yaml")
    assert nothing.returncode == 1
    assert "has nothing open. Give a goal: punchlist run GOAL" in nothing.stderr
    punchlist("todos", "add", "One more")
    assert run("- Seen.\n")["conversationId"] == left["conversationId"]
    assert "- One more" in punchlist("sessions", "show").stdout


def test_open_items_of_a_named_session_are_announced(punchlist: Cli, project: Path) -> None:
    punchlist("todos", "add", "Open")
    (project / "script.yaml").write_text("- Yes.\n")
    done = punchlist("run", "-c", "Do it.", "--model", "rehearsal:script.yaml")
    assert "session default has 1 open item from before." in done.stderr
    new = punchlist("run", "Do it.", "--model", "rehearsal:script.yaml")
    assert "open item" not in new.stderr


def test_a_named_session_is_kept(run: Any, punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text('session = "mine"\n')
    # The session that a file of the project names is used only after the user has trusted the file.
    assert run("- Nobody's.\n", "Before.")["conversationId"].startswith("run-")
    assert punchlist("trust", "--yes").returncode == 0
    for said in ("First.", "Second."):
        assert run("- One.\n", said)["conversationId"] == "mine"
    assert json.loads(punchlist("todos", "--json", env={"PUNCHLIST_SESSION": "yours"}).stdout)["session"] == "yours"
