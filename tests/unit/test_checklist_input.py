"""What TodoWrite accepts, and how it says what is wrong (W1, W2, W11)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.hostile import REFUSED_IN_A_LINE

from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.validation import MAX_ITEMS, NewChecklistItem, parse_todos
from punchlist.errors import InvalidInput


def todo(**changes: Any) -> dict[str, Any]:
    return {"content": "Run the tests", "status": "pending", "activeForm": "Running the tests", **changes}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in todo().items() if name != key}


def problems(todos: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        parse_todos(todos)
    return refused.value.problems


@pytest.mark.spec("W1")
def test_an_item_is_its_three_fields_without_surrounding_blanks() -> None:
    assert parse_todos([todo(content="  Run\u00a0", activeForm="\tRunning\n")]) == [
        NewChecklistItem("Run", "Running", ChecklistStatus.PENDING, None)
    ]


@pytest.mark.spec("W1")
def test_an_empty_list_is_a_list() -> None:
    assert parse_todos([]) == []


@pytest.mark.spec("W1")
@pytest.mark.parametrize("field", ["content", "activeForm"])
@pytest.mark.parametrize("text", ["x", "x" * 500, "  " + "日" * 500 + "  "])
def test_texts_of_1_to_500_characters_are_accepted(field: str, text: str) -> None:
    (wanted,) = parse_todos([todo(**{field: text})])
    assert text.strip() in (wanted.content, wanted.active_form)


@pytest.mark.spec("W1")
@pytest.mark.parametrize("field", ["content", "activeForm"])
@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("", "must be 1 to 500 characters after trimming, got 0"),
        (" \n\t ", "must be 1 to 500 characters after trimming, got 0"),
        ("x" * 501, "must be 1 to 500 characters after trimming, got 501"),
        ("x" * 10_000_000, "must be 1 to 500 characters after trimming, got 10000000"),
        (None, "must be text, got null"),
        (7, "must be text, got a number"),
        (["x"], "must be text, got an array"),
        ({"x": 1}, "must be text, got an object"),
    ],
    ids=["empty", "blank", "501", "10 MB", "null", "number", "array", "object"],
)
def test_a_bad_text_is_refused_with_its_item_and_rule(field: str, value: object, rule: str) -> None:
    assert problems([todo(), todo(**{field: value})]) == [f"todos[1].{field}: {rule}"]


@pytest.mark.spec("W10")
@pytest.mark.parametrize("field", ["content", "activeForm", "id"])
@pytest.mark.parametrize("text", REFUSED_IN_A_LINE.values(), ids=REFUSED_IN_A_LINE)
def test_hostile_text_is_refused_by_item_and_field(field: str, text: str) -> None:
    (problem,) = problems([todo(**{field: f"x{text}x"})])
    assert problem.startswith(f"todos[0].{field}: must not contain ")
    assert problem.isprintable()


@pytest.mark.spec("W1")
@pytest.mark.parametrize("field", ["content", "activeForm"])
def test_a_missing_text_is_required(field: str) -> None:
    assert problems([without(field)]) == [f"todos[0].{field}: is required"]


@pytest.mark.spec("W1")
@pytest.mark.parametrize(
    ("status", "got"),
    [
        ("abandoned", "'abandoned'"),
        ("", "''"),
        ("in progress", "'in progress'"),
        (None, "null"),
        (1, "a number"),
        (["pending"], "an array"),
    ],
)
def test_an_unknown_status_is_refused_with_those_there_are(status: object, got: str) -> None:
    assert problems([todo(), todo(), todo(status=status)]) == [
        f"todos[2].status: must be one of pending, in_progress, completed, cancelled, got {got}"
    ]


@pytest.mark.spec("W1")
def test_a_missing_status_is_refused() -> None:
    (problem,) = problems([without("status")])
    assert problem.startswith("todos[0].status: must be one of ")


@pytest.mark.spec("W10")
def test_a_hostile_status_is_shown_and_cut_in_the_error() -> None:
    (problem,) = problems([todo(status="\x1b[2J" + "x" * 10_000)])
    assert problem.isprintable()
    assert len(problem) < 200


@pytest.mark.spec("W11")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("pending", ChecklistStatus.PENDING),
        ("todo", ChecklistStatus.PENDING),
        ("in_progress", ChecklistStatus.IN_PROGRESS),
        ("doing", ChecklistStatus.IN_PROGRESS),
        ("in-progress", ChecklistStatus.IN_PROGRESS),
        ("completed", ChecklistStatus.COMPLETED),
        ("complete", ChecklistStatus.COMPLETED),
        ("done", ChecklistStatus.COMPLETED),
        (" DONE ", ChecklistStatus.COMPLETED),
    ],
)
def test_the_status_names_of_other_tools_are_mapped(name: str, status: ChecklistStatus) -> None:
    assert [item.status for item in parse_todos([todo(status=name)])] == [status]


@pytest.mark.spec("W2")
@pytest.mark.parametrize("other", ["in_progress", "doing"])
def test_two_items_in_progress_are_refused_whatever_they_call_it(other: str) -> None:
    (problem,) = problems([todo(status="in_progress"), todo(), todo(status=other)])
    assert problem.startswith("Only one task can be in_progress at a time")
    assert "todos[0]" in problem
    assert "todos[2]" in problem


@pytest.mark.spec("W1")
def test_twenty_items_are_accepted_and_twenty_one_are_not() -> None:
    assert MAX_ITEMS == 20
    assert len(parse_todos([todo() for _ in range(20)])) == 20
    assert problems([todo() for _ in range(21)]) == ["todos: at most 20 items are allowed, got 21"]


@pytest.mark.spec("W1")
@pytest.mark.parametrize(
    ("todos", "got"), [(None, "null"), ("[]", "text"), ({"content": "x"}, "an object"), (3, "a number")]
)
def test_what_is_not_a_list_is_refused(todos: object, got: str) -> None:
    assert problems(todos) == [f"todos: must be an array of items, got {got}"]


@pytest.mark.spec("W1")
@pytest.mark.parametrize(("item", "got"), [(None, "null"), ("x", "text"), ([], "an array"), (1, "a number")])
def test_what_is_not_an_item_is_refused(item: object, got: str) -> None:
    assert problems([item]) == [f"todos[0]: must be an object with content, status and activeForm, got {got}"]


@pytest.mark.spec("W1")
def test_an_item_nested_ten_thousand_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert problems([todo(content=deep)]) == ["todos[0].content: must be text, got an array"]


@pytest.mark.spec("W1")
def test_every_problem_is_told_not_only_the_first() -> None:
    found = problems([todo(content=""), todo(), todo(status="x", activeForm=None, id="")])
    assert [problem.partition(":")[0] for problem in found] == [
        "todos[0].content",
        "todos[2].activeForm",
        "todos[2].status",
        "todos[2].id",
    ]


@pytest.mark.spec("W3")
def test_an_id_is_kept_without_surrounding_blanks() -> None:
    assert [item.id for item in parse_todos([todo(id=" a-1 "), todo(id=None), todo()])] == ["a-1", None, None]


@pytest.mark.spec("W1")
@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("", "must be 1 to 100 characters after trimming, got 0"),
        ("x" * 101, "must be 1 to 100 characters after trimming, got 101"),
        (5, "must be text, got a number"),
    ],
)
def test_a_bad_id_is_refused_with_its_item_and_rule(value: object, rule: str) -> None:
    assert problems([todo(id=value)]) == [f"todos[0].id: {rule}"]


@pytest.mark.spec("W1", "W3")
def test_one_id_cannot_name_two_items() -> None:
    assert problems([todo(id="a"), todo(), todo(id=" a")]) == ["todos[2].id: 'a' is the id of todos[0] too"]


@pytest.mark.spec("W1")
def test_fields_that_nobody_knows_have_no_effect() -> None:
    assert parse_todos([todo(priority="high", conversationId="other")]) == parse_todos([todo()])
