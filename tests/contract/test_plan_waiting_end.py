"""A todo that waits can be cancelled, and not completed (C10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import call, nothing_changes, plan

from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition
from punchlist.kernel.events import Actor, Role
from punchlist.plan.service import Plans
from punchlist.storage.store import Store

WAITS: list[dict[str, Any]] = [
    {"person": "Which port?"},
    {"time": "2026-02-21T10:00:00Z"},
    {"event": "deployed"},
    {"todo": "B"},
]
PERSON = Actor(Role.PERSON, "ann")


@pytest.mark.spec("C10")
@pytest.mark.parametrize("waits_for", WAITS, ids=str)
@pytest.mark.parametrize("started", [False, True])
def test_a_waiting_todo_is_not_completed_by_anyone(
    store: Store, plans: Plans, turn: TurnScope, waits_for: dict[str, Any], started: bool
) -> None:
    first, _ = plan(plans, turn, "A", "B")
    if started:
        call(plans, turn, "start_todo", todoId=first)
    call(plans, turn, "wait_todo", todoId=first, **{"for": waits_for})
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match=r"“A” .*waits for .*cancel it with a reason"):
            call(plans, turn, "complete_todo", todoId=first, outcome="done anyway")
        with pytest.raises(IllegalTransition, match=r"punchlist answer.*or cancel"):
            plans.end(replace(turn, actor=PERSON), first, "done anyway")
    assert call(plans, turn, "complete_todo", todoId=first, outcome="not needed", status="cancelled")["remaining"] == 1


@pytest.mark.spec("C10")
def test_a_claim_does_not_complete_what_waits(store: Store, plans: Plans, turn: TurnScope) -> None:
    (first,) = plan(plans, turn, "A")
    claimed = plans.claim(turn, "here", first)
    call(plans, turn, "wait_todo", todoId=first, **{"for": {"person": "Which?"}})
    with nothing_changes(store), pytest.raises(IllegalTransition, match="waits for an answer"):
        call(plans, turn, "complete_todo", todoId=first, outcome="done", fence=claimed.claim.fence)  # type: ignore[union-attr]


@pytest.mark.spec("C10")
def test_what_no_longer_waits_is_completed(plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    first, second = plan(plans, turn, "A", "B")
    for waits_for in WAITS:
        call(plans, turn, "wait_todo", todoId=first, **{"for": waits_for})
    for blocked in plans.open_conditions(turn.conversation_id):
        if blocked.condition.kind != "time":
            plans.resolve(turn.conversation_id, blocked.condition.id, "8080", PERSON)
    clock.advance(seconds=7_200)
    with pytest.raises(IllegalTransition, match="waits for “B”"):
        call(plans, turn, "complete_todo", todoId=first, outcome="done")
    call(plans, turn, "complete_todo", todoId=second, outcome="done")
    assert call(plans, turn, "complete_todo", todoId=first, outcome="done")["remaining"] == 0


@pytest.mark.spec("C10")
def test_a_resource_that_another_todo_uses_does_not_make_a_finished_todo_unfinished(
    plans: Plans, turn: TurnScope
) -> None:
    call(plans, turn, "create_todo", items=[{"title": name, "resources": ["a.py"]} for name in "AB"])
    call(plans, turn, "start_todo", todoId=1)
    assert call(plans, turn, "complete_todo", todoId=2, outcome="done")["status"] == "completed"
