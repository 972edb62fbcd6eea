"""Random calls on a mission's todos, by all its roles, against a model of a few lines."""

from __future__ import annotations

from itertools import count
from typing import Any, ClassVar, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.contract.missions import BUILD, Team, developer_experience
from tests.unit.examples import examples

from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, PunchlistError
from punchlist.kernel.events import Role
from punchlist.missions.todos import replay
from punchlist.runs.service import Runs
from punchlist.storage import event_log
from punchlist.storage.store import Store

ACTIVE: Final = 3
BACKLOG: Final = 4
# From the seed's tables: action to (from, to).
MOVES: Final[dict[str, tuple[set[str], str]]] = {
    "promote": ({"backlog"}, "pending"),
    "demote": ({"pending"}, "backlog"),
    "start": ({"pending"}, "in_progress"),
    "cancel": ({"backlog", "pending", "in_progress"}, "cancelled"),
}
ENDED: Final = ("completed", "cancelled")
which = st.integers(min_value=0, max_value=30)
roles = st.sampled_from([Role.LEAD, Role.LEAD, Role.PERSON, Role.OWNER, Role.WORKER])


class MissionMachine(RuleBasedStateMachine):
    store: ClassVar[Store]
    numbers: ClassVar = count(1)

    def __init__(self) -> None:
        super().__init__()
        slug = f"machine-{next(self.numbers)}"
        self.team: Team = developer_experience(self.store, slug, active=ACTIVE, backlog=BACKLOG)
        self.states: dict[str, str] = {}
        self.parents: dict[str, str] = {}

    # --- what may be called -----------------------------------------------------------------------

    @rule(role=roles, wanted=st.sampled_from(["pending", "pending", "backlog"]))
    def create(self, role: Role, wanted: str) -> None:
        arguments = {"pillarSlug": BUILD, "title": "A", "targetStatus": wanted}
        goes = "pending" if wanted == "pending" and self._active() < ACTIVE else "backlog"
        if role is Role.WORKER:
            self._refused(NotAllowed, role, "create", **arguments)
        elif goes == "backlog" and self._count("backlog") >= BACKLOG:
            self._refused(IllegalTransition, role, "create", **arguments)
        else:
            made = self.team.call(self.team.scope(role), "create", **arguments)
            assert made["id"] not in self.states
            assert (made["status"], "warning" in made) == (goes, goes != wanted)
            self.states[made["id"]] = goes

    @precondition(lambda self: self.states)
    @rule(role=roles, index=which)
    def create_sub_item(self, role: Role, index: int) -> None:
        parent = self._pick(index)
        arguments = {"pillarSlug": BUILD, "title": "part", "parentId": parent}
        goes = "pending" if self._active() < ACTIVE else "backlog"
        if role is Role.WORKER:
            self._refused(NotAllowed, role, "create", **arguments)
        elif self.states[parent] in ENDED or parent in self.parents:
            self._refused(InvalidInput, role, "create", **arguments)
        elif goes == "backlog" and self._count("backlog") >= BACKLOG:
            self._refused(IllegalTransition, role, "create", **arguments)
        else:
            made = self.team.call(self.team.scope(role), "create", **arguments)
            self.states[made["id"]], self.parents[made["id"]] = goes, parent

    @precondition(lambda self: self.states)
    @rule(role=roles, index=which, other=which)
    def swap(self, role: Role, index: int, other: int) -> None:
        first, second = self._pick(index), self._pick(other)
        arguments = {"todoId": first, "action": "swap", "otherId": second, "reason": "a test"}
        if role in (Role.WORKER, Role.OWNER):
            self._refused(NotAllowed, role, "update", **arguments)
        elif {self.states[first], self.states[second]} != {"pending", "backlog"}:
            self._refused(IllegalTransition, role, "update", **arguments)
        else:
            changed = self.team.call(self.team.scope(role), "update", **arguments)
            self.states[first], self.states[second] = self.states[second], self.states[first]
            assert (changed["status"], changed["other"]["status"]) == (self.states[first], self.states[second])

    @precondition(lambda self: self.states)
    @rule(role=roles, index=which, action=st.sampled_from(list(MOVES)))
    def move(self, role: Role, index: int, action: str) -> None:
        todo_id = self._pick(index)
        arguments = {"todoId": todo_id, "action": action, "reason": "a test"}
        sources, target = MOVES[action]
        full = (target == "pending" and self._active() >= ACTIVE) or (
            target == "backlog" and self._count("backlog") >= BACKLOG
        )
        if role is Role.WORKER or (role is Role.OWNER and action != "cancel"):
            self._refused(NotAllowed, role, "update", **arguments)
        elif self.states[todo_id] not in sources or full:
            self._refused(IllegalTransition, role, "update", **arguments)
        else:
            changed = self.team.call(self.team.scope(role), "update", **arguments)
            assert changed["status"] == target
            assert ("runId" in changed) == (action == "start")
            self.states[todo_id] = target
            if action == "cancel":
                self.states |= dict.fromkeys(self._open_parts(todo_id), "cancelled")

    @precondition(lambda self: self.states)
    @rule(role=roles, index=which)
    def complete(self, role: Role, index: int) -> None:
        todo_id = self._pick(index)
        arguments = {"todoId": todo_id, "outcome": "so it went"}
        if role in (Role.WORKER, Role.OWNER):
            self._refused(NotAllowed, role, "complete", **arguments)
        elif self.states[todo_id] != "in_progress" or self._open_parts(todo_id):
            self._refused(IllegalTransition, role, "complete", **arguments)
        else:
            assert self.team.call(self.team.scope(role), "complete", **arguments)["outcome"] == "so it went"
            self.states[todo_id] = "completed"

    # --- what always holds ------------------------------------------------------------------------

    @invariant()
    def the_list_is_the_models(self) -> None:
        listed = self.team.call(self.team.lead, "list")
        assert {item["id"]: item["status"] for item in listed["items"]} == self.states
        assert listed["summary"] == {
            "active": self._active(),
            "activeTodoLimit": ACTIVE,
            "backlog": self._count("backlog"),
            "backlogTodoLimit": BACKLOG,
        }
        assert self._active() <= ACTIVE
        assert self._count("backlog") <= BACKLOG

    @invariant()
    def the_trail_tells_the_same(self) -> None:
        events, mission_id = self.team.trail(), self.team.mission.id
        assert list(event_log.broken_links(events)) == []
        with self.store.read() as tx:
            assert list(replay.compare(tx, mission_id, events)) == []

    def teardown(self) -> None:
        """Each start made one run; of what was cancelled, none goes on."""
        runs = Runs(self.store).list(mission_id=self.team.mission.id, ended=True, limit=1_000)
        assert len({run.todo_id for run in runs}) == len(runs)
        cancelled = {todo_id for todo_id, state in self.states.items() if state == "cancelled"}
        assert {run.status for run in runs if run.todo_id in cancelled} <= {"stopped"}

    # --- the model --------------------------------------------------------------------------------

    def _pick(self, index: int) -> str:
        return list(self.states)[index % len(self.states)]

    def _open_parts(self, todo_id: str) -> list[str]:
        return [id for id, of in self.parents.items() if of == todo_id and self.states[id] not in ENDED]

    def _count(self, *statuses: str) -> int:
        return sum(1 for status in self.states.values() if status in statuses)

    def _active(self) -> int:
        return self._count("pending", "in_progress")

    def _refused(self, kind: type[PunchlistError], role: Role, tool: str, **arguments: Any) -> None:
        with pytest.raises(kind):
            self.team.call(self.team.scope(role), tool, **arguments)


def play(store: Store, on_sqlite: int, on_postgresql: int, *, new: bool = False) -> None:
    MissionMachine.store = store
    count = on_sqlite if store.database.kind == "sqlite" else on_postgresql
    run_state_machine_as_test(MissionMachine, settings=settings(examples(count, new=new), stateful_step_count=30))


@pytest.mark.spec("M2", "M4", "M5", "M6", "M18")
def test_random_calls_on_a_mission_do_what_a_simple_model_does_and_never_pass_a_limit(store: Store) -> None:
    play(store, 30, 4)


@pytest.mark.soak
@pytest.mark.spec("M2", "M4", "M5", "M6", "M18")
def test_a_great_many_random_calls_on_a_mission_never_pass_a_limit(store: Store) -> None:
    play(store, 2_000, 300, new=True)
