"""`punchlist inbox`: everything that needs a person, answered by number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

from punchlist.app import App
from punchlist.config import load
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.actors import Actor, Role
from punchlist.plan.validation import parse_items

WRITES = "- calls: [{tool: write_file, arguments: {path: x, content: hello}}]\n"


def items(punchlist: Cli) -> list[dict[str, Any]]:
    return json.loads(punchlist("inbox", "--json").stdout)["items"]  # type: ignore[no-any-return]


@pytest.fixture
def waiting(punchlist: Cli, project: Path) -> str:
    """A run that waits for approval; its session."""
    (project / "first.yaml").write_text(WRITES)
    done = punchlist("run", "Write.", "--model", "rehearsal:first.yaml", "--json")
    assert done.returncode == 4
    return str(json.loads(done.stdout)["conversationId"])


def ask(project: Path, question: str, session: str = "default") -> None:
    """An agent asks a person."""
    services = App(load(cwd=project, environment={}))
    scope = Scope(session, Actor(Role.SUPERVISOR, "test"))
    turn = services.conversations.open_turn(scope)
    todos = parse_items([{"title": "Deploy", "blockedBy": [{"person": question}]}])
    services.plans.create(TurnScope(session, scope.actor, turn.id), todos)
    services.store.close()


def test_an_empty_inbox_is_reported(punchlist: Cli) -> None:
    assert punchlist("inbox").stdout == "The inbox is empty.\n"
    assert items(punchlist) == []


@pytest.mark.spec("S5", "C10")
def test_approvals_and_questions_of_all_sessions_are_one_numbered_list(
    punchlist: Cli, project: Path, waiting: str
) -> None:
    ask(project, "Which region?")
    approval, question = items(punchlist)
    assert (approval["number"], approval["kind"], approval["session"]) == (1, "approval", waiting)
    assert approval["answers"] == ["approve", "deny", "modify"]
    assert approval["ageSeconds"] >= 0
    assert (question["number"], question["kind"], question["question"]) == (2, "question", "Which region?")
    shown = punchlist("inbox").stdout
    assert "  1  approval  write_file" in shown
    assert "punchlist inbox approve 1 | deny 1 | modify 1" in shown
    assert "Which region?" in shown
    assert "Inbox: 2 requests." in punchlist().stdout
    wrong = punchlist("inbox", "approve", "2")
    assert (wrong.returncode, "It can be answered with: answer." in wrong.stderr) == (1, True)
    answered = punchlist("inbox", "answer", "2", "eu", "west")
    assert answered.stdout.startswith("Answered request 2: eu west.")
    assert [item["number"] for item in items(punchlist)] == [1]
    assert punchlist("inbox", "approve", "1").returncode == 0
    assert (project / "x").read_text() == "hello"
    assert items(punchlist) == []


@pytest.mark.spec("S5")
def test_a_number_is_not_given_to_another_request(punchlist: Cli, project: Path, waiting: str) -> None:
    ask(project, "Which region?")
    assert punchlist("inbox", "deny", "1", "--reason", "not now").returncode == 3
    ask(project, "Which day?", session="other")
    assert [(item["number"], item["question"]) for item in items(punchlist)] == [
        (2, "Which region?"),
        (3, "Which day?"),
    ]
    gone = punchlist("inbox", "approve", "1")
    assert (gone.returncode, "The inbox has no request '1'" in gone.stderr) == (1, True)
