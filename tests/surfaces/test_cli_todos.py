"""`punchlist todos` as a person uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import wcwidth
from tests.conftest import Cli
from tests.faults.processes import punchlist as run_punchlist
from tests.faults.processes import together
from tests.faults.script import Script
from tests.surfaces.snapshots.compare import assert_same


@pytest.fixture
def agent(project: Path) -> Iterator[Script]:
    """Somebody else who works on the project's list."""
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    yield script
    script.close()


@pytest.mark.spec("W9")
def test_a_list_is_made_worked_through_and_shown_in_a_box(punchlist: Cli) -> None:
    for content in ("Write the tests", "Read 結果 🎉"):
        made = punchlist("todos", "add", content)
        assert made.returncode == 0
        assert content in made.stdout
    punchlist("todos", "done", "1")
    punchlist("todos", "edit", "2", "Read all 結果 🎉", "--doing", "Reading all 結果 🎉")
    started = punchlist("todos", "start", "2", "--why", "they are there")
    assert_same("todos-box.txt", started.stdout)
    assert punchlist("todos").stdout == started.stdout


@pytest.mark.spec("W3")
def test_what_was_taken_off_or_cleared_comes_back_with_undo(punchlist: Cli, agent: Script) -> None:
    def contents(*arguments: str) -> list[tuple[str, str]]:
        done = punchlist("todos", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return [(item["content"], item["status"]) for item in json.loads(done.stdout)["todos"]]

    both = [("One", "pending"), ("Two", "pending")]
    for content, _ in both:
        agent.house.checklists.add(agent.scope, content, reason="test")
    assert contents("cancel", "1") == both[1:]
    assert contents("undo") == both
    assert contents("clear") == []
    assert contents("undo") == both
    assert contents("done", "2") == [("One", "pending"), ("Two", "completed")]
    assert contents("reopen", "2") == both


def test_json_has_the_list_its_progress_and_what_was_left_out(punchlist: Cli, agent: Script) -> None:
    agent.house.checklists.add(agent.scope, "One", active_form="Doing one", reason="test")
    agent.house.checklists.add(agent.scope, "Two", reason="test")
    told = json.loads(punchlist("todos", "cancel", "1", "--json").stdout)
    (dropped,) = told.pop("dropped")
    (left,) = told["todos"]
    assert dropped == {"id": dropped["id"], "content": "One", "status": "pending", "activeForm": "Doing one"}
    assert left == {"id": left["id"], "content": "Two", "status": "pending", "activeForm": "Two"}
    assert told["session"] == "default"
    assert told["progress"] == {"completed": 0, "total": 1, "percent": 0}
    assert told["revision"] == 3
    assert told["updatedAt"].endswith("Z")
    assert list(told) == ["session", "todos", "progress", "revision", "updatedAt"]


def test_an_item_can_be_named_by_its_id(punchlist: Cli, agent: Script) -> None:
    added = agent.house.checklists.add(agent.scope, "One", reason="test")
    assert "▶ One" in punchlist("todos", "start", added.checklist.items[0].id).stdout


def test_options_may_stand_before_the_subcommand_too(punchlist: Cli, agent: Script) -> None:
    made = punchlist("todos", "--session", "mine", "--json", "add", "One")
    assert json.loads(made.stdout)["session"] == "mine"
    assert [item.content for item in agent.house.checklists.get("mine").items] == ["One"]


@pytest.mark.spec("W2")
def test_a_second_item_cannot_be_started(punchlist: Cli, agent: Script) -> None:
    agent.perform_all(3)
    refused = punchlist("todos", "start", "3")
    assert refused.returncode == 1
    assert "Only one task can be in_progress at a time" in refused.stderr


@pytest.mark.spec("W9")
def test_the_box_fits_the_terminal(project: Path, environment: dict[str, str], agent: Script) -> None:
    long = "Überprüfe 漢字の表示と 👩‍👩‍👧‍👦 family emoji in a rather long line, and a" + "verylongword" * 9
    agent.house.checklists.add(agent.scope, long, reason="test")
    widest = {"40": 40, "1": 20, "100000": 104, "wide": 80}
    calls = [partial(run_punchlist, project, {**environment, "COLUMNS": columns}, "todos") for columns in widest]
    for columns, answer in zip(widest, together(*calls), strict=True):
        assert answer.code == 0, answer
        widths = {wcwidth.width(line) for line in answer.out.decode().splitlines()}
        assert len(widths) == 1, answer
        assert widths.pop() <= widest[columns]
