"""A person's changes of a plan are messages of the conversation, and the agent is told of them (X9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlist.agent.list_state import MAX_TOLD, TurnLists
from punchlist.app import Services
from punchlist.audit.check import check
from punchlist.config import load
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.plan.person_changes import CHANGE_KIND
from punchlist.plan.validation import parse_items
from punchlist.storage.schema_version import SCHEMA_VERSION

PERSON = Scope("s", Actor(Role.PERSON, "ada"))
AGENT = Scope("s", Actor(Role.SUPERVISOR, "supervisor"))


@pytest.fixture
def services(project: Path, database: str) -> Iterator[Services]:
    built = Services(load({"database": database}, cwd=project))
    yield built
    built.close()


@pytest.fixture
def turn(services: Services) -> TurnScope:
    begun = services.conversations.begin_turn(AGENT, reason="test")
    scope = TurnScope("s", AGENT.actor, begun.id)
    services.plans.create(scope, parse_items([{"title": title} for title in ("A", "B", "C")]), reason="test")
    return scope


def changes(services: Services) -> list[str]:
    prefix = "A person changed the plan: "
    found = [message for message in services.conversations.messages("s") if message.kind == CHANGE_KIND]
    assert all(message.content.startswith(prefix) and message.posted_by == "person:ada" for message in found)
    return [message.content.removeprefix(prefix) for message in found]


@pytest.mark.spec("X9", "W9")
def test_every_change_of_a_plan_by_a_person_is_a_message(services: Services, turn: TurnScope) -> None:
    todos = services.todos
    todos.add(PERSON, ["D"], reason="test")
    todos.add(PERSON, ["E", "F", "G", "H", "I"], reason="test")
    todos.edit(PERSON, "1", "First", reason="test")
    todos.edit(PERSON, "1", "First", reason="test")
    todos.move(PERSON, "3", 1, reason="test")
    todos.start(PERSON, "2", reason="test")
    todos.complete(PERSON, "2", reason="test")
    todos.accept(PERSON, "2", reason="test")
    todos.cancel(PERSON, "4")
    todos.undo(PERSON, reason="test")
    assert changes(services) == [
        "added “D”.",
        "added “E”, “F”, “G”, 2 more.",
        "changed “A” to “First”.",
        "moved “C” to place 1.",
        "started “B”.",
        "completed “B”.",
        "cancelled “D”.",
        "reopened “D”.",
    ]
    assert {message.turn_id for message in services.conversations.messages("s")} == {turn.turn_id}
    assert check(services.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("X9", "T11")
def test_each_request_tells_the_agent_what_a_person_changed_last(services: Services, turn: TurnScope) -> None:
    lists = TurnLists(services.store, turn, plan=True, checklist=True)
    ids = [item.id for item in services.todos.list(AGENT).items]
    services.plans.start(turn, ids[0])
    services.plans.end(turn, ids[0], "done")
    assert "A person changed" not in lists.read().text
    services.todos.cancel(PERSON, "2")
    state = lists.read()
    assert state.text.endswith("\n\nA person changed the plan: cancelled “B”.")
    assert [item.title for item in state.open] == ["C"]
    for number in range(MAX_TOLD):
        services.todos.add(PERSON, [f"More {number}"], reason="test")
    told = lists.read().text
    assert "cancelled “B”" not in told
    assert told.endswith("A person changed the plan: added “More 4”.")
