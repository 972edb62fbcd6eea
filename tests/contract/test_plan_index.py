"""Adding to a large plan costs no more than adding to a small one, and is as right (T2, C16)."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.front import by_hand, call, plan

from punchlist.conversations.model import TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition
from punchlist.kernel.ids import new_id
from punchlist.plan import service
from punchlist.plan.lifecycle import OPEN, PlanStatus
from punchlist.plan.model import NewTodo
from punchlist.plan.service import Plans
from punchlist.plan.validation import MAX_PLAN
from punchlist.storage.store import Store

pytestmark = pytest.mark.spec("T2", "C16")


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index every plan, however small."""
    monkeypatch.setattr(service, "MIN_INDEXED", 0)


ENDINGS = ("completed", "cancelled", "failed")
ACTIONS = ("create", "create", "elsewhere", "start", *ENDINGS, "edit", "move", "wait")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["create", "create", "elsewhere", "start", "complete", "cancel", "fail", "edit", "move", "wait"]
        ),
        st.integers(0, 5),
        st.sampled_from(["A", "a ", "B", "C"]),
    ),
    max_size=25,
)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_the_index_knows_what_the_table_knows(
    store: Store, plans: Plans, turn: TurnScope, everything_is_large: None, steps: list[tuple[str, int, str]]
) -> None:
    here = TurnScope("s", turn.actor, Conversations(store).begin_turn(turn, reason="next").id)
    indexed, elsewhere = Plans(store), Plans(store)
    ids = plan(indexed, here, "A", "B")
    for action, number, title in steps:
        id = ids[number % len(ids)]
        if action in ("create", "elsewhere"):
            known, fresh = indexed.list(here, frozenset(PlanStatus)), Plans(store)
            same = [one for one in known.items if one.title.strip().casefold() == title.strip().casefold()]
            still_open = [one for one in same if one.status in OPEN]
            made = (indexed if action == "create" else elsewhere).create(here, [NewTodo(title)])
            assert made.total_pending == fresh.list(here).summary["pending"]
            assert bool(made.conflicts) == bool(still_open)
            assert made.todos[0].priority == len(known.items)
            ids += [made.todos[0].id]
            continue
        try:
            match action:
                case "start":
                    elsewhere.start(here, id)
                case "completed" | "cancelled" | "failed":
                    call(elsewhere, here, "complete_todo", todoId=id, outcome="x", status=action)
                case "edit":
                    elsewhere.edit(here, id, title, reason="r")
                case "move":
                    elsewhere.move(here, id, number + 1, reason="r")
                case "wait":
                    call(elsewhere, here, "wait_todo", todoId=id, **{"for": {"event": new_id()}})
        except IllegalTransition:
            pass


def test_an_index_of_a_plan_that_is_no_longer_stored_is_not_used(
    store: Store, plans: Plans, turn: TurnScope, everything_is_large: None
) -> None:
    plan(plans, turn, "A", "B")
    # As after `db restore`: what the index knows is gone, and the same versions are used again.
    by_hand(store, "DELETE FROM turn_todos WHERE turn_id = :id", id=turn.turn_id)
    by_hand(store, "DELETE FROM events WHERE stream = :stream", stream=f"plan:{turn.turn_id}")
    Plans(store).create(turn, [NewTodo("C"), NewTodo("D")])
    made = plans.create(turn, [NewTodo("A")])
    assert (made.total_pending, made.conflicts, made.todos[0].priority) == (3, [], 2)


def test_an_index_does_not_open_a_turn_that_has_ended(
    store: Store, plans: Plans, turn: TurnScope, everything_is_large: None
) -> None:
    plan(plans, turn, "A")
    Conversations(store).end_turn(turn, reason="done")
    with pytest.raises(IllegalTransition, match="has ended"):
        plans.create(turn, [NewTodo("B")])


def test_adding_to_a_plan_of_ten_thousand_takes_at_most_twice_the_time_of_a_small_one(
    store: Store, plans: Plans, turn: TurnScope, conversations: Conversations
) -> None:
    turns = {}
    # After the last addition it is as large as a plan can be.
    rounds, large = 40, MAX_PLAN - 40
    for size in (100, large):
        scope = TurnScope(f"s{size}", turn.actor, "")
        turns[size] = TurnScope(f"s{size}", turn.actor, conversations.open_turn(scope).id)
        for start in range(0, size, 1_000):
            plans.create(turns[size], [NewTodo(f"t{start + n}") for n in range(min(size - start, 1_000))])
    ratios = []
    for number in range(rounds):
        seconds = {}
        for size, scope in turns.items():
            began = perf_counter()
            plans.create(scope, [NewTodo(f"more {number}")])
            seconds[size] = perf_counter() - began
        ratios.append(seconds[large] / seconds[100])
    assert median(ratios) <= 2
