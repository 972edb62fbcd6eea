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

from punchlist.conversations.model import TurnScope
from punchlist.plan.validation import parse_items


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
    assert punchlist("todos").stdout == punchlist("todos", "list").stdout == started.stdout
    refused = punchlist("todos", "edit", "2", " ")
    assert (refused.returncode, refused.stderr) == (
        1,
        "punchlist: The title must be 1 to 500 characters after trimming, got 0.\n",
    )


@pytest.mark.spec("W3")
def test_what_was_taken_off_or_cleared_comes_back_with_undo(punchlist: Cli, agent: Script) -> None:
    def contents(*arguments: str) -> list[tuple[str, str]]:
        done = punchlist("todos", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return [(item["title"], item["status"]) for item in json.loads(done.stdout)["items"]]

    both = [("One", "pending"), ("Two", "pending")]
    for content, _ in both:
        agent.house.checklists.add(agent.scope, content, reason="test")
    assert contents("cancel", "1", "--reason", "no") == [("One", "cancelled"), *both[1:]]
    assert contents("undo") == both
    assert contents("remove", "1") == both[1:]
    assert contents("undo") == both
    assert contents("clear") == []
    assert contents("undo") == both
    assert contents("done", "2") == [("One", "pending"), ("Two", "completed")]
    assert contents("reopen", "2") == both


def test_json_has_the_numbered_items_and_their_summary(punchlist: Cli, agent: Script) -> None:
    agent.house.checklists.add(agent.scope, "One", active_form="Doing one", reason="test")
    agent.house.checklists.add(agent.scope, "Two", reason="test")
    shown = json.loads(punchlist("todos", "remove", "1", "--json").stdout)
    (left,) = shown["items"]
    assert left == {"number": 2, "id": left["id"], "list": "checklist", "title": "Two", "status": "pending"}
    assert shown["session"] == "default"
    assert shown["summary"] == {"total": 1, "pending": 1, "inProgress": 0, "completed": 0, "cancelled": 0}
    assert list(shown) == ["session", "items", "summary"]


@pytest.mark.spec("W3", "X5")
def test_a_number_is_kept_by_its_item_and_not_given_to_another(punchlist: Cli, agent: Script) -> None:
    def numbers(*arguments: str) -> dict[str, int]:
        done = punchlist("todos", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return {item["title"]: item["number"] for item in json.loads(done.stdout)["items"]}

    assert numbers("add", "A", "B") == {"A": 1, "B": 2}
    assert numbers("remove", "1") == {"B": 2}
    assert numbers("add", "C") == {"B": 2, "C": 3}
    assert numbers("undo") == {"B": 2}
    assert numbers("undo") == {"A": 1, "B": 2}
    assert numbers("add", "D") == {"A": 1, "B": 2, "D": 4}
    assert list(numbers("move", "4", "1")) == ["D", "A", "B"]
    assert numbers("edit", "4", "E") == {"E": 4, "A": 1, "B": 2}
    turn = agent.house.conversations.open_turn(agent.scope)
    agent.house.plans.create(
        TurnScope("default", agent.scope.actor, turn.id), parse_items([{"title": "P"}, {"title": "Q"}])
    )
    assert numbers() == {"P": 5, "Q": 6, "E": 4, "A": 1, "B": 2}
    # The open turn has a plan now, so new items go there.
    assert numbers("add", "R") == {"P": 5, "Q": 6, "R": 7, "E": 4, "A": 1, "B": 2}
    assert list(numbers("move", "7", "1"))[:3] == ["R", "P", "Q"]
    assert numbers("edit", "5", "P2")["P2"] == 5
    shown = json.loads(punchlist("todos", "cancel", "5", "--why", "not needed", "--json").stdout)
    assert next(item for item in shown["items"] if item["number"] == 5)["outcome"] == "not needed"
    assert punchlist("db", "check").returncode == 0


def test_an_item_can_be_named_by_its_id(punchlist: Cli, agent: Script) -> None:
    added = agent.house.checklists.add(agent.scope, "One", reason="test")
    assert "▶ One" in punchlist("todos", "start", added.checklist.items[0].id).stdout


def test_options_may_stand_before_the_subcommand_too(punchlist: Cli, agent: Script) -> None:
    made = punchlist("todos", "--session", "mine", "--json", "add", "One")
    assert json.loads(made.stdout)["session"] == "mine"
    assert [item.content for item in agent.house.checklists.get("mine").items] == ["One"]
    # It is the session last used now.
    assert json.loads(punchlist("todos", "--json").stdout)["session"] == "mine"


@pytest.mark.spec("W2")
def test_a_second_item_cannot_be_started(punchlist: Cli, agent: Script) -> None:
    agent.perform_all(3)
    items = json.loads(punchlist("todos", "--json").stdout)["items"]
    pending = [item for item in items if (item["list"], item["status"]) == ("checklist", "pending")]
    refused = punchlist("todos", "start", str(pending[0]["number"]))
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
