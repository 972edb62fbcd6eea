"""`punchlist answer` and `punchlist wake`: a person or a script says what todos wait for (C10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.plan import validation as plan_validation
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store

NEXT_STEP = "`punchlist run --resume` continues the work.\n"


class Agent:
    """A supervisor in the project's session, whose todos wait."""

    def __init__(self, database: str) -> None:
        self.store = open_store(f"sqlite:///{database}")
        self.plans = Plans(self.store)
        scope = Scope("default", Actor(Role.SUPERVISOR, "test"))
        turn = Conversations(self.store).open_turn(scope)
        self.turn = TurnScope(scope.conversation_id, scope.actor, turn.id)

    def plan(self, *items: dict[str, Any]) -> None:
        self.plans.create(self.turn, plan_validation.parse_items(list(items)))

    def waits(self) -> dict[str, list[str]]:
        look = self.plans.snapshot(self.turn)
        return {todo.title: look.waits[todo.id] for todo in look.todos if todo.id in look.waits}

    def answers(self) -> list[str]:
        return [answer.text for told in self.plans.snapshot(self.turn).answers.values() for answer in told]


@pytest.fixture
def agent(project: Path) -> Iterator[Agent]:
    found = Agent(str(project / ".punchlist" / "punchlist.db"))
    yield found
    found.store.close()


@pytest.fixture
def asking(agent: Agent) -> Agent:
    agent.plan(
        {"title": "Deploy", "blockedBy": [{"person": "Which region?"}]},
        {"title": "Announce", "blockedBy": [{"event": "deployed"}, {"time": "2126-11-20T09:00:00Z"}]},
        {"title": "Measure", "blockedBy": [{"event": "deployed"}]},
    )
    return agent


@pytest.mark.spec("C10")
def test_what_is_asked_is_listed_and_answered_by_the_end_of_its_id(punchlist: Cli, asking: Agent) -> None:
    listed = punchlist("answer")
    first, question, *_ = listed.stdout.splitlines()
    short, title = first.split("  ")[:2]
    assert (listed.returncode, title, question) == (0, "Deploy", "  │ Which region?")
    done = punchlist("answer", short, "eu-west")
    assert (done.returncode, done.stdout) == (0, f"Answered, for “Deploy”. {NEXT_STEP}")
    assert "Deploy" not in asking.waits()
    assert asking.answers() == ["eu-west"]
    assert punchlist("answer").stdout == "No question is open.\n"


@pytest.mark.spec("C10")
def test_an_answer_can_be_long_and_come_from_stdin(punchlist: Cli, asking: Agent) -> None:
    (asked,) = json.loads(punchlist("answer", "--json").stdout)
    done = punchlist("answer", asked["id"], "-", "--json", input="eu-west\nand us-east\n")
    told = json.loads(done.stdout)
    assert {**told, "resolvedBy": "", "resolvedAt": ""} == {
        **asked,
        "status": "resolved",
        "answer": "eu-west\nand us-east",
        "resolvedBy": "",
        "resolvedAt": "",
    }
    assert told["resolvedBy"].startswith("person:")


@pytest.mark.spec("C10")
def test_an_event_wakes_all_that_wait_for_it(punchlist: Cli, asking: Agent) -> None:
    assert punchlist("wake").stdout.splitlines() == [
        "Announce  for event deployed",
        "Announce  until 2126-11-20T09:00:00Z",
        "Measure  for event deployed",
    ]
    done = punchlist("wake", "deployed", "--note", "version 7")
    assert (done.returncode, done.stdout) == (
        0,
        f"“Announce” no longer waits for deployed.\n“Measure” no longer waits for deployed.\n{NEXT_STEP}",
    )
    assert asking.waits()["Announce"] == ["2126-11-20T09:00:00Z"]
    assert asking.answers() == ["version 7", "version 7"]
    assert [held["kind"] for held in json.loads(punchlist("wake", "--json").stdout)] == ["time"]


@pytest.mark.spec("C10")
@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (["answer", "nothing", "yes"], 1, "No question has the id 'nothing'. `punchlist answer` lists"),
        (["answer", "nothing"], 2, "TEXT: is missing"),
        (["wake", "nothing"], 1, "No todo waits for the event 'nothing'. `punchlist wake` lists"),
        (["wake", "--note", "x"], 2, "EVENT: is missing"),
    ],
)
def test_what_cannot_be_done_is_said(punchlist: Cli, asking: Agent, command: list[str], code: int, told: str) -> None:
    done = punchlist(*command)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert len(asking.waits()) == 3


@pytest.mark.spec("C10")
def test_a_second_answer_is_refused_and_names_who_was_first(punchlist: Cli, asking: Agent) -> None:
    (asked,) = json.loads(punchlist("answer", "--json").stdout)
    punchlist("answer", asked["id"], "eu-west")
    done = punchlist("answer", asked["id"][-8:], "us-east", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "conflict"
    assert "answered already" in done.stderr
    assert asking.answers() == ["eu-west"]


@pytest.mark.spec("C10")
def test_another_session_has_questions_of_its_own(punchlist: Cli, asking: Agent) -> None:
    assert punchlist("answer", "--session", "another").stdout == "No question is open.\n"
    assert punchlist("wake", "--session", "another").stdout == "No todo waits for an event or a time.\n"
    assert json.loads(punchlist("answer", "-s", "another", "--json").stdout) == []


@pytest.mark.spec("C10", "W10")
def test_a_question_cannot_act_on_the_terminal(punchlist: Cli, agent: Agent) -> None:
    agent.plan({"title": "A\u202eb", "blockedBy": [{"person": "Which\u202e region?"}]})
    listed = punchlist("answer").stdout
    assert "\u202e" not in listed
    assert "Which\\u202e region?" in listed


@pytest.mark.spec("C10")
@pytest.mark.parametrize("command", [["answer", "ID", "yes"], ["wake", "deployed"]])
def test_an_agent_ends_no_wait(punchlist: Cli, asking: Agent, command: list[str]) -> None:
    (asked,) = json.loads(punchlist("answer", "--json").stdout)
    done = punchlist(*(asked["id"] if word == "ID" else word for word in command), env={"CLAUDECODE": "1"})
    assert done.returncode == 1
    assert "inside an agent's tool call" in done.stderr
    assert len(asking.waits()) == 3
