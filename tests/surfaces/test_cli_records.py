"""`todos`, `log` and `sessions`: what was planned, when, and who changed what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.faults.script import CHANGES_PER_ROUND, Script
from tests.surfaces.snapshots.compare import assert_same


@pytest.fixture
def agent(project: Path) -> Iterator[Script]:
    """Somebody who has worked in the project's session."""
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    script.perform_all(CHANGES_PER_ROUND + 2)
    yield script
    script.close()


@pytest.mark.spec("T3")
def test_the_plan_is_shown_in_its_order_with_what_came_of_it(punchlist: Cli, agent: Script) -> None:
    assert_same("todos-plan-and-checklist.txt", punchlist("todos").stdout)
    told = json.loads(punchlist("todos", "--json").stdout)
    assert [item["title"][:8] for item in told["items"] if item["list"] == "plan"] == [
        "Todo 1.2",
        "Todo 0.2",
        "Todo 0.0",
        "Todo 0.1",
        "Todo 1.0",
        "Todo 1.1",
    ]
    checklist = [item["status"] for item in told["items"] if item["list"] == "checklist"]
    assert (len(checklist), checklist.count("completed")) == (7, 4)
    assert told["summary"]["total"] == 13
    assert len({item["number"] for item in told["items"]}) == 13


def test_no_plan_is_said_and_makes_no_turn(punchlist: Cli) -> None:
    assert punchlist("todos").stdout == "No todos.\n"
    assert punchlist("sessions").stdout == "No sessions yet.\n"


@pytest.mark.spec("T7")
def test_a_turn_that_was_ended_keeps_its_plan_and_takes_no_more(punchlist: Cli, agent: Script) -> None:
    turn = agent.house.conversations.open_turn(agent.scope).id
    assert punchlist("sessions", "end", "--reason", "enough for today").stdout == f"Ended turn {turn}.\n"
    assert punchlist("sessions", "end").stdout == "No turn is open.\n"
    assert "ended: enough for today" in punchlist("sessions").stdout
    assert "Todo 1.0" in punchlist("todos", "--turn", turn).stdout
    refused = punchlist("todos", "done", "1")
    assert (refused.returncode, "its plan cannot change" in refused.stderr) == (1, True)


@pytest.mark.spec("X5")
def test_the_log_says_who_did_what_when_and_why(punchlist: Cli, agent: Script) -> None:
    punchlist("todos", "add", "Rest", "--why", "it is late", env={"LOGNAME": "ada"})
    lines = punchlist("log").stdout.splitlines()
    # The last event is the message that tells the agent of it.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  person:ada  .*  — it is late", lines[-2])
    assert [line for line in lines if "start pending → in_progress" in line and "“Todo 0.0" in line]
    events = [json.loads(line) for line in punchlist("log", "--json", "--limit", "3").stdout.splitlines()]
    assert len(events) == 3
    assert events[-2]["actor"] == "person:ada"
    assert events[-2]["reason"] == "it is late"
    assert {"seq", "stream", "version", "at", "hash", "data"} <= set(events[-2])


@pytest.mark.spec("X5")
def test_the_log_of_one_session_leaves_out_the_others(punchlist: Cli, agent: Script) -> None:
    _add_elsewhere(agent)
    assert "other" not in punchlist("log", "--json", "--session", "default").stdout
    assert "other" in punchlist("log", "--json", "--all").stdout


def test_sessions_are_listed_newest_first_and_the_current_one_is_marked(punchlist: Cli, agent: Script) -> None:
    _add_elsewhere(agent)
    first, second = punchlist("sessions").stdout.splitlines()
    assert first.startswith("* other  ")
    assert second.startswith("  default  ")
    assert [row["id"] for row in json.loads(punchlist("sessions", "--json").stdout)] == ["other", "default"]


def _add_elsewhere(agent: Script) -> None:
    agent.house.checklists.add(replace(agent.scope, conversation_id="other"), "Elsewhere", reason="test")
