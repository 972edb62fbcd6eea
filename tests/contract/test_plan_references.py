"""A plan todo is named by its id, its number, or a part of its id (T4, C10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.contract.front import call, nothing_changes, plan

from punchlist.conversations.model import TurnScope
from punchlist.errors import InvalidInput, NotFound
from punchlist.plan.model import NewTodo
from punchlist.plan.service import Plans
from punchlist.storage.store import Store


@pytest.mark.spec("T4", "T5")
@pytest.mark.parametrize(
    "short",
    [
        lambda _: 2,
        lambda _: "2",
        lambda _: " 2 ",
        lambda todo_id: todo_id[-4:],
        lambda todo_id: todo_id[-12:],
        lambda todo_id: todo_id[-4:].upper(),
        lambda todo_id: todo_id[:-1],
    ],
)
def test_a_number_or_a_part_of_the_id_names_a_todo(plans: Plans, turn: TurnScope, short: Callable[[str], Any]) -> None:
    made = [NewTodo(title, id=f"0190-{title}-abcd{number}") for number, title in enumerate("ABC")]
    _, second, _ = (todo.id for todo in plans.create(turn, made).todos)
    reference = short(second)
    assert call(plans, turn, "start_todo", todoId=reference)["id"] == second
    assert call(plans, turn, "wait_todo", todoId=reference, **{"for": {"todo": "1"}})["id"] == second
    assert call(plans, turn, "complete_todo", todoId=1, outcome="done")["title"] == "A"
    assert call(plans, turn, "complete_todo", todoId=reference, outcome="done")["id"] == second
    assert plans.list(turn).items[0].title == "C"


@pytest.mark.spec("T4")
def test_a_number_counts_all_todos_in_the_order_of_the_plan(plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A", "B")
    call(plans, turn, "complete_todo", todoId="1", outcome="done")
    call(plans, turn, "create_todo", items=[{"title": "first", "order": 1}])
    assert [call(plans, turn, "complete_todo", todoId=n, outcome="x")["title"] for n in (3, 1)] == ["B", "first"]


@pytest.mark.spec("T4")
@pytest.mark.parametrize("reference", ["nothing", "0", "4", "-1", "٢", "abc", "0190-", "x" * 100, "1.0"])
def test_an_unknown_or_ambiguous_reference_lists_the_open_todos_with_their_numbers(
    store: Store, plans: Plans, turn: TurnScope, reference: str
) -> None:
    plans.create(turn, [NewTodo(title, id=f"0190-{title}") for title in ("A", "B\u202e", "C")])
    call(plans, turn, "complete_todo", todoId="1", outcome="done")
    for tool in ("start_todo", "complete_todo", "wait_todo"):
        more = {"outcome": "done", "for": {"person": "Which?"}}
        with nothing_changes(store), pytest.raises(NotFound) as error:
            call(plans, turn, tool, todoId=reference, **more)
        assert "Open todos: 2 “B\\u202e”, 3 “C”." in str(error.value)
        assert "“A”" not in str(error.value)


@pytest.mark.spec("T4")
def test_an_error_about_a_long_plan_stays_short(plans: Plans, turn: TurnScope) -> None:
    plans.create(turn, [NewTodo("x" * 500)] * 1_000)
    with pytest.raises(NotFound) as error:
        call(plans, turn, "start_todo", todoId="nothing")
    assert "and 995 more" in str(error.value)
    assert len(str(error.value)) < 1_000


@pytest.mark.spec("T4", "T7")
def test_a_reference_never_reaches_a_todo_of_another_turn(
    store: Store, plans: Plans, turn: TurnScope, other_turn: TurnScope
) -> None:
    (foreign,) = plan(plans, other_turn, "A")
    for reference in (foreign, foreign[-6:], "1"):
        with nothing_changes(store), pytest.raises(NotFound):
            call(plans, turn, "start_todo", todoId=reference)


@pytest.mark.spec("C10")
def test_a_condition_names_a_todo_by_its_number_in_the_plan_that_results(plans: Plans, turn: TurnScope) -> None:
    plan(plans, turn, "A", "B")
    items: list[dict[str, Any]] = [{"title": "C", "order": 1}, {"title": "D", "blockedBy": ["1", {"todo": "3"}, "4"]}]
    call(plans, turn, "create_todo", items=items[:1])
    with pytest.raises(InvalidInput, match="cannot wait for itself"):
        call(plans, turn, "create_todo", items=items[1:])
    items[1]["blockedBy"] = ["1", {"todo": "3"}]
    call(plans, turn, "create_todo", items=items[1:])
    listed = call(plans, turn, "list_todo")["items"]
    assert listed[-1]["waitsFor"] == ["“C” (number 1)", "“B” (number 3)"]
    assert [wait.split("”")[0] for wait in listed[-1]["waitsFor"]] == ["“C", "“B"]


@pytest.mark.spec("C10")
def test_a_title_goes_before_a_number(plans: Plans, turn: TurnScope) -> None:
    call(plans, turn, "create_todo", items=[{"title": "A"}, {"title": "1"}, {"title": "C", "blockedBy": ["1"]}])
    assert "“1”" in call(plans, turn, "list_todo")["items"][2]["waitsFor"][0]
