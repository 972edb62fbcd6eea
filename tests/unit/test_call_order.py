"""The order of the calls of one batch (S6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist.toolcalls.concurrency import CallOrder, dependencies_first, writes_between
from punchlist.toolcalls.model import ToolCallRequest
from punchlist.toolcalls.tool import Effect, Resources

pytestmark = pytest.mark.spec("S6")

KEYS = st.frozensets(st.sampled_from("xyz"), max_size=2)
CALLS = st.lists(st.tuples(st.sampled_from(Effect), st.builds(Resources, KEYS, KEYS)), max_size=12)
Call = tuple[Effect, Resources]


def conflict(first: Call, second: Call) -> bool:
    """The rule, pair by pair."""
    (effect, mine), (other_effect, theirs) = first, second
    writes, other_writes = effect is not Effect.READ or mine.writes, other_effect is not Effect.READ or theirs.writes
    if not writes and not other_writes:
        return False
    for is_write, keys in ((writes, mine), (other_writes, theirs)):
        if not (keys.writes if is_write else keys.reads):
            return True
    return bool(mine.writes & (theirs.reads | theirs.writes) or theirs.writes & mine.reads)


def reachable(before: list[set[int]], start: int) -> set[int]:
    found: set[int] = set()
    left = list(before[start])
    while left:
        if (number := left.pop()) not in found:
            found.add(number)
            left += before[number]
    return found


@given(CALLS)
def test_a_call_waits_for_the_earlier_calls_that_it_conflicts_with_and_for_no_other(calls: list[Call]) -> None:
    order: CallOrder[int] = CallOrder()
    before: list[set[int]] = []
    for number, (effect, resources) in enumerate(calls):
        before.append({placed.call for placed in order.before(effect, resources)})
        order.add(number, effect, resources)
    for number, call in enumerate(calls):
        direct = {earlier for earlier in range(number) if conflict(calls[earlier], call)}
        # What a call waits for through another one need not be named.
        assert before[number] <= direct
        assert direct <= reachable(before, number)


@given(CALLS, st.integers(0, 11))
def test_an_identical_call_shares_a_result_unless_a_write_that_concerns_it_lies_between(
    calls: list[Call], which: int
) -> None:
    if which >= len(calls):
        return
    order: CallOrder[int] = CallOrder()
    placed = [order.add(number, *call) for number, call in enumerate(calls)]
    between = [call for call in calls[which + 1 :] if call[0] is not Effect.READ or call[1].writes]
    changed = any(conflict(call, calls[which]) for call in between)
    assert writes_between(placed[which], order.before(*calls[which])) == changed


def test_ten_thousand_calls_with_keys_are_placed_at_once() -> None:
    order: CallOrder[int] = CallOrder()
    for number in range(10_000):
        keys = Resources(writes=frozenset({f"file:{number}"}))
        assert order.before(Effect.EDIT, keys) == []
        order.add(number, Effect.EDIT, keys)


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=10))
def test_dependencies_come_first_and_the_rest_keeps_its_order(depends: list[list[int]]) -> None:
    requests = [ToolCallRequest("t", {}, str(number), tuple(map(str, after))) for number, after in enumerate(depends)]
    ordered = dependencies_first(requests)
    assert sorted(ordered, key=lambda one: int(one.call_id)) == requests
    if all(other < number for number, after in enumerate(depends) for other in after):
        assert list(ordered) == requests
