"""`punchlist mission recommendation`: people read what owners recommend, and decide."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.contract.missions import SLUG, Team, developer_experience

from punchlist.errors import NotAllowed
from punchlist.missions.recommendations.service import Recommendations
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.storage.open import open_store

pytestmark = pytest.mark.spec("M4", "M10")


@pytest.fixture
def team(project: Path) -> Iterator[Team]:
    opened = open_store(f"sqlite:///{project}/.punchlist/punchlist.db")
    yield developer_experience(opened)
    opened.close()


def test_recommendations_are_listed_accepted_and_declined(punchlist: Cli, team: Team) -> None:
    def recommendation(*arguments: str) -> str:
        done = punchlist("mission", "recommendation", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert recommendation("list", SLUG) == "No recommendation waits for a decision.\n"
    todo = team.todo_in(TodoStatus.BACKLOG, "Profile the build")
    with suppress(NotAllowed):
        team.todos.update(team.owner, SLUG, todo.id, TodoAction.PROMOTE, "Builds got slower.")
    Recommendations(team.store).add(team.owner, SLUG, "Buy a faster machine.\nThey are cheap.")
    assert recommendation("list", SLUG).splitlines() == [
        f"1. promote “Profile the build” ({todo.id}), which is backlog · build-performance",
        "   Builds got slower.",
        "2. note · build-performance",
        "   Buy a faster machine.",
        "   They are cheap.",
    ]
    first, _ = json.loads(recommendation("list", SLUG, "--json"))
    assert (first["number"], first["kind"], first["todoId"]) == (1, "promote", todo.id)
    told = recommendation("accept", SLUG, "1", "--why", "It blocks releases.")
    assert told == "Accepted recommendation 1. “Profile the build” is pending, priority medium.\n"
    assert recommendation("decline", SLUG, "2", "--why", "No money.") == "Declined recommendation 2.\n"
    assert recommendation("list", SLUG) == "No recommendation waits for a decision.\n"
    listed = recommendation("list", SLUG, "--all")
    assert "2. note · build-performance · declined by person:" in listed
    assert "   → No money.\n" in listed
    assert "differs from its events" not in punchlist("db", "check").stdout
    log = punchlist("mission", "recommendation", "accept", SLUG, "9", "--why", "x")
    assert "has no recommendation 9" in log.stderr


def test_an_agent_cannot_decide_at_the_terminal(punchlist: Cli, team: Team) -> None:
    Recommendations(team.store).add(team.owner, SLUG, "Trust me.")
    for action in ("accept", "decline"):
        refused = punchlist("mission", "recommendation", action, SLUG, "1", "--why", "I agree", env={"CLAUDECODE": "1"})
        assert refused.returncode != 0
        assert "is for you, not for an agent" in refused.stderr
