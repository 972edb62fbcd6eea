"""Random calls on a plan, good and bad, against a model of a few lines."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.contract.front import call
from tests.unit.examples import examples

from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound, PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.plan import condition_repository
from punchlist.plan.lifecycle import OPEN, PlanStatus
from punchlist.plan.model import plan_stream
from punchlist.plan.replay import replay_conditions, replay_todos
from punchlist.plan.service import Plans
from punchlist.storage import event_log
from punchlist.storage.store import Store

SUPERVISOR = Actor(Role.SUPERVISOR, "test")
WORKER = Actor(Role.WORKER, "coder")
orders = st.none() | st.integers(min_value=1, max_value=9)
items = st.lists(
    st.fixed_dictionaries({"title": st.sampled_from(["A", "B", "日本"]), "order": orders}), min_size=1, max_size=4
)
bad_items = st.sampled_from([None, {}, {"title": ""}, {"title": "a\x1bb"}, {"title": "A", "order": 0}, "A"])
which = st.integers(min_value=0, max_value=7)
endings = st.sampled_from([PlanStatus.COMPLETED, PlanStatus.CANCELLED])


class PlanMachine(RuleBasedStateMachine):
    store: ClassVar[Store]
    numbers: ClassVar = count(1)

    def __init__(self) -> None:
        super().__init__()
        self.conversations = Conversations(self.store)
        self.plans = Plans(self.store)
        self.session = f"machine-{next(self.numbers)}"
        self.turn = self._open_turn()
        self.line: list[str] = []
        self.states: dict[str, PlanStatus] = {}
        self.failed: set[str] = set()
        self.earlier: list[tuple[TurnScope, list[Any]]] = []

    def _open_turn(self) -> TurnScope:
        turn = self.conversations.open_turn(Scope(self.session, SUPERVISOR))
        return TurnScope(self.session, SUPERVISOR, turn.id)

    # --- what may be called -----------------------------------------------------------------------

    @rule(batch=items)
    def create(self, batch: list[dict[str, Any]]) -> None:
        result = call(self.plans, self.turn, "create_todo", items=batch)
        for item, made in zip(batch, result["created"], strict=True):
            assert made["id"] not in self.states
            self.line.insert(len(self.line) if item["order"] is None else item["order"] - 1, made["id"])
            self.states[made["id"]] = PlanStatus.PENDING
        assert [made["order"] for made in result["created"]] == [
            self.line.index(made["id"]) + 1 for made in result["created"]
        ]
        assert result["totalPending"] == self._count(PlanStatus.PENDING)

    @precondition(lambda self: self.line)
    @rule(index=which)
    def start(self, index: int) -> None:
        todo_id = self.line[index % len(self.line)]
        waits = todo_id in self.plans.snapshot(self.turn).waits
        if self.states[todo_id] is not PlanStatus.PENDING or self._count(PlanStatus.IN_PROGRESS) or waits:
            self._refused(IllegalTransition, "start_todo", todoId=todo_id)
            return
        assert call(self.plans, self.turn, "start_todo", todoId=todo_id)["startedAt"]
        self.states[todo_id] = PlanStatus.IN_PROGRESS

    @precondition(lambda self: self.line)
    @rule(index=which, ending=endings)
    def end(self, index: int, ending: PlanStatus) -> None:
        todo_id = self.line[index % len(self.line)]
        arguments: dict[str, Any] = {"todoId": todo_id, "outcome": "so it went", "status": ending.value}
        waits = todo_id in self.plans.snapshot(self.turn).waits
        if self.states[todo_id] not in OPEN or (waits and ending is PlanStatus.COMPLETED):
            self._refused(IllegalTransition, "complete_todo", **arguments)
            return
        # The number in the plan means the same todo as its id.
        arguments["todoId"] = self.line.index(todo_id) + 1
        assert call(self.plans, self.turn, "complete_todo", **arguments)["remaining"] == self._count(*OPEN) - 1
        self.states[todo_id] = ending

    @precondition(lambda self: self.line)
    @rule(index=which, other=which)
    def wait(self, index: int, other: int) -> None:
        todo_id, other_id = self.line[index % len(self.line)], self.line[other % len(self.line)]
        arguments: dict[str, Any] = {"todoId": todo_id, "for": {"todo": other_id}}
        if self.states[todo_id] not in OPEN:
            self._refused(IllegalTransition, "wait_todo", **arguments)
        elif todo_id == other_id:
            self._refused(InvalidInput, "wait_todo", **arguments)
        else:
            assert call(self.plans, self.turn, "wait_todo", **arguments)["status"] == "pending"
            self.states[todo_id] = PlanStatus.PENDING

    @precondition(lambda self: self.line)
    @rule(index=which)
    def fail(self, index: int) -> None:
        todo_id = self.line[index % len(self.line)]
        arguments: dict[str, Any] = {"todoId": todo_id, "outcome": "it broke", "status": "failed"}
        waits = todo_id in self.plans.snapshot(self.turn).waits
        if self.states[todo_id] not in OPEN or waits:
            self._refused(IllegalTransition, "complete_todo", **arguments)
            return
        again = todo_id not in self.failed
        self.states[todo_id] = PlanStatus.PENDING if again else PlanStatus.CANCELLED
        self.failed.add(todo_id)
        told = call(self.plans, self.turn, "complete_todo", **arguments)
        assert (told["retry"], told["status"]) == (again, self.states[todo_id])
        assert told["remaining"] == self._count(*OPEN)

    @precondition(lambda self: self.line)
    @rule(index=which, batch=items, bad=bad_items)
    def meddle(self, index: int, batch: list[Any], bad: Any) -> None:
        """A bad item, a todo that is not there, no outcome, and a worker who would like to plan."""
        self._refused(InvalidInput, "create_todo", items=[*batch, bad])
        todo_id = self.line[index % len(self.line)]
        self._refused(NotFound, "start_todo", todoId="nothing")
        self._refused(NotFound, "complete_todo", todoId="nothing", outcome="done")
        self._refused(InvalidInput, "complete_todo", todoId=todo_id, outcome=" ")
        worker = replace(self.turn, actor=WORKER)
        self._refused(NotAllowed, "create_todo", worker, items=[{"title": "A"}])
        self._refused(NotAllowed, "start_todo", worker, todoId=todo_id)
        self._refused(NotAllowed, "complete_todo", worker, todoId=todo_id, outcome="mine")

    @precondition(lambda self: len(self.line) > 6)
    @rule()
    def end_the_turn(self) -> None:
        """A new turn has a plan of its own; the old one stays as it is, for good."""
        self.earlier.append((self.turn, self._rows(self.turn)))
        self.conversations.end_turn(self.turn, reason="a new prompt")
        old, self.turn = self.turn, self._open_turn()
        left = self.line[0]
        self.line, self.states = [], {}
        self._refused(IllegalTransition, "create_todo", old, items=[{"title": "A"}])
        self._refused(NotFound, "start_todo", todoId=left)

    # --- what always holds ------------------------------------------------------------------------

    @invariant()
    def the_plan_is_the_models(self) -> None:
        everything = call(self.plans, self.turn, "list_todo", status="all")
        assert [(item["id"], item["status"]) for item in everything["items"]] == [
            (todo_id, self.states[todo_id]) for todo_id in self.line
        ]
        assert [item["priority"] for item in everything["items"]] == list(range(len(self.line)))
        summary = everything["summary"]
        assert summary == {
            "total": len(self.line),
            "pending": self._count(PlanStatus.PENDING),
            "inProgress": self._count(PlanStatus.IN_PROGRESS),
            "completed": self._count(PlanStatus.COMPLETED),
            "cancelled": self._count(PlanStatus.CANCELLED),
        }
        assert summary["inProgress"] <= 1
        remaining = call(self.plans, self.turn, "list_todo")["items"]
        assert [item["id"] for item in remaining] == [id for id in self.line if self.states[id] in OPEN]

    @invariant()
    def the_trail_tells_the_same(self) -> None:
        with self.store.read() as tx:
            events = event_log.read_stream(tx, plan_stream(self.turn.turn_id))
        assert list(event_log.broken_links(events)) == []
        assert replay_todos(self.turn.turn_id, events) == {todo.id: todo for todo in self._rows(self.turn)}
        with self.store.read() as tx:
            conditions = condition_repository.find_by_turn(tx, self.turn.turn_id)
        assert replay_conditions(self.turn.turn_id, events) == {one.id: one for one in conditions}

    @invariant()
    def whatever_waits_something_can_be_done(self) -> None:
        look = self.plans.snapshot(self.turn)
        assert (look.todos, look.problems) == (self._rows(self.turn), [])
        left = [todo.id for todo in look.todos if todo.status in OPEN]
        assert not left or set(left) - set(look.waits)

    def teardown(self) -> None:
        """Nothing of the turns that ended was deleted or changed."""
        for turn, rows in self.earlier:
            assert self._rows(turn) == rows

    # --- the model --------------------------------------------------------------------------------

    def _count(self, *statuses: PlanStatus) -> int:
        return sum(1 for status in self.states.values() if status in statuses)

    def _rows(self, turn: TurnScope) -> list[Any]:
        return self.plans.list(turn, frozenset(PlanStatus)).items

    def _refused(self, kind: type[PunchlistError], tool: str, scope: TurnScope | None = None, **arguments: Any) -> None:
        with pytest.raises(kind):
            call(self.plans, scope or self.turn, tool, **arguments)


def play(store: Store, on_sqlite: int, on_postgresql: int, *, new: bool = False) -> None:
    PlanMachine.store = store
    count = on_sqlite if store.database.kind == "sqlite" else on_postgresql
    run_state_machine_as_test(PlanMachine, settings=settings(examples(count, new=new), stateful_step_count=30))


@pytest.mark.spec("T1", "T2", "T3", "T4", "T5", "X5")
def test_random_calls_on_a_plan_do_what_a_simple_model_does(store: Store) -> None:
    play(store, 50, 6)


@pytest.mark.soak
@pytest.mark.spec("T1", "T2", "T3", "T4", "T5", "X5")
def test_a_great_many_random_calls_on_a_plan_do_what_a_simple_model_does(store: Store) -> None:
    play(store, 3_000, 500, new=True)
