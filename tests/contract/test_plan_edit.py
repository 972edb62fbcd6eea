"""A person changes the titles and the order of a plan (X9)."""

from __future__ import annotations

import pytest

from punchlist.audit.check import check
from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.service import Plans
from punchlist.plan.validation import parse_items
from punchlist.storage.open import read_schema_version
from punchlist.storage.store import Store


@pytest.fixture
def ids(plans: Plans, turn: TurnScope) -> list[str]:
    return [todo.id for todo in plans.create(turn, parse_items([{"title": name} for name in "ABCD"])).todos]


def titles(plans: Plans, turn: TurnScope) -> str:
    return "".join(todo.title for todo in plans.list(turn, frozenset(PlanStatus)).items)


@pytest.mark.spec("X5")
@pytest.mark.parametrize(
    ("index", "position", "expected"),
    [(0, 3, "BCAD"), (3, 1, "DABC"), (1, 2, "ABCD"), (0, 99, "BCDA"), (2, 1, "CABD")],
)
def test_a_moved_item_is_at_its_position_and_the_log_replays_to_the_same_plan(
    store: Store, plans: Plans, turn: TurnScope, ids: list[str], index: int, position: int, expected: str
) -> None:
    plans.move(turn, ids[index], position, reason="test")
    assert titles(plans, turn) == expected
    assert check(store, read_schema_version(store) or "").problems == []


@pytest.mark.spec("X5")
def test_a_title_changes_while_the_item_is_open(store: Store, plans: Plans, turn: TurnScope, ids: list[str]) -> None:
    plans.start(turn, ids[1])
    assert plans.edit(turn, ids[1], "X", reason="test").status is PlanStatus.IN_PROGRESS
    assert titles(plans, turn) == "AXCD"
    plans.end(turn, ids[1], "done")
    with pytest.raises(IllegalTransition):
        plans.edit(turn, ids[1], "Y", reason="test")
    with pytest.raises(IllegalTransition):
        plans.move(turn, ids[1], 1, reason="test")
    assert titles(plans, turn) == "AXCD"
    assert check(store, read_schema_version(store) or "").problems == []
