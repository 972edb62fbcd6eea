"""A lifecycle is a table: every step is in it, or it is refused and nothing is changed."""

from __future__ import annotations

from enum import StrEnum
from itertools import product

import pytest

from punchlist.checklist.lifecycle import CHECKLIST
from punchlist.conversations.lifecycle import TURN
from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle
from punchlist.plan.lifecycle import PLAN, PlanAction, PlanStatus


class Door(StrEnum):
    SHUT = "shut"
    AJAR = "ajar"
    BRICKED_UP = "bricked_up"


class Move(StrEnum):
    BUILD = "build"
    OPEN = "open"
    BRICK_UP = "brick_up"


TABLE: dict[tuple[Door | str, Move], Door] = {
    (NEW, Move.BUILD): Door.SHUT,
    (Door.SHUT, Move.OPEN): Door.AJAR,
    (Door.SHUT, Move.BRICK_UP): Door.BRICKED_UP,
}
DOOR = Lifecycle(
    "door",
    TABLE,
    allowed={
        Move.BUILD: frozenset(Role),
        Move.OPEN: frozenset({Role.PERSON, Role.SUPERVISOR}),
        Move.BRICK_UP: frozenset(),
    },
)


@pytest.mark.parametrize(("state", "move"), list(TABLE)[:2])
def test_a_step_in_the_table_leads_where_the_table_says(state: Door | str, move: Move) -> None:
    assert DOOR.advance(state, move, Role.PERSON) is TABLE[state, move]


def test_a_step_that_is_not_in_the_table_is_refused_and_says_from_where_it_is_possible() -> None:
    with pytest.raises(IllegalTransition, match=r"^Cannot accept a plan todo that is pending; it must be completed\.$"):
        PLAN.advance(PlanStatus.PENDING, PlanAction.ACCEPT, Role.PERSON)
    with pytest.raises(IllegalTransition, match=r"^Cannot build a door that is shut\.$"):
        DOOR.advance(Door.SHUT, Move.BUILD, Role.PERSON)


def test_nothing_is_possible_after_the_end() -> None:
    assert DOOR.is_final(Door.AJAR)
    assert not DOOR.is_final(Door.SHUT)
    with pytest.raises(IllegalTransition, match="it has ended"):
        PLAN.advance(PlanStatus.CANCELLED, PlanAction.START, Role.SUPERVISOR)


def test_a_step_that_was_made_already_is_named_so() -> None:
    with pytest.raises(IllegalTransition, match=r"^Cannot open a door that is ajar already\.$"):
        DOOR.advance(Door.AJAR, Move.OPEN, Role.PERSON)


def test_a_refused_step_changes_nothing() -> None:
    before = dict(DOOR.table)
    for state, move, role in product([NEW, *Door], Move, Role):
        if (state, move) not in before:
            with pytest.raises((IllegalTransition, NotAllowed)):
                DOOR.advance(state, move, role)
    assert DOOR.table == before


def test_a_role_that_may_not_is_told_who_may() -> None:
    with pytest.raises(NotAllowed, match=r"^A worker may not open a door; person or supervisor may\.$"):
        DOOR.check_role(Move.OPEN, Role.WORKER)


def test_an_action_that_nobody_may_take_says_so() -> None:
    with pytest.raises(NotAllowed, match="no role may"):
        DOOR.check_role(Move.BRICK_UP, Role.SYSTEM)


def test_permission_is_asked_before_the_state_is_told() -> None:
    with pytest.raises(NotAllowed):
        DOOR.advance(Door.AJAR, Move.OPEN, Role.WORKER)


def test_the_diagram_is_drawn_from_the_table() -> None:
    assert DOOR.mermaid().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> shut: build",
        "    shut --> ajar: open",
        "    shut --> bricked_up: brick_up",
        "    ajar --> [*]",
        "    bricked_up --> [*]",
    ]


@pytest.mark.spec("T4", "T5")
def test_the_plan_has_twenty_three_steps_and_only_a_failed_check_or_a_person_leads_back() -> None:
    assert {(str(source), str(action), str(target)) for (source, action), target in PLAN.table.items()} == {
        (NEW, "create", "pending"),
        ("pending", "edit", "pending"),
        ("in_progress", "edit", "in_progress"),
        ("pending", "move", "pending"),
        ("in_progress", "move", "in_progress"),
        ("pending", "start", "in_progress"),
        ("pending", "complete", "completed"),
        ("in_progress", "complete", "completed"),
        ("pending", "cancel", "cancelled"),
        ("in_progress", "cancel", "cancelled"),
        ("pending", "wait", "pending"),
        ("in_progress", "wait", "pending"),
        ("pending", "retry", "pending"),
        ("in_progress", "retry", "pending"),
        ("pending", "report", "pending"),
        ("in_progress", "report", "pending"),
        ("pending", "check", "pending"),
        ("in_progress", "check", "in_progress"),
        ("completed", "check", "completed"),
        ("completed", "reopen", "pending"),
        ("cancelled", "reopen", "pending"),
        ("in_progress", "reopen", "pending"),
        ("completed", "accept", "completed"),
    }
    assert not any(PLAN.is_final(state) for state in PLAN.table.values())
    # For an agent, an item that has ended stays ended.
    assert PLAN.allowed[PlanAction.REOPEN] == {Role.PERSON, Role.SYSTEM}
    with pytest.raises(IllegalTransition, match="completed already"):
        PLAN.advance(PlanStatus.COMPLETED, PlanAction.COMPLETE, Role.SUPERVISOR)


def test_a_checklist_item_never_ends_and_a_turn_ends_once() -> None:
    assert not any(CHECKLIST.is_final(state) for state in CHECKLIST.table.values())
    assert [str(state) for state in TURN.table.values() if TURN.is_final(state)] == ["ended"]
