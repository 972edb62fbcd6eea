"""`list_todo`: what remains, or what was asked for, in the plan's order (T3)."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import call, plan

from punchlist.conversations.model import TurnScope
from punchlist.errors import InvalidInput, NotFound
from punchlist.plan.service import Plans


@pytest.fixture
def four(plans: Plans, turn: TurnScope) -> dict[str, str]:
    """A plan with an item in each state; their ids by state."""
    names = ["completed", "in_progress", "cancelled", "pending"]
    ids = dict(zip(names, plan(plans, turn, *names), strict=True))
    call(plans, turn, "complete_todo", todoId=ids["completed"], outcome="done")
    call(plans, turn, "start_todo", todoId=ids["in_progress"])
    call(plans, turn, "complete_todo", todoId=ids["cancelled"], outcome="not needed", status="cancelled")
    return ids


@pytest.mark.spec("T3")
def test_what_remains_is_listed_unless_a_status_is_asked_for(
    plans: Plans, turn: TurnScope, four: dict[str, str]
) -> None:
    def titles(status: str | None) -> list[str]:
        listed = call(plans, turn, "list_todo", status=status)
        assert listed["summary"] == {"total": 4, "pending": 1, "inProgress": 1, "completed": 1, "cancelled": 1}
        return [item["title"] for item in listed["items"]]

    assert titles(None) == ["in_progress", "pending"]
    assert titles("all") == ["completed", "in_progress", "cancelled", "pending"]
    for status in four:
        assert titles(status) == [status]


@pytest.mark.spec("T3")
def test_an_item_has_every_field_of_the_seed(plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    sent = {"title": "A", "context": "why", "completionCriteria": "how to tell", "agentType": "researcher"}
    created = call(plans, turn, "create_todo", items=[{"title": "B"}, {**sent, "order": 1}])["created"]
    clock.advance(minutes=1)
    call(plans, turn, "start_todo", todoId=created[1]["id"])
    clock.advance(minutes=1)
    call(plans, turn, "complete_todo", todoId=created[1]["id"], outcome="three sources")
    first, second = call(plans, turn, "list_todo", status="all")["items"]
    assert first == {
        **sent,
        "id": created[1]["id"],
        "status": "completed",
        "priority": 0,
        "outcome": "three sources",
        "createdAt": "2026-02-21T09:00:00.000000Z",
        "startedAt": "2026-02-21T09:01:00.000000Z",
        "completedAt": "2026-02-21T09:02:00.000000Z",
    }
    assert second == {
        "id": created[0]["id"],
        "title": "B",
        "context": "",
        "completionCriteria": "",
        "agentType": None,
        "status": "pending",
        "priority": 1,
        "outcome": None,
        "createdAt": "2026-02-21T09:00:00.000000Z",
        "startedAt": None,
        "completedAt": None,
    }


@pytest.mark.spec("T3")
def test_an_empty_plan_is_listed_as_such(plans: Plans, turn: TurnScope) -> None:
    assert call(plans, turn, "list_todo") == {
        "items": [],
        "summary": {"total": 0, "pending": 0, "inProgress": 0, "completed": 0, "cancelled": 0},
    }


@pytest.mark.spec("T3")
def test_an_unknown_status_is_refused(plans: Plans, turn: TurnScope) -> None:
    with pytest.raises(InvalidInput, match=r"^status: must be one of pending, .*, all, got 'open'$"):
        call(plans, turn, "list_todo", status="open")


@pytest.mark.spec("T3", "T7")
def test_a_turn_of_another_session_cannot_be_listed(plans: Plans, turn: TurnScope, other_turn: TurnScope) -> None:
    plan(plans, other_turn, "secret")
    borrowed = TurnScope(turn.conversation_id, turn.actor, other_turn.turn_id)
    with pytest.raises(NotFound):
        call(plans, borrowed, "list_todo")
