"""What waits for what, worked out: circles, claims, titles (C10, C12)."""

from __future__ import annotations

from itertools import count
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.plan.conditions import (
    break_cycles,
    explain_conflicts,
    resource_conflicts,
    waiting_reasons,
)
from punchlist.plan.lifecycle import ConditionKind, ConditionStatus, PlanStatus
from punchlist.plan.model import Condition, TurnTodo
from punchlist.plan.validation import duplicate_titles, limit_conflicts, open_ids_by_title

NOW = "2026-02-21T09:00:00.000000Z"
_numbers = count(1)


def todo(name: str, status: PlanStatus = PlanStatus.PENDING) -> TurnTodo:
    return TurnTodo(
        name, "s", "t", name.upper(), "", "", None, status, max(ord(name[0]) - ord("a"), 0), None, NOW, None, None
    )


def condition(todo_id: str, kind: ConditionKind, subject: str) -> Condition:
    number = f"c{next(_numbers)}"
    return Condition(number, "s", "t", todo_id, kind, subject, ConditionStatus.OPEN, None, None, None, NOW)


def needs(**edges: str) -> list[Condition]:
    """`a="bc"`: a waits for b and for c."""
    return [condition(source, ConditionKind.TODO, target) for source, targets in edges.items() for target in targets]


def waiting(order: str, conditions: list[Condition], **status: PlanStatus) -> dict[str, str]:
    """Who waits for whom, by letter."""
    found = waiting_reasons([todo(name, status.get(name, PlanStatus.PENDING)) for name in order], conditions, NOW)
    return {name: "".join(word[word.index("“") + 1].lower() for word in words) for name, words in found.items()}


# --- circles -------------------------------------------------------------------------------------------

graphs = st.dictionaries(st.sampled_from("abcdefg"), st.frozensets(st.sampled_from("abcdefg"), max_size=3)).map(
    lambda edges: {source: targets - {source} for source, targets in edges.items()}
)
orders = st.permutations("abcdefg")


def way_back(edges: dict[str, frozenset[str]], start: str, goal: str, allowed: set[str]) -> bool:
    reached, ahead = set[str](), [start]
    while ahead:
        here = ahead.pop()
        if here == goal:
            return True
        if here in allowed and here not in reached:
            reached.add(here)
            ahead += edges.get(here, ())
    return False


@pytest.mark.spec("C12")
@examples(500)
@given(edges=graphs, order=orders)
def test_a_wait_is_lifted_exactly_where_a_circle_leads_back_through_later_todos(
    edges: dict[str, frozenset[str]], order: list[str]
) -> None:
    _, freed = break_cycles(edges, order)
    expected = {
        (source, target)
        for source, targets in edges.items()
        for target in targets
        if way_back(edges, target, source, set(order[order.index(source) + 1 :]))
    }
    assert {(source, target) for source, target in freed if target in edges.get(source, ())} == expected


@pytest.mark.spec("C12")
@examples(300)
@given(edges=graphs, order=orders)
def test_whatever_waits_for_whatever_there_is_always_one_that_can_be_started(
    edges: dict[str, frozenset[str]], order: list[str]
) -> None:
    conditions = needs(**{source: "".join(targets) for source, targets in edges.items()})
    conditions += [condition(name, ConditionKind.RESOURCE, f"r{ord(name) % 3}") for name in "abcdefg"]
    left = "".join(order)
    while left:
        held = waiting(left, conditions)
        free = [name for name in left if name not in held]
        assert free
        left = left.replace(free[0], "")


@pytest.mark.spec("C12")
def test_circles_that_share_a_todo_are_told_apart() -> None:
    edges = {"a": "b", "b": "ac", "c": "b"}
    circles, freed = break_cycles(edges, "abc")
    assert circles == [["a", "b", "c"], ["b", "c"]]
    assert freed >= {("a", "b"), ("b", "c")}
    assert waiting("abc", needs(**edges)) == {"b": "a", "c": "b"}
    assert waiting("cba", needs(**edges)) == {"b": "c", "a": "b"}


@pytest.mark.spec("C12")
def test_who_stands_beside_a_circle_waits_for_it() -> None:
    assert waiting("xaby", needs(x="a", a="b", b="ay")) == {"x": "a", "b": "ay"}


@pytest.mark.spec("C12")
def test_what_has_ended_or_is_in_progress_closes_no_circle() -> None:
    circle = needs(a="b", b="c", c="a")
    assert waiting("abc", circle) == {"b": "c", "c": "a"}
    for status in (PlanStatus.COMPLETED, PlanStatus.CANCELLED):
        assert waiting("abc", circle, c=status) == {"a": "b"}
    assert waiting("abc", circle, b=PlanStatus.IN_PROGRESS) == {"a": "b", "c": "a"}


@pytest.mark.spec("C12", "C16")
def test_ten_thousand_todos_in_one_circle_are_no_trouble() -> None:
    names = [f"n{number}" for number in range(10_000)]
    ring = {name: [names[index - 1]] for index, name in enumerate(names)}
    began = perf_counter()
    circles, freed = break_cycles(ring, names)
    assert [len(circle) for circle in circles] == [10_000]
    assert (names[0], names[-1]) in freed
    both_ways = {name: [names[index - 1], names[(index + 1) % 10_000]] for index, name in enumerate(names)}
    circles, _ = break_cycles(both_ways, names)
    assert 1 < len(circles) < 10
    assert perf_counter() - began < 20


# --- claims --------------------------------------------------------------------------------------------


def claiming(*names: str, resource: str = "a.py") -> list[Condition]:
    return [condition(name, ConditionKind.RESOURCE, resource) for name in names]


@pytest.mark.spec("C12")
def test_a_resource_is_for_the_first_that_could_start_or_whoever_is_at_work() -> None:
    everybody = claiming("a", "b", "c")
    assert waiting("abc", everybody) == {"b": "a", "c": "a"}
    assert waiting("abc", everybody, c=PlanStatus.IN_PROGRESS) == {"a": "c", "b": "c"}
    assert waiting("abc", everybody, a=PlanStatus.COMPLETED) == {"c": "b"}
    assert waiting("abc", [*everybody, *needs(a="b")]) == {"a": "bb", "c": "b"}


@pytest.mark.spec("C12")
def test_nobody_has_a_resource_while_all_who_claim_it_wait() -> None:
    conditions = [*claiming("a", "b"), *needs(a="c", b="c")]
    todos = [todo(name) for name in "abc"]
    assert [claim.holder for claim in resource_conflicts(todos, conditions, {"a", "b"})] == [None]
    assert waiting("abc", conditions) == {"a": "c", "b": "c"}


@pytest.mark.spec("C12")
@pytest.mark.parametrize(
    ("conditions", "running", "told"),
    [
        ([], None, "“A” (number 1) comes first in the plan, so it goes first and the others wait for it."),
        ([], "c", "“C” (number 3) is in progress, so it goes first and the others wait for it."),
        (needs(a="b"), None, "“B” (number 2) waits for nothing else, so it goes first and the others wait for it."),
    ],
)
def test_who_goes_first_is_said_with_the_reason(conditions: list[Condition], running: str | None, told: str) -> None:
    todos = [todo(name, PlanStatus.IN_PROGRESS if name == running else PlanStatus.PENDING) for name in "abc"]
    assert explain_conflicts(todos, [*claiming("a", "b", "c"), *conditions], {"b"}, NOW) == [
        f"“A”, “B” and “C” claim a.py. {told}"
    ]


@pytest.mark.spec("C12")
def test_conflicts_of_others_are_not_told_again() -> None:
    todos = [todo(name) for name in "abcd"]
    conditions = [*needs(a="b", b="a"), *claiming("a", "b")]
    assert len(explain_conflicts(todos, conditions, {"a"}, NOW)) == 2
    assert explain_conflicts(todos, conditions, {"c", "d"}, NOW) == []


# --- titles ----------------------------------------------------------------------------------------------


@pytest.mark.spec("C12")
def test_titles_are_the_same_whatever_their_case_and_spacing() -> None:
    new = [todo("x")._replace(title="Fix  the STRASSE"), todo("y")._replace(title="Another")]
    known = [("old", "pending", "fix the straße"), ("done", "completed", "Another"), ("z", "pending", "Third")]
    (told,) = duplicate_titles(open_ids_by_title(known, new).__getitem__, new)
    assert told.startswith("2 open todos are called “Fix  the STRASSE”: ids old, x.")


@pytest.mark.spec("C12")
def test_a_great_many_conflicts_are_counted_rather_than_listed() -> None:
    (told,) = duplicate_titles(lambda _: (), [todo(f"n{number}")._replace(title="Same") for number in range(9)])
    assert told.startswith("9 open todos are called “Same”: ids n0, n1, n2, n3, n4 and 4 more.")
    assert limit_conflicts(["a"] * 25)[-1] == "… and 5 more conflicts"
    assert len(limit_conflicts(["a"] * 20)) == 20
