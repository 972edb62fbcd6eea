"""`kill -9` of agents that work on one plan: every todo is completed, none twice (X3)."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import SOAK
from tests.faults.processes import ROOT, eventually, module, spin

from punchlist.audit.check import check
from punchlist.claims.lifecycle import ClaimAction
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Event, Role
from punchlist.plan.lifecycle import PlanAction, PlanStatus
from punchlist.plan.model import NewTodo, plan_stream
from punchlist.plan.service import Plans
from punchlist.storage import event_log
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION

LONGEST = 3_000 if SOAK else 100
ACTOR = Actor(Role.SUPERVISOR, "test")


class Claimants:
    """Processes that drain a plan, and what each has written down."""

    def __init__(self, address: str, turn: TurnScope, folder: Path, count: int) -> None:
        self.files = [folder / f"claimant-{number}" for number in range(count)]
        self.processes = [
            subprocess.Popen(
                module("tests.faults.claimant", address, turn.conversation_id, turn.turn_id, str(number), str(file)),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number, file in enumerate(self.files)
        ]

    def begin(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def completed(self) -> list[str]:
        """What was written down by all of them, killed or not."""
        return [line for file in self.files if file.exists() for line in file.read_text().split()]

    def wait_for(self, todos: int) -> None:
        eventually(lambda: len(self.completed()) >= todos, f"{todos} todos are completed")

    def end(self) -> list[int]:
        """Wait for those who live; how each of them ended."""
        for process in self.processes:
            _, errors = process.communicate(timeout=LONGEST)
            assert process.returncode in (0, -9), errors
        return [process.returncode for process in self.processes]


@contextmanager
def claimants(address: str, turn: TurnScope, folder: Path, count: int) -> Iterator[Claimants]:
    started = Claimants(address, turn, folder, count)
    try:
        yield started
    finally:
        for process in started.processes:
            process.kill()
        for process in started.processes:
            process.communicate()


def overtaken(events: list[Event]) -> list[str]:
    """Todos that were ended by somebody else than who had claimed them last."""
    found, newest = [], dict[str, Any]()
    for event in events:
        data = event.payload()
        if event.action == ClaimAction.CLAIM:
            newest[event.subject] = (event.actor, data["fence"])
        elif event.action == PlanAction.COMPLETE and newest.get(event.subject) != (event.actor, data["claim"]["fence"]):
            found.append(event.subject)
    return found


@pytest.mark.spec("X3", "X7")
@pytest.mark.timeout(LONGEST)
@pytest.mark.parametrize(
    ("count", "todos"), [(8, 200), pytest.param(64, 10_000, marks=pytest.mark.soak)], ids=["seconds", "full"]
)
def test_whoever_is_killed_every_todo_is_completed_once(database: str, tmp_path: Path, count: int, todos: int) -> None:
    store = open_store(database)
    turn = TurnScope("s", ACTOR, Conversations(store).open_turn(Scope("s", ACTOR)).id)
    plans = Plans(store)
    for first in range(0, todos, 1_000):
        plans.create(turn, [NewTodo(f"t{first + number}") for number in range(min(todos - first, 1_000))])
    moments = random.Random(todos)
    with claimants(database, turn, tmp_path, count) as crowd:
        crowd.begin()
        doomed = crowd.processes[: count // 3]
        for number, process in enumerate(doomed, start=1):
            # Some way into the work, at a moment that nobody can name.
            crowd.wait_for(todos * number // (2 * len(doomed)))
            spin(moments.uniform(0, 0.01))
            process.kill()
        codes = crowd.end()
        written = crowd.completed()
    assert codes == [-9] * len(doomed) + [0] * (count - len(doomed))
    assert [id for id, times in Counter(written).items() if times > 1] == []
    left = plans.list(turn, frozenset(PlanStatus))
    assert left.counts[PlanStatus.COMPLETED] == todos
    # Whoever is killed between the end of a todo and its note of it writes nothing more.
    missing = {todo.id for todo in left.items} - set(written)
    assert len(missing) <= len(doomed)
    with store.read() as tx:
        events = event_log.read_stream(tx, plan_stream(turn.turn_id))
    assert overtaken(events) == []
    assert Counter(event.subject for event in events if event.action == PlanAction.COMPLETE) == {
        todo.id: 1 for todo in left.items
    }
    assert left.claims == {}
    assert check(store, SCHEMA_VERSION).problems == []
    store.close()
