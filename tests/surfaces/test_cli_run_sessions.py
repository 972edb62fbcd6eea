"""Which session `punchlist run` works in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

PLAN = "- calls: [{tool: create_todo, arguments: {items: [{title: Look}]}}]\n"
LIST = "- calls: [{tool: list_todo, arguments: {status: all}}]\n"
DONE = (
    "- calls: [{tool: list_directory}, "
    "{tool: complete_todo, arguments: {todoId: '{{ items[0].id }}', outcome: done}}]\n- Done.\n"
)


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


@pytest.mark.spec("T14", "X9")
def test_without_a_goal_the_open_items_are_finished(punchlist: Cli, run: Any) -> None:
    left = run(PLAN + "- Later.\n", "Do it.", "--no-auto-complete-todos", code=3)
    done = run(LIST + DONE)
    assert (done["conversationId"], done["reason"]) == (left["conversationId"], "completed")
    nothing = punchlist("run", "--model", "rehearsal:script.yaml")
    assert nothing.returncode == 1
    assert "has nothing open. Give a goal: punchlist run GOAL" in nothing.stderr
    punchlist("todos", "add", "One more")
    assert run("- Seen.\n", code=3)["reason"] == "stalled"
    done = run(
        "- calls: [{tool: list_directory}, {tool: TodoWrite, arguments: "
        "{todos: [{content: One more, activeForm: Doing it, status: completed}]}}]\n- Done.\n"
    )
    assert (done["conversationId"], done["reason"]) == (left["conversationId"], "completed")
    assert [item["title"] for item in done["todos"]] == ["One more"]


@pytest.mark.spec("X9")
@pytest.mark.parametrize("arguments", [("-c", "Do it."), ("-s", "default", "Do it."), ()], ids=["-c", "-s", "bare"])
def test_open_items_of_the_session_are_named(punchlist: Cli, project: Path, arguments: tuple[str, ...]) -> None:
    punchlist("todos", "add", *(f"Item {n}" for n in range(7)))
    (project / "script.yaml").write_text("- Yes.\n")
    shown = punchlist("run", *arguments, "--model", "rehearsal:script.yaml").stderr
    titles = "".join(f"- Item {n}\n" for n in range(5))
    assert f"session default has 7 open items that count in this run:\n{titles}and 2 more\n" in shown


def test_a_new_session_has_no_open_items(punchlist: Cli, project: Path) -> None:
    punchlist("todos", "add", "Open")
    (project / "script.yaml").write_text("- Yes.\n")
    assert "open item" not in punchlist("run", "Do it.", "--model", "rehearsal:script.yaml").stderr


def test_a_named_session_is_kept(run: Any, punchlist: Cli, project: Path) -> None:
    (project / "punchlist.toml").write_text('session = "mine"\n')
    # The session that a file of the project names is used only after the user has trusted the file.
    assert run("- Nobody's.\n", "Before.")["conversationId"].startswith("run-")
    assert punchlist("trust", "--yes").returncode == 0
    for said in ("First.", "Second."):
        assert run("- One.\n", said)["conversationId"] == "mine"
    assert json.loads(punchlist("todos", "--json", env={"PUNCHLIST_SESSION": "yours"}).stdout)["session"] == "yours"
