"""Keys, slots and circles (S6)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from punchlist.toolcalls.concurrency import CallSlots, ResourceLocks, find_cycle
from punchlist.toolcalls.tool import Resources

pytestmark = pytest.mark.spec("S6")


def reads(*keys: str) -> Resources:
    return Resources(reads=frozenset(keys))


def writes(*keys: str) -> Resources:
    return Resources(writes=frozenset(keys))


def test_a_call_without_keys_never_waits() -> None:
    claims = ResourceLocks()
    assert claims.claim("a", Resources())
    assert claims.release("a") == []


def test_readers_share_and_writers_do_not() -> None:
    claims = ResourceLocks()
    assert claims.claim("r1", reads("k"))
    assert claims.claim("r2", reads("k"))
    assert not claims.claim("w", writes("k"))
    assert claims.release("r1") == []
    assert claims.release("r2") == ["w"]


def test_readers_that_come_after_a_waiting_writer_wait_too() -> None:
    claims = ResourceLocks()
    claims.claim("r1", reads("k"))
    claims.claim("w", writes("k"))
    assert not claims.claim("r2", reads("k"))
    assert claims.release("r1") == ["w"]
    assert claims.release("w") == ["r2"]


def test_who_leaves_the_line_lets_those_behind_pass() -> None:
    claims = ResourceLocks()
    claims.claim("r1", reads("k"))
    claims.claim("w", writes("k"))
    claims.claim("r2", reads("k"))
    assert claims.release("w") == ["r2"]


def test_a_key_that_is_both_read_and_written_is_written() -> None:
    claims = ResourceLocks()
    assert claims.claim("a", Resources(frozenset({"k"}), frozenset({"k"})))
    assert not claims.claim("b", reads("k"))
    assert claims.release("a") == ["b"]


def test_nothing_is_kept_of_what_is_over() -> None:
    claims = ResourceLocks()
    for name in "abc":
        claims.claim(name, writes("k", name))
    for name in "bac":
        claims.release(name)
    assert not claims._keys
    assert not claims._held
    assert not claims._claimed


NAMES = st.frozensets(st.sampled_from("xyz"), max_size=3)


class Locks(RuleBasedStateMachine):
    """Any order of coming and going: nobody overlaps who must not, and nobody waits for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.claims = ResourceLocks()
        self.running: dict[str, Resources] = {}
        self.waiting: dict[str, Resources] = {}
        self.came = 0

    @rule(reading=NAMES, writing=NAMES)
    def come(self, reading: frozenset[str], writing: frozenset[str]) -> None:
        self.came += 1
        wanted = Resources(reading, writing)
        place = self.running if self.claims.claim(str(self.came), wanted) else self.waiting
        place[str(self.came)] = wanted

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        self._release(data.draw(st.sampled_from(sorted(self.running))))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        self._release(data.draw(st.sampled_from(sorted(self.waiting))))

    def _release(self, name: str) -> None:
        self.running.pop(name, None)
        self.waiting.pop(name, None)
        for freed in self.claims.release(name):
            self.running[freed] = self.waiting.pop(freed)

    @invariant()
    def no_writer_overlaps(self) -> None:
        for name, mine in self.running.items():
            for other, theirs in self.running.items():
                assert name == other or not mine.writes & (theirs.reads | theirs.writes)

    @invariant()
    def somebody_runs_while_anybody_waits(self) -> None:
        assert self.running or not self.waiting

    @invariant()
    def the_first_in_line_waits_only_for_who_runs(self) -> None:
        for name, mine in list(self.waiting.items())[:1]:
            others = [*self.running.values()]
            assert any(
                mine.writes & (theirs.reads | theirs.writes) or mine.reads & theirs.writes for theirs in others
            ), name


TestLocks = Locks.TestCase
TestLocks.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_slots_are_given_to_the_most_urgent_and_then_in_order() -> None:
    slots = CallSlots(2)
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", -1)):
        slots.queue(name, priority)
    assert [slots.next(), slots.next(), slots.next()] == ["b", "a", None]
    slots.free()
    slots.free()
    assert [slots.next(), slots.next(), slots.next()] == ["c", "d", None]


def test_a_circle_is_found_and_shown_in_its_order() -> None:
    assert find_cycle({"a": ["b"], "b": ["c"], "c": ["a"]}) == ["a", "b", "c"]
    assert find_cycle({"a": ["a"]}) == ["a"]
    assert find_cycle({"x": ["a"], "a": ["b"], "b": ["a"]}) == ["a", "b"]


def test_what_is_no_circle_is_none() -> None:
    assert find_cycle({}) is None
    assert find_cycle({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) is None
    assert find_cycle({"a": ["elsewhere"]}) is None


def test_a_long_chain_and_many_ways_are_no_trouble() -> None:
    assert find_cycle({str(n): [str(n + 1)] for n in range(50_000)}) is None
    assert find_cycle({str(n): [str(n + 1), str(n + 2)] for n in range(2_000)}) is None


@given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=3), max_size=8))
def test_a_circle_is_found_exactly_when_there_is_one(graph: Mapping[int, list[int]]) -> None:
    names = {str(node): [str(other) for other in others] for node, others in graph.items()}
    left = dict(names)
    while free := [node for node, others in left.items() if not any(other in left for other in others)]:
        for node in free:
            del left[node]
    found = find_cycle(names)
    assert (found is not None) is bool(left)
    if found:
        for node, following in zip(found, [*found[1:], found[0]], strict=True):
            assert following in names[node]
