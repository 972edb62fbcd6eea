"""A person takes back changes of either list: one at a time, the last one first (X9, W3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from punchlist.app import Services
from punchlist.audit.check import check
from punchlist.config import load
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Actor, Role
from punchlist.plan.lifecycle import PlanAction
from punchlist.plan.undo import TAKEN_BACK, PlanUndo
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


def listed(services: Services) -> list[tuple[str, str]]:
    return [(item.title, item.status) for item in services.todos.list(PERSON).items]


def undo(services: Services) -> list[tuple[str, str]]:
    services.todos.undo(PERSON, reason="test")
    return listed(services)


@pytest.mark.spec("X9", "T1")
def test_every_change_of_a_plan_by_a_person_is_taken_back(services: Services, turn: TurnScope) -> None:
    assert services.todos.list(PERSON).turn is not None
    states = [listed(services)]
    changes: tuple[Callable[[], None], ...] = (
        lambda: services.todos.edit(PERSON, "1", "A, but better", reason="test"),
        lambda: services.todos.move(PERSON, "3", 1, reason="test"),
        lambda: services.todos.cancel(PERSON, "2"),
        lambda: services.todos.start(PERSON, "1", reason="test"),
        lambda: services.todos.complete(PERSON, "1", reason="test"),
    )
    for change in changes:
        change()
        states.append(listed(services))
    states.pop()
    # A todo that was started and completed is pending again, and then nothing is left of its start.
    assert undo(services) == states[3]
    states = states[:3]
    while states:
        assert undo(services) == states.pop()
    with pytest.raises(IllegalTransition, match="nothing to undo: no person has changed the plan"):
        undo(services)
    assert listed(services) == [("A", "pending"), ("B", "pending"), ("C", "pending")]
    assert check(services.store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("X9")
def test_items_that_were_added_together_are_cancelled_together(services: Services, turn: TurnScope) -> None:
    services.todos.add(PERSON, ["D"], reason="test")
    services.todos.add(PERSON, ["E", "F"], reason="test")
    assert undo(services)[3:] == [("D", "pending"), ("E", "cancelled"), ("F", "cancelled")]
    assert services.todos.list(PERSON).find("5").outcome == TAKEN_BACK
    assert undo(services)[3:] == [("D", "cancelled"), ("E", "cancelled"), ("F", "cancelled")]


@pytest.mark.spec("X9", "T4")
def test_what_the_agent_did_since_stays(services: Services, turn: TurnScope) -> None:
    services.todos.edit(PERSON, "1", "A2", reason="test")
    services.todos.cancel(PERSON, "2")
    first = services.todos.list(PERSON).find("1")
    services.plans.end(turn, first.id, "done")
    services.plans.end(turn, services.todos.list(PERSON).find("3").id, "no", PlanAction.CANCEL)
    assert undo(services) == [("A2", "completed"), ("B", "pending"), ("C", "cancelled")]
    with pytest.raises(IllegalTransition, match="nothing to undo"):
        undo(services)


@pytest.mark.spec("X9", "W3")
def test_the_later_change_of_both_lists_is_undone_first(services: Services, turn: TurnScope) -> None:
    services.todos.cancel(PERSON, "1")
    services.checklists.add(PERSON, "Milk", reason="test")
    services.todos.cancel(PERSON, "2")
    assert undo(services)[1] == ("B", "pending")
    assert undo(services) == [("A", "cancelled"), ("B", "pending"), ("C", "pending")]
    assert undo(services)[0] == ("A", "pending")


@pytest.mark.spec("T4")
def test_an_agent_takes_nothing_back_and_a_plan_that_has_ended_stays(services: Services, turn: TurnScope) -> None:
    services.todos.cancel(PERSON, "1")
    with pytest.raises(NotAllowed):
        PlanUndo(services.store).undo(turn, reason="test")
    services.conversations.end_turn(AGENT, reason="open")
    with pytest.raises(IllegalTransition, match="turn that has ended"):
        undo(services)
