"""Random claims, good and late, with a clock that jumps, against a model of a few lines (X3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run
from tests.conftest import StoppedClock
from tests.contract.front import call, plan
from tests.unit.examples import examples

from punchlist.claims.model import ClaimGranted
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, NotAllowed, PunchlistError
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.plan.service import Plans
from punchlist.storage.store import Store

SUPERVISOR = Actor(Role.SUPERVISOR, "test")
TODOS = 4
places = st.sampled_from(["one", "two", "three"])
which = st.integers(min_value=0, max_value=TODOS - 1)
leases = st.sampled_from([1, 60, 300])


class ClaimMachine(RuleBasedStateMachine):
    store: ClassVar[Store]
    clock: ClassVar[StoppedClock]
    numbers: ClassVar = count(1)

    @initialize()
    def begin(self) -> None:
        self.clock.now = datetime(2026, 2, 21, 9, 0, tzinfo=UTC)
        self.plans = Plans(self.store)
        session = f"claims-{next(self.numbers)}"
        turn = Conversations(self.store).open_turn(Scope(session, SUPERVISOR))
        self.turn = TurnScope(session, SUPERVISOR, turn.id)
        self.ids = plan(self.plans, self.turn, *(f"t{number}" for number in range(TODOS)))
        self.holder: dict[str, str | None] = dict.fromkeys(self.ids)
        self.until: dict[str, datetime] = {}
        self.fence = dict.fromkeys(self.ids, 0)
        self.ended: set[str] = set()
        # What each was told when it claimed; nobody forgets.
        self.remembered: list[tuple[str, str, int]] = []

    def _held(self, id: str) -> bool:
        return self.holder[id] is not None and self.clock.now < self.until[id]

    def _take(self, id: str, at: str, seconds: int, fence: int) -> None:
        self.fence[id] += 1
        assert fence == self.fence[id]
        self.holder[id], self.until[id] = at, self.clock.now + timedelta(seconds=seconds)
        self.remembered.append((id, at, fence))

    @rule(at=places, seconds=leases)
    def claim_the_next(self, at: str, seconds: int) -> None:
        free = [id for id in self.ids if id not in self.ended and not self._held(id)]
        claimed = self.plans.claim(self.turn, at, None, seconds)
        if isinstance(claimed, ClaimGranted):
            assert claimed.todo.id == free[0]
            self._take(claimed.todo.id, at, seconds, claimed.claim.fence)
        else:
            assert free == []

    @rule(at=places, seconds=leases, index=which)
    def claim_one(self, at: str, seconds: int, index: int) -> None:
        id = self.ids[index]
        if id in self.ended or self._held(id):
            with pytest.raises(IllegalTransition if id in self.ended else Conflict):
                self.plans.claim(self.turn, at, id, seconds)
            return
        claimed = self.plans.claim(self.turn, at, id, seconds)
        assert isinstance(claimed, ClaimGranted)
        self._take(id, at, seconds, claimed.claim.fence)

    @precondition(lambda self: self.remembered)
    @rule(data=st.data(), seconds=leases)
    def renew(self, data: st.DataObject, seconds: int) -> None:
        id, at, fence = data.draw(st.sampled_from(self.remembered))
        if fence == self.fence[id] and self.holder[id] == at:
            self.plans.renew_claim(self.turn, at, id, fence, seconds)
            self.until[id] = self.clock.now + timedelta(seconds=seconds)
        else:
            self._refused(lambda: self.plans.renew_claim(self.turn, at, id, fence, seconds))

    @precondition(lambda self: self.remembered)
    @rule(data=st.data(), by=places)
    def release(self, data: st.DataObject, by: str) -> None:
        id, _, fence = data.draw(st.sampled_from(self.remembered))
        if fence == self.fence[id] and self.holder[id] == by:
            self.plans.release_claim(self.turn, by, id, fence)
            self.holder[id] = None
        else:
            self._refused(lambda: self.plans.release_claim(self.turn, by, id, fence))

    @precondition(lambda self: self.remembered)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        """Of all fences that were ever given, the newest completes, once."""
        id, _, fence = data.draw(st.sampled_from(self.remembered))
        if fence == self.fence[id] and id not in self.ended:
            call(self.plans, self.turn, "complete_todo", todoId=id, outcome="done", fence=fence)
            self.ended.add(id)
            self.holder[id] = None
        else:
            self._refused(lambda: call(self.plans, self.turn, "complete_todo", todoId=id, outcome="late", fence=fence))

    @rule(index=which)
    def complete_without_a_fence(self, index: int) -> None:
        id = self.ids[index]
        if id in self.ended or self._held(id):
            self._refused(lambda: call(self.plans, self.turn, "complete_todo", todoId=id, outcome="mine"))
        elif self.fence[id]:
            call(self.plans, self.turn, "complete_todo", todoId=id, outcome="done")
            self.ended.add(id)
            self.holder[id] = None

    @rule(seconds=st.sampled_from([-3600, -60, 1, 60, 301]))
    def the_clock_jumps(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @invariant()
    def the_list_shows_who_holds_what(self) -> None:
        if not hasattr(self, "turn"):
            return
        shown = call(self.plans, self.turn, "list_todo")["items"]
        told = {item["id"]: (item.get("claimedBy"), item.get("claimedUntil")) for item in shown}
        session = self.turn.conversation_id
        assert told == {
            id: (f"supervisor:test in {session} ({self.holder[id]})", timestamp(self.until[id]))
            if self._held(id)
            else (None, None)
            for id in self.ids
            if id not in self.ended
        }

    def _refused(self, act: object) -> None:
        assert callable(act)
        with pytest.raises(PunchlistError) as refused:
            act()
        assert isinstance(refused.value, Conflict | IllegalTransition | NotAllowed)


def play(store: Store, clock: StoppedClock, on_sqlite: int, on_postgresql: int, *, new: bool = False) -> None:
    ClaimMachine.store, ClaimMachine.clock = store, clock
    count = on_sqlite if store.database.kind == "sqlite" else on_postgresql
    run(ClaimMachine, settings=settings(examples(count, new=new), stateful_step_count=30))


@pytest.mark.spec("X3")
def test_of_all_fences_of_a_todo_only_the_newest_ends_it(store: Store, clock: StoppedClock) -> None:
    play(store, clock, 50, 6)


@pytest.mark.soak
@pytest.mark.spec("X3")
def test_of_a_great_many_fences_only_the_newest_ends_a_todo(store: Store, clock: StoppedClock) -> None:
    play(store, clock, 3_000, 500, new=True)
