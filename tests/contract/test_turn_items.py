"""The items that `run --json` lists: those of this turn, from all lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from punchlist.app import Services
from punchlist.checklist.lifecycle import ChecklistAction
from punchlist.config import Settings
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.plan.validation import parse_items
from punchlist.views.turn_items import TurnItem, all_cancelled, turn_items

SCOPE = Scope("s", Actor(Role.SUPERVISOR, "test"))


@pytest.fixture
def services(database: str) -> Iterator[Services]:
    built = Services(Settings(database, "s", "normal", None))
    yield built
    built.close()


def begin(services: Services, *titles: str) -> TurnScope:
    turn = services.conversations.begin_turn(SCOPE, reason="test")
    scope = TurnScope("s", SCOPE.actor, turn.id)
    services.plans.create(scope, parse_items([{"title": title} for title in titles]), reason="test")
    return scope


def listed(items: list[TurnItem]) -> list[tuple[str, str, str]]:
    return [(item["list"], item["title"], item["status"]) for item in items]


@pytest.mark.spec("C13", "V4")
def test_a_turn_has_its_plan_and_what_was_open_on_the_checklist(services: Services) -> None:
    begin(services, "Planned before")
    checklists = services.checklists
    checklists.add(SCOPE, "Ended before", "Open before", reason="test")
    ended, left = checklists.get("s").items
    checklists.advance(SCOPE, ended.id, ChecklistAction.COMPLETE, reason="test")
    turn = begin(services, "Planned")
    checklists.advance(SCOPE, left.id, ChecklistAction.COMPLETE, reason="test")
    checklists.add(SCOPE, "Added", reason="test")
    counted = [item.id for item in checklists.get("s").items]
    assert listed(turn_items(services, SCOPE, turn.turn_id, counted)) == [
        ("plan", "Planned", "pending"),
        ("checklist", "Open before", "completed"),
        ("checklist", "Added", "pending"),
    ]
    without_checklist = turn_items(services, SCOPE, turn.turn_id, [])
    assert listed(without_checklist) == [("plan", "Planned", "pending")]
    checklists.advance(SCOPE, ended.id, ChecklistAction.REOPEN, reason="test")
    assert "Ended before" in [item["title"] for item in turn_items(services, SCOPE, turn.turn_id, counted)]


@pytest.mark.spec("C13")
def test_items_that_the_agent_removed_after_they_ended_are_listed(services: Services) -> None:
    checklists = services.checklists
    checklists.add(SCOPE, "Ended before", reason="test")
    checklists.advance(SCOPE, checklists.get("s").items[0].id, ChecklistAction.COMPLETE, reason="test")
    turn = services.conversations.begin_turn(SCOPE, reason="test")
    checklists.add(SCOPE, "Not needed", reason="test")
    unneeded = checklists.get("s").items[-1].id
    checklists.cancel(SCOPE, unneeded, "It exists", reason="test")
    checklists.rewrite(SCOPE, [], reason="test")
    found = turn_items(services, SCOPE, turn.id, [])
    assert listed(found) == [("checklist", "Not needed", "cancelled")]
    assert all_cancelled(found)


def test_nothing_is_all_cancelled_without_items() -> None:
    assert not all_cancelled([])
    assert all_cancelled([{"status": "cancelled"}])
    assert not all_cancelled([{"status": "cancelled"}, {"status": "completed"}])
