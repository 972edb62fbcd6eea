"""A todo whose work fails is tried once more, then skipped, and the rest goes on (C8)."""

from __future__ import annotations

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import call, nothing_changes, plan, trail

from punchlist.audit.check import check
from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition, NotAllowed, NotFound
from punchlist.kernel.events import Actor, Role
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import plan_stream
from punchlist.plan.service import Plans
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store


@pytest.mark.spec("C8")
@pytest.mark.parametrize("word", ["failed", "failure", "Error "])
def test_a_todo_that_failed_is_pending_again_and_the_model_is_told_to_retry(
    plans: Plans, turn: TurnScope, word: str
) -> None:
    first, _ = plan(plans, turn, "A", "B")
    call(plans, turn, "start_todo", todoId=first)
    told = call(plans, turn, "complete_todo", todoId=first, outcome="no compiler", status=word)
    assert "Start it once more" in told.pop("next")
    assert told == {
        "id": first,
        "title": "A",
        "status": "pending",
        "outcome": None,
        "completedAt": None,
        "remaining": 2,
        "retry": True,
    }
    again = call(plans, turn, "list_todo")["items"][0]
    assert (again["status"], again["startedAt"], again["outcome"]) == ("pending", None, None)
    assert call(plans, turn, "start_todo", todoId=first)["status"] == "in_progress"


@pytest.mark.spec("C8")
def test_a_todo_that_failed_twice_is_skipped_with_the_error_and_the_rest_goes_on(
    plans: Plans, turn: TurnScope, clock: StoppedClock
) -> None:
    first, second = plan(plans, turn, "A", "B")
    for error in ("no compiler", "still none"):
        call(plans, turn, "start_todo", todoId=first)
        clock.advance(seconds=1)
        told = call(plans, turn, "complete_todo", todoId=first, outcome=error, status="failed")
    assert "skipped. Continue with the rest" in told.pop("next")
    assert told == {
        "id": first,
        "title": "A",
        "status": "cancelled",
        "outcome": "Skipped after two attempts: still none",
        "completedAt": "2026-02-21T09:00:02.000000Z",
        "remaining": 1,
        "retry": False,
    }
    assert call(plans, turn, "start_todo", todoId=second)["status"] == "in_progress"


@pytest.mark.spec("C8")
def test_each_todo_has_a_second_try_of_its_own(plans: Plans, turn: TurnScope) -> None:
    ids = plan(plans, turn, "A", "B")
    assert [plans.fail(turn, todo_id, "broke").retry for todo_id in (*ids, *ids)] == [True, True, False, False]
    assert [todo.status for todo in plans.snapshot(turn).todos] == [PlanStatus.CANCELLED, PlanStatus.CANCELLED]


@pytest.mark.spec("C8")
def test_whoever_waited_for_what_was_skipped_goes_on_and_knows(plans: Plans, turn: TurnScope) -> None:
    items = [{"title": "A"}, {"title": "B", "blockedBy": ["A"]}]
    first, second = [made["id"] for made in call(plans, turn, "create_todo", items=items)["created"]]
    plans.fail(turn, first, "broke")
    assert second in plans.snapshot(turn).waits
    plans.fail(turn, first, "broke")
    look = plans.snapshot(turn)
    assert look.waits == {}
    assert look.notes[second][0].endswith("was cancelled: Skipped after two attempts: broke")


@pytest.mark.spec("C8", "X5")
def test_the_trail_has_both_errors(store: Store, plans: Plans, turn: TurnScope) -> None:
    (todo_id,) = plan(plans, turn, "A")
    plans.fail(turn, todo_id, "no compiler")
    plans.fail(turn, todo_id, "still none")
    events = trail(store, plan_stream(turn.turn_id))[1:]
    assert [(event.action, event.reason, event.to_status) for event in events] == [
        ("retry", "no compiler", "pending"),
        ("cancel", "still none", "cancelled"),
    ]
    assert check(store, SCHEMA_VERSION).problems == []


@pytest.mark.spec("C8")
@pytest.mark.parametrize(
    ("error", "kept"),
    [("a\x1b[2Jb", "a\\x1b[2Jb"), ("x" * 30_000, "x" * 20_000), (" ", "no details were given"), ("a\nb", "a\nb")],
)
def test_whatever_an_error_is_made_of_it_can_be_kept(
    store: Store, plans: Plans, turn: TurnScope, error: str, kept: str
) -> None:
    (todo_id,) = plan(plans, turn, "A")
    plans.fail(turn, todo_id, error)
    assert trail(store, plan_stream(turn.turn_id))[-1].reason == kept
    assert plans.fail(turn, todo_id, error).todo.outcome == f"Skipped after two attempts: {kept}"


@pytest.mark.spec("C8")
def test_only_what_is_open_can_fail_and_only_for_who_plans(store: Store, plans: Plans, turn: TurnScope) -> None:
    done, left = plan(plans, turn, "A", "B")
    call(plans, turn, "complete_todo", todoId=done, outcome="done")
    with nothing_changes(store):
        with pytest.raises(IllegalTransition, match="Cannot retry a plan todo that is completed"):
            plans.fail(turn, done, "broke")
        with pytest.raises(NotFound):
            plans.fail(turn, "nothing", "broke")
        with pytest.raises(NotAllowed):
            plans.fail(TurnScope("s", Actor(Role.WORKER, "coder"), turn.turn_id), left, "broke")
