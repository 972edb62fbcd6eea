"""`punchlist inbox`: everything that needs a person, answered by number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli
from tests.contract.missions import SLUG, Team, developer_experience

from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.missions.planning.overdue import OverdueService
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.plan.validation import parse_items
from punchlist.storage.open import open_store

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
    services = Services(load(cwd=project, environment={}))
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
    assert (gone.returncode, "Request '1' is closed." in gone.stderr) == (1, True)


# --- escalations -------------------------------------------------------------------------------------------


@pytest.fixture
def team(project: Path) -> Iterator[Team]:
    """A mission with three overdue todos, about which it asks a person."""
    address = f"sqlite:///{project}/.punchlist/punchlist.db"
    store = open_store(address)
    team = developer_experience(store)
    for title in ("Profile the build", "Read the profile", "Cut the slowest step"):
        team.update(team.todo_in(TodoStatus.IN_PROGRESS, title), TodoAction.EXTEND, deadline="2098-02-21")
    later = open_store(address, clock=lambda: parse_timestamp("2099-01-01T00:00:00.000000Z"))
    OverdueService(later).process_mission(team.system, team.mission.id)
    later.close()
    yield team
    store.close()


@pytest.mark.spec("M13")
def test_escalations_of_missions_are_answered_by_number(punchlist: Cli, team: Team) -> None:
    asked = items(punchlist)
    assert [(item["number"], item["kind"], item["mission"]) for item in asked] == [
        (number, "escalation", SLUG) for number in (1, 2, 3)
    ]
    assert asked[0]["answers"] == ["extend", "cancel", "keep", "acknowledge"]
    listed = punchlist("inbox").stdout
    assert "punchlist inbox answer 1 extend DATE | cancel | keep, or acknowledge 1" in listed
    assert "punchlist mission answer" not in listed, "one way to answer is enough"
    todos = [team.todos.get(item["todoId"]) for item in asked]
    extended = punchlist("inbox", "answer", "1", "extend", "2100-02-21", "--json")
    assert json.loads(extended.stdout)["answer"] == "extend to 2100-02-21"
    assert punchlist("inbox", "answer", "2", "cancel").stdout == "Answered request 2: cancel.\n"
    assert punchlist("inbox", "answer", "3", "keep").stdout == "Answered request 3: keep.\n"
    assert team.todos.get(todos[0].id).deadline == "2100-02-21"
    assert team.todos.get(todos[1].id).status is TodoStatus.CANCELLED
    assert team.todos.get(todos[2].id) == todos[2]
    assert items(punchlist) == []


@pytest.mark.spec("M13")
def test_the_reason_of_an_answer_is_feedback_for_the_owner(punchlist: Cli, team: Team) -> None:
    asked = items(punchlist)
    for number, words in ((1, ["keep"]), (2, ["extend", "2100-02-21"]), (3, ["cancel"])):
        answered = punchlist("inbox", "answer", str(number), *words, "--why", f"Reason {number}.")
        assert answered.stdout == f"Answered request {number}: {' to '.join(words)}: Reason {number}.\n"
    feedback = [[message.text for message in team.todos.messages(item["todoId"])] for item in asked]
    assert [len(texts) for texts in feedback] == [1, 1, 0]
    assert feedback[0][0].endswith("keep: Reason 1.")
    assert team.todos.get(asked[2]["todoId"]).outcome == "Reason 3."
    shown = punchlist("mission", "todo", "show", asked[0]["todoId"]).stdout
    assert re.search(r"todo_feedback by \S+: .*keep: Reason 1\.", shown)


@pytest.mark.spec("M13")
def test_an_acknowledged_escalation_stays_in_the_inbox(punchlist: Cli, team: Team) -> None:
    stopped = punchlist("inbox", "acknowledge", "2")
    assert stopped.stdout == "Request 2 stays open, without reminders.\n"
    assert [item["number"] for item in items(punchlist)] == [1, 2, 3]
    escalations = json.loads(punchlist("mission", "escalations", "--json").stdout)
    assert sorted(escalation["status"] for escalation in escalations) == ["acknowledged", "open", "open"]
    assert punchlist("inbox", "answer", "2", "keep").returncode == 0
    assert [item["number"] for item in items(punchlist)] == [1, 3]


@pytest.mark.spec("M13")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["answer", "1", "maybe"], 1, "extend"),
        (["answer", "1", "extend"], 1, "deadline: is required to extend"),
        (["answer", "1", "extend", "2100-02-21", "please"], 2, "must be: extend DATE, cancel or keep"),
        (["approve", "1"], 1, "It can be answered with: extend, cancel, keep, acknowledge."),
    ],
)
def test_a_wrong_answer_to_an_escalation_changes_nothing(
    punchlist: Cli, team: Team, arguments: list[str], code: int, message: str
) -> None:
    before = items(punchlist)
    refused = punchlist("inbox", *arguments)
    assert (refused.returncode, message in refused.stderr) == (code, True), refused.stderr
    assert [item["id"] for item in items(punchlist)] == [item["id"] for item in before]
    assert team.todos.get(before[0]["todoId"]).deadline == "2098-02-21"
