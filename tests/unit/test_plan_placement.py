"""Where new todos go, against the plainest model there is: a list and `insert` (T2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.plan.model import NewTodo
from punchlist.plan.validation import Shift, assign_positions

orders = st.lists(st.none() | st.integers(min_value=1, max_value=15) | st.just(10**30), min_size=1, max_size=8)


def todos(*wanted: int | None) -> list[NewTodo]:
    return [NewTodo(f"new {index}", order=order) for index, order in enumerate(wanted)]


def inserted(already: int, wanted: list[int | None]) -> list[str]:
    """The plan when the items are put in one after the other."""
    line = [f"old {number}" for number in range(already)]
    for index, order in enumerate(wanted):
        line.insert(len(line) if order is None else min(order - 1, len(line)), f"new {index}")
    return line


def applied(already: int, positions: list[int], shifts: list[Shift]) -> dict[str, int]:
    """The plan as the database makes it: each shift an UPDATE over what is there, then the INSERTs."""
    rows = {f"old {number}": number for number in range(already)}
    for shift in shifts:
        rows = {
            name: priority + shift.by if shift.start <= priority < shift.end else priority
            for name, priority in rows.items()
        }
    return rows | {f"new {index}": position for index, position in enumerate(positions)}


@pytest.mark.spec("T2")
@pytest.mark.parametrize(
    ("wanted", "positions", "shifts"),
    [
        ([None, None], [3, 4], []),
        ([1], [0], [Shift(0, 3, 1)]),
        ([2], [1], [Shift(1, 3, 1)]),
        ([4], [3], []),
        ([99], [3], []),
        ([10**30], [3], []),
        ([1, 3], [0, 2], [Shift(1, 3, 2), Shift(0, 1, 1)]),
        ([1, 1], [1, 0], [Shift(0, 3, 2)]),
    ],
)
def test_a_position_counts_from_one_and_later_items_shift(
    wanted: list[int | None], positions: list[int], shifts: list[Shift]
) -> None:
    assert assign_positions(3, todos(*wanted)) == (positions, shifts)


@pytest.mark.spec("T2")
@examples(400)
@given(st.integers(min_value=0, max_value=12), orders)
def test_shifts_and_positions_come_to_the_same_as_inserting_one_by_one(already: int, wanted: list[int | None]) -> None:
    rows = applied(already, *assign_positions(already, todos(*wanted)))
    assert sorted(rows, key=lambda name: rows[name]) == inserted(already, wanted)
    assert sorted(rows.values()) == list(range(already + len(wanted)))
