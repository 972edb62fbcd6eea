"""`start_todo` and `complete_todo`: one item at a time, and each ends once (T4, T5)."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import call, nothing_changes, plan

from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotFound
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.service import Plans
from punchlist.storage.store import Store


@pytest.mark.spec("T4")
@pytest.mark.parametrize(
    ("asked", "status"), [(None, "completed"), ("completed", "completed"), ("cancelled", "cancelled")]
)
def test_a_todo_ends_with_its_outcome_and_the_count_of_what_remains(
    plans: Plans, turn: TurnScope, clock: StoppedClock, asked: str | None, status: str
) -> None:
    first, second, _ = plan(plans, turn, "A", "B", "C")
    call(plans, turn, "start_todo", todoId=second)
    clock.advance(seconds=5)
    assert call(plans, turn, "complete_todo", todoId=first, outcome=" so\nit went ", status=asked) == {
        "id": first,
        "title": "A",
        "status": status,
        "outcome": "so\nit went",
        "completedAt": "2026-02-21T09:00:05.000000Z",
        "remaining": 2,
    }


@pytest.mark.spec("T4")
def test_the_last_todo_leaves_nothing_remaining(plans: Plans, turn: TurnScope) -> None:
    first, second = plan(plans, turn, "A", "B")
    call(plans, turn, "start_todo", todoId=first)
    left = [
        call(plans, turn, "complete_todo", todoId=first, outcome="done")["remaining"],
        call(plans, turn, "complete_todo", todoId=second, outcome="no", status="cancelled")["remaining"],
    ]
    assert left == [1, 0]


@pytest.mark.spec("T4")
@pytest.mark.parametrize("first", ["completed", "cancelled"])
def test_a_todo_that_has_ended_cannot_end_or_start_again(
    store: Store, plans: Plans, turn: TurnScope, first: str
) -> None:
    (todo_id,) = plan(plans, turn, "A")
    call(plans, turn, "complete_todo", todoId=todo_id, outcome="done", status=first)
    with nothing_changes(store):
        for second in ("completed", "cancelled"):
            with pytest.raises(
                IllegalTransition, match=f"that is {first} already" if second == first else f"that is {first}.*"
            ):
                call(plans, turn, "complete_todo", todoId=todo_id, outcome="again", status=second)
        with pytest.raises(IllegalTransition, match=f"Cannot start .* that is {first}"):
            call(plans, turn, "start_todo", todoId=todo_id)


@pytest.mark.spec("T4", "T5")
@pytest.mark.parametrize("tool", ["start_todo", "complete_todo"])
def test_an_unknown_todo_is_a_clear_error(store: Store, plans: Plans, turn: TurnScope, tool: str) -> None:
    with nothing_changes(store), pytest.raises(NotFound, match=r"no todo 'nothing'.*no open todos"):
        call(plans, turn, tool, todoId="nothing", outcome="done")


@pytest.mark.spec("T4", "T5", "T7")
@pytest.mark.parametrize("tool", ["start_todo", "complete_todo"])
def test_a_todo_of_another_turn_is_a_clear_error(
    store: Store, plans: Plans, conversations: Conversations, turn: TurnScope, other_turn: TurnScope, tool: str
) -> None:
    (of_another_session,) = plan(plans, other_turn, "B")
    (of_the_turn_before,) = plan(plans, turn, "A")
    conversations.end_turn(turn, reason="test")
    new_turn = TurnScope("s", turn.actor, conversations.open_turn(turn).id)
    with nothing_changes(store):
        for todo_id in (of_another_session, of_the_turn_before):
            with pytest.raises(NotFound, match="another turn"):
                call(plans, new_turn, tool, todoId=todo_id, outcome="done")


@pytest.mark.spec("T4")
def test_a_bad_ending_is_refused_by_field_and_rule(store: Store, plans: Plans, turn: TurnScope) -> None:
    (todo_id,) = plan(plans, turn, "A")
    bad: list[tuple[dict[str, object], str]] = [
        ({}, r"^todoId: must be text, got null"),
        ({"todoId": 1.5, "outcome": "done"}, r"^todoId: must be text, got a number"),
        ({"todoId": True, "outcome": "done"}, r"^todoId: must be text"),
        ({"todoId": todo_id}, r"^outcome: is required"),
        ({"todoId": todo_id, "outcome": "  "}, r"^outcome: must be 1 to 20000 characters"),
        ({"todoId": todo_id, "outcome": "a\x1b[2Jb"}, r"^outcome: must not contain control characters"),
        (
            {"todoId": todo_id, "outcome": "done", "status": "pending"},
            r"^status: must be completed, cancelled or failed",
        ),
    ]
    with nothing_changes(store):
        for arguments, problem in bad:
            with pytest.raises(InvalidInput, match=problem):
                call(plans, turn, "complete_todo", **arguments)


@pytest.mark.spec("T5")
def test_a_started_todo_is_in_progress_since_now(plans: Plans, turn: TurnScope, clock: StoppedClock) -> None:
    (todo_id,) = plan(plans, turn, "A")
    clock.advance(seconds=5)
    started = call(plans, turn, "start_todo", todoId=todo_id)
    assert (started["status"], started["startedAt"]) == ("in_progress", "2026-02-21T09:00:05.000000Z")
    (listed,) = call(plans, turn, "list_todo")["items"]
    assert started == {name: value for name, value in listed.items() if value not in ("", None)}


@pytest.mark.spec("T5")
def test_one_item_is_in_progress_at_a_time(store: Store, plans: Plans, turn: TurnScope) -> None:
    first, second = plan(plans, turn, "A", "B")
    call(plans, turn, "start_todo", todoId=first)
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match=r"“A” \(number 1\) is in progress.*Complete or cancel it first"):
            call(plans, turn, "start_todo", todoId=second)
        with pytest.raises(IllegalTransition, match=r"Cannot start .* that is in_progress"):
            call(plans, turn, "start_todo", todoId=first)
    call(plans, turn, "complete_todo", todoId=first, outcome="done")
    call(plans, turn, "start_todo", todoId=second)
    assert [item.id for item in plans.list(turn, {PlanStatus.IN_PROGRESS}).items] == [second]


@pytest.mark.spec("T5")
def test_each_turn_has_its_own_item_in_progress(plans: Plans, turn: TurnScope, other_turn: TurnScope) -> None:
    for scope in (turn, other_turn):
        (todo_id,) = plan(plans, scope, "A")
        assert call(plans, scope, "start_todo", todoId=todo_id)["status"] == "in_progress"
