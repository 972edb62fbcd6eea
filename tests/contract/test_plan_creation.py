"""`create_todo`: a batch in one transaction, each item at its place (T2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.front import call, everything, nothing_changes, plan

from punchlist.conversations.model import TurnScope
from punchlist.errors import InvalidInput
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import NewTodo
from punchlist.plan.service import Plans
from punchlist.storage.store import Store


def line(plans: Plans, turn: TurnScope) -> list[str]:
    """The titles of the whole plan, checked to stand at 0, 1, 2, …"""
    items = plans.list(turn, frozenset(PlanStatus)).items
    assert [item.priority for item in items] == list(range(len(items)))
    return [item.title for item in items]


def create(plans: Plans, turn: TurnScope, **orders: int | None) -> dict[str, Any]:
    return call(plans, turn, "create_todo", items=[{"title": title, "order": order} for title, order in orders.items()])


@pytest.mark.spec("T2")
def test_items_are_appended_in_the_order_they_were_sent(plans: Plans, turn: TurnScope) -> None:
    first = create(plans, turn, A=None, B=None)
    second = create(plans, turn, C=None)
    assert [(made["title"], made["order"]) for made in first["created"]] == [("A", 1), ("B", 2)]
    assert [(made["title"], made["order"]) for made in second["created"]] == [("C", 3)]
    assert line(plans, turn) == ["A", "B", "C"]


@pytest.mark.spec("T2")
def test_the_result_has_the_promised_fields_and_nothing_else(plans: Plans, turn: TurnScope) -> None:
    result = create(plans, turn, A=None, B=None)
    assert set(result) == {"created", "totalPending"}
    assert all(set(made) == {"id", "title", "order"} for made in result["created"])
    assert [made["id"] for made in result["created"]] == [item.id for item in plans.list(turn).items]


@pytest.mark.spec("T2")
def test_pending_items_are_counted_over_the_whole_plan(plans: Plans, turn: TurnScope) -> None:
    first, second, _ = plan(plans, turn, "A", "B", "C")
    call(plans, turn, "start_todo", todoId=first)
    call(plans, turn, "complete_todo", todoId=second, outcome="done")
    assert create(plans, turn, D=None, E=None)["totalPending"] == 3


@pytest.mark.spec("T2")
def test_a_position_counts_from_one_and_later_items_shift(plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A", "B", "C")
    assert create(plans, turn, X=2)["created"][0]["order"] == 2
    assert line(plans, turn) == ["A", "X", "B", "C"]
    create(plans, turn, Y=1)
    assert line(plans, turn) == ["Y", "A", "X", "B", "C"]


@pytest.mark.spec("T2")
def test_a_batch_may_have_its_items_all_over_the_plan(plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A", "B", "C")
    made = create(plans, turn, V=1, W=None, X=3, Y=99, Z=1)["created"]
    assert line(plans, turn) == ["Z", "V", "A", "X", "B", "C", "W", "Y"]
    assert {item["title"]: item["order"] for item in made} == {"V": 2, "W": 7, "X": 4, "Y": 8, "Z": 1}


@pytest.mark.spec("T2")
def test_a_position_far_past_the_end_is_the_end(plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A")
    assert create(plans, turn, B=10**30)["created"][0]["order"] == 2


@pytest.mark.spec("T2")
def test_ended_items_keep_their_place_in_the_line(plans: Plans, turn: TurnScope) -> None:
    first, _ = plan(plans, turn, "A", "B")
    call(plans, turn, "complete_todo", todoId=first, outcome="done")
    create(plans, turn, X=2)
    assert line(plans, turn) == ["A", "X", "B"]


@pytest.mark.spec("T2", "T7")
def test_another_turns_plan_does_not_shift(plans: Plans, turn: TurnScope, other_turn: TurnScope) -> None:
    plan(plans, other_turn, "P", "Q")
    plan(plans, turn, "A")
    create(plans, turn, X=1)
    assert line(plans, other_turn) == ["P", "Q"]


@pytest.mark.spec("T2")
def test_one_bad_item_spoils_the_whole_batch(store: Store, plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A")
    good = [{"title": "good", "order": 1}, {"title": "good too"}]
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, r"^items\[2\]\.title: is required"),
        ({"title": "x", "order": 0}, r"^items\[2\]\.order: must be a position counted from 1"),
        ({"title": "a\nb"}, r"^items\[2\]\.title: must not contain a line break"),
        ({"title": "x", "context": "a\x00b"}, r"^items\[2\]\.context: must not contain control characters"),
    ]
    with nothing_changes(store):
        for item, problem in bad:
            with pytest.raises(InvalidInput, match=problem):
                call(plans, turn, "create_todo", items=[*good, item])


@pytest.mark.spec("T2")
def test_a_batch_that_the_database_refuses_half_way_leaves_nothing(store: Store, plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A")
    hostile = [NewTodo("good", order=1), NewTodo("half a surrogate pair: \ud800")]
    with nothing_changes(store), pytest.raises(InvalidInput, match="surrogate"):
        plans.create(turn, hostile)


@pytest.mark.spec("T2", "C16")
def test_a_plan_of_ten_thousand_works_and_one_more_is_refused(store: Store, plans: Plans, turn: TurnScope) -> None:
    for _ in range(10):
        plans.create(turn, [NewTodo("x")] * 1_000)
    before = everything(store)["turn_todos"]
    with pytest.raises(InvalidInput, match="at most 10000 todos; this one has 10000 and 1 more"):
        create(plans, turn, A=1)
    assert everything(store)["turn_todos"] == before
    assert call(plans, turn, "list_todo")["summary"]["pending"] == 10_000
