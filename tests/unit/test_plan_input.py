"""What the plan's tools accept, and how they say what is wrong (T2, T3, T4)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.hostile import ACTS_ON_A_TERMINAL, BREAKS_A_DATABASE, REFUSED_IN_A_LINE

from punchlist.errors import InvalidInput
from punchlist.plan.lifecycle import PlanAction, PlanStatus
from punchlist.plan.model import NewTodo
from punchlist.plan.validation import parse_end_action, parse_id, parse_items, parse_outcome, parse_status_filter


def problems(items: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        parse_items(items)
    return refused.value.problems


@pytest.mark.spec("T2")
def test_an_item_needs_a_title_and_may_say_more() -> None:
    everything = {
        "title": " Research ",
        "context": "line one\nline two ",
        "completionCriteria": "three sources",
        "agentType": "researcher",
        "order": 2,
    }
    assert parse_items([everything, {"title": "Write"}]) == [
        NewTodo("Research", "line one\nline two", "three sources", "researcher", 2),
        NewTodo("Write"),
    ]


@pytest.mark.spec("T2")
def test_what_is_left_out_may_also_be_null() -> None:
    nulls = dict.fromkeys(["context", "completionCriteria", "agentType", "order"])
    assert parse_items([{"title": "A", **nulls}]) == [NewTodo("A")]


@pytest.mark.spec("T2")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"title": ""}, "title: must be 1 to 500 characters after trimming, got 0"),
        ({"title": "x" * 501}, "title: must be 1 to 500 characters after trimming, got 501"),
        ({"title": 5}, "title: must be text, got a number"),
        ({"title": "a\nb"}, "title: must not contain a line break (U+000A) (at character 2)"),
        ({"context": 5}, "context: must be text, got a number"),
        ({"context": "x" * 20_001}, "context: must be 0 to 20000 characters after trimming, got 20001"),
        ({"completionCriteria": []}, "completionCriteria: must be text, got an array"),
        ({"agentType": ""}, "agentType: must be 1 to 100 characters after trimming, got 0"),
        ({"agentType": "a\nb"}, "agentType: must not contain a line break (U+000A) (at character 2)"),
        ({"order": 0}, "order: must be a position counted from 1, got 0"),
        ({"order": -3}, "order: must be a position counted from 1, got -3"),
        ({"order": 1.5}, "order: must be a position counted from 1, got 1.5"),
        ({"order": True}, "order: must be a position counted from 1, got a boolean"),
        ({"order": "1"}, "order: must be a position counted from 1, got '1'"),
        ({"order": []}, "order: must be a position counted from 1, got an array"),
    ],
)
def test_a_bad_item_is_refused_with_its_place_and_rule(change: dict[str, Any], problem: str) -> None:
    assert problems([{"title": "fine"}, {"title": "A", **change}]) == [f"items[1].{problem}"]


@pytest.mark.spec("T2")
@pytest.mark.parametrize("order", [-(10**30), -(10**5000)], ids=["30 digits", "5000 digits"])
def test_an_order_of_any_size_is_refused_in_words(order: int) -> None:
    (problem,) = problems([{"title": "A", "order": order}])
    assert problem.startswith("items[0].order: must be a position counted from 1, got ")


@pytest.mark.spec("W10")
@pytest.mark.parametrize("text", REFUSED_IN_A_LINE.values(), ids=REFUSED_IN_A_LINE)
def test_hostile_titles_are_refused(text: str) -> None:
    assert problems([{"title": f"x{text}x"}])[0].startswith("items[0].title: must not contain ")


@pytest.mark.spec("W10")
@pytest.mark.parametrize("field", ["context", "completionCriteria"])
@pytest.mark.parametrize("text", [*ACTS_ON_A_TERMINAL.values(), *BREAKS_A_DATABASE.values()])
def test_hostile_blocks_are_refused(field: str, text: str) -> None:
    assert problems([{"title": "A", field: f"x{text}x"}])[0].startswith(f"items[0].{field}: must not contain ")


@pytest.mark.spec("T2")
def test_every_problem_of_a_batch_is_told() -> None:
    found = problems([{}, {"title": "A", "order": 0}, "B"])
    assert found == [
        "items[0].title: is required",
        "items[1].order: must be a position counted from 1, got 0",
        "items[2]: must be an object with a title, got text",
    ]


@pytest.mark.spec("T2")
@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (None, "items: must be an array of items, got null"),
        ({"title": "A"}, "items: must be an array of items, got an object"),
        ([], "items: must have at least one item"),
        ([{"title": "A"}] * 1_001, "items: at most 1000 items in one call, got 1001"),
    ],
    ids=["null", "object", "empty", "1001"],
)
def test_a_bad_batch_is_refused(items: object, problem: str) -> None:
    assert problems(items) == [problem]


@pytest.mark.spec("T2", "T7")
def test_fields_that_nobody_knows_have_no_effect() -> None:
    assert parse_items([{"title": "A", "turnId": "other", "status": "completed"}]) == [NewTodo("A")]


@pytest.mark.spec("T3")
def test_the_filter_is_one_state_or_all_or_what_remains() -> None:
    assert parse_status_filter(None) is None
    assert parse_status_filter("all") == frozenset(PlanStatus)
    assert [parse_status_filter(status.value) for status in PlanStatus] == [
        frozenset({status}) for status in PlanStatus
    ]


@pytest.mark.spec("T3")
@pytest.mark.parametrize("status", ["", "open", "ALL ", 1, [], {}, True, "\x1b[2J"])
def test_another_filter_is_refused_with_those_there_are(status: object) -> None:
    with pytest.raises(InvalidInput, match=r"^status: must be one of pending, in_progress, .*, all, got ") as refused:
        parse_status_filter(status)
    assert str(refused.value).isprintable()


@pytest.mark.spec("T4")
@pytest.mark.parametrize(
    ("status", "action"),
    [
        (None, PlanAction.COMPLETE),
        ("completed", PlanAction.COMPLETE),
        ("cancelled", PlanAction.CANCEL),
        (" Done", PlanAction.COMPLETE),
    ],
)
def test_a_todo_ends_as_completed_unless_it_says_cancelled(status: object, action: PlanAction) -> None:
    assert parse_end_action(status) is action


@pytest.mark.spec("T4")
@pytest.mark.parametrize("status", ["pending", "in_progress", "", 1, [], True])
def test_a_todo_cannot_end_in_another_state(status: object) -> None:
    with pytest.raises(InvalidInput, match=r"^status: must be completed, cancelled or failed, got "):
        parse_end_action(status)


@pytest.mark.spec("T4")
@pytest.mark.parametrize("outcome", [None, "", " \n ", 5, [], "a\x00b", "a\x1bb", "\ud800", "x" * 20_001])
def test_an_outcome_is_required_and_is_text(outcome: object) -> None:
    with pytest.raises(InvalidInput, match=r"^outcome: "):
        parse_outcome(outcome)


@pytest.mark.spec("T4")
def test_an_outcome_may_have_lines() -> None:
    assert parse_outcome(" one\ntwo ") == "one\ntwo"


@pytest.mark.spec("T4")
@pytest.mark.parametrize("todo_id", [None, "", 5.5, True, "x" * 101, "a\x00b", "\ud800"])
def test_an_id_is_one_line_of_text(todo_id: object) -> None:
    with pytest.raises(InvalidInput, match=r"^todoId: "):
        parse_id(todo_id)
