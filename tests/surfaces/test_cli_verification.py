"""`punchlist todos`: checks, marks, and items that were dropped or cancelled, as people see them (V2, V4, W3, X9)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.front import todo
from tests.faults.script import Script

from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.conversations.model import TurnScope
from punchlist.plan.model import NewTodo
from punchlist.verification.model import CheckOutcome, Verification, check_result, evidence_call


@pytest.fixture
def agent(project: Path) -> Iterator[Script]:
    script = Script(str(project / ".punchlist" / "punchlist.db"), "default")
    yield script
    script.close()


def items(punchlist: Cli, *arguments: str) -> list[dict[str, Any]]:
    done = punchlist("todos", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return found


def plan_of(agent: Script, *titles: str) -> TurnScope:
    turn = TurnScope("default", agent.scope.actor, agent.house.conversations.open_turn(agent.scope).id)
    agent.house.plans.create(turn, [NewTodo(title) for title in titles])
    return turn


@pytest.mark.spec("V2", "X9")
@pytest.mark.parametrize("in_plan", [False, True])
def test_a_person_adds_replaces_and_removes_a_check(punchlist: Cli, agent: Script, in_plan: bool) -> None:
    if in_plan:
        plan_of(agent, "First")
    added = items(punchlist, "add", "Fix it", "--check", "pytest -q")[-1]
    number = str(added["number"])
    assert added["check"] == "pytest -q"
    assert "check: pytest -q" in punchlist("todos").stdout
    # The command is among what the user trusts, so that it runs without approval.
    assert "that you wrote, in" in punchlist("trust", "list").stdout
    assert items(punchlist, "check", number, "make test")[-1]["check"] == "make test"
    assert "check" not in items(punchlist, "check", number, "")[-1]
    refused = punchlist("todos", "check", number, "x" * 5_000)
    assert refused.returncode == 1
    assert "check" in refused.stderr
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("V4")
@pytest.mark.parametrize("in_plan", [False, True])
def test_the_four_marks_are_shown_and_a_person_accepts(punchlist: Cli, agent: Script, in_plan: bool) -> None:
    evidence = Verification(evidence=(evidence_call("edit_file", "a.py", "1", "a.py"),))
    checked = Verification(result=check_result(CheckOutcome.PASSED, "ok", "2026-02-21T09:00:00Z"))
    if in_plan:
        turn = plan_of(agent, "A", "B", "C", "D")
        for number, verification in enumerate((None, evidence, checked), 1):
            agent.house.plans.end(turn, str(number), "", verification=verification)
    else:
        sent = [todo("A", "completed"), todo("B", "completed"), todo("C", "completed"), todo("D")]
        made = agent.house.checklists.rewrite(agent.scope, sent).checklist.items
        agent.house.checklists.verify(agent.scope, made[1].id, evidence)
        agent.house.checklists.verify(agent.scope, made[2].id, checked)
    assert [item.get("mark") for item in items(punchlist)] == ["claimed", "evidenced", "checked", None]
    assert [item["mark"] for item in items(punchlist, "done", "4")] == ["claimed", "evidenced", "checked", "accepted"]
    accepted = items(punchlist, "accept", "1")[0]
    assert accepted["mark"] == "accepted"
    assert accepted["acceptedBy"].startswith("person:")
    shown = punchlist("todos", env={"COLUMNS": "40"}).stdout
    assert max(len(line) for line in shown.splitlines()) <= 40
    for mark in ("accepted", "evidenced", "checked"):
        assert mark in shown
    assert punchlist("db", "check").returncode == 0


@pytest.mark.spec("V4")
def test_what_is_open_cannot_be_accepted(punchlist: Cli) -> None:
    punchlist("todos", "add", "A")
    refused = punchlist("todos", "accept", "1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Cannot accept a checklist item that is pending" in refused.stderr


@pytest.mark.spec("V2", "V4")
def test_an_agent_in_its_shell_neither_accepts_nor_writes_checks(punchlist: Cli) -> None:
    punchlist("todos", "add", "A", "B")
    inside = {"CLAUDECODE": "1"}
    for arguments in (("accept", "1"), ("check", "1", "true"), ("add", "C", "--check", "true")):
        refused = punchlist("todos", *arguments, env=inside)
        assert refused.returncode == 1
        assert "is for you, not for an agent" in refused.stderr
    assert punchlist("todos", "done", "1", env=inside).returncode == 0
    assert [item.get("mark") for item in items(punchlist)] == ["claimed", None]


@pytest.mark.spec("V2", "C13")
@pytest.mark.parametrize("made", [False, True])
def test_a_check_is_run_for_an_item_that_the_agent_completes_in_its_shell(
    punchlist: Cli, project: Path, made: bool
) -> None:
    command = f"{shlex.quote(sys.executable)} -m punchlist todos done 1{'; touch proof' if made else ''}"
    replies = [{"calls": [{"tool": "run_command", "arguments": {"command": command}}]}, *["Done."] * 9]
    (project / "s.yaml").write_text(json.dumps(replies))
    punchlist("todos", "add", "Make the proof", "--check", "test -f proof")
    done = punchlist("run", "-c", "Go on.", "--mode", "yolo", "--model", "rehearsal:s.yaml", "--json")
    (item,) = json.loads(done.stdout)["todos"]
    told = (done.returncode, item["status"], item["mark"], item["checkResult"]["outcome"])
    assert told == ((0, "completed", "checked", "passed") if made else (3, "pending", None, "failed"))


@pytest.mark.spec("C13")
def test_an_agent_that_removes_the_database_ends_in_a_sentence(punchlist: Cli, project: Path) -> None:
    plan = {"tool": "create_todo", "arguments": {"items": [{"title": "Tidy"}]}}
    removes = {"tool": "run_command", "arguments": {"command": "rm -r .punchlist"}}
    (project / "s.yaml").write_text(json.dumps([{"calls": [plan, removes]}, "Done."]))
    done = punchlist("run", "Go.", "--mode", "yolo", "--model", "rehearsal:s.yaml")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.spec("W3", "X9")
def test_dropped_and_cancelled_items_are_shown(punchlist: Cli, agent: Script) -> None:
    agent.house.checklists.rewrite(agent.scope, [todo("A", "completed"), todo("B"), todo("C")])
    agent.house.checklists.rewrite(agent.scope, [todo("A", "completed")])
    shown = punchlist("todos").stdout
    assert "! B (dropped)" in shown
    assert "Progress: 1/1 (100%), 2 dropped" in shown
    summary = json.loads(punchlist("todos", "--json").stdout)["summary"]
    assert summary == {"total": 3, "pending": 0, "inProgress": 0, "completed": 1, "cancelled": 0, "dropped": 2}
    cancelled = items(punchlist, "cancel", "2", "--reason", "the user said no")
    assert [(item["number"], item["status"]) for item in cancelled] == [
        (1, "completed"),
        (2, "cancelled"),
        (3, "dropped"),
    ]
    assert cancelled[1]["reason"] == "the user said no"
    assert "✗ B (cancelled: the user said no)" in punchlist("todos").stdout
    assert [item["status"] for item in items(punchlist, "reopen", "3")] == ["completed", "cancelled", "pending"]
    agent.house.checklists.advance(agent.scope, "3", ChecklistAction.START, reason="test")
    refused = punchlist("todos", "cancel", "3", "--reason", "x" * 501)
    assert "reason: must be 1 to 500 characters" in refused.stderr


@pytest.mark.spec("C10")
def test_a_person_answers_or_cancels_what_waits(punchlist: Cli, agent: Script) -> None:
    turn = plan_of(agent, "Deploy")
    from punchlist.plan.lifecycle import ConditionKind
    from punchlist.plan.model import NewCondition

    agent.house.plans.wait(turn, "1", NewCondition(ConditionKind.PERSON, "Which region?"))
    refused = punchlist("todos", "done", "1")
    assert refused.returncode == 1
    assert "waits for an answer to “Which region?”" in refused.stderr
    assert "punchlist answer" in refused.stderr
    assert items(punchlist, "cancel", "1")[0]["status"] == "cancelled"
    removed = punchlist("todos", "remove", "1")
    assert "belongs to a plan" in removed.stderr
