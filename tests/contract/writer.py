"""A process of its own that writes; `crowd.py` has several and lets them go at the same moment.

For each line it reads, a task as JSON, it says `ready` and waits for another line; then it opens the
database, does its job from all its threads at once, and prints what came of every call as JSON. The
store stays open until the next task comes: whoever is killed before that is killed with it open.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

from tests.parent_death import end_with_parent

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import NewTodo
from punchlist.plan.service import Plans
from punchlist.storage.open import open_store
from punchlist.storage.store import Store


class Writer:
    """One caller. Each of its jobs makes one call and tells what it made."""

    def __init__(self, store: Store, number: int) -> None:
        self.number = number
        self.scope = Scope("s", Actor(Role.SUPERVISOR, f"writer-{number}"))
        self.conversations = Conversations(store)
        self.checklists = Checklists(store, self.conversations)
        self.plans = Plans(store)

    def turn(self) -> TurnScope:
        return TurnScope("s", self.scope.actor, self.conversations.open_turn(self.scope).id)

    def open(self, _time: int) -> str:
        return self.turn().turn_id

    def add(self, time: int) -> str:
        content = f"item {time} of writer {self.number}"
        self.checklists.add(self.scope, content, reason="test")
        return content

    def edit(self, time: int) -> str:
        content = f"wording {time} of writer {self.number}"
        self.checklists.edit(self.scope, "1", content, reason="test")
        return content

    def create(self, time: int) -> str:
        """At the end mostly; now and then at the head, so that everything shifts."""
        item = NewTodo(f"todo {time} of writer {self.number}", order=1 if time % 10 == 9 else None)
        return self.plans.create(self.turn(), [item]).todos[0].id

    def start_its_own(self, _time: int) -> str:
        turn = self.turn()
        return self.plans.start(turn, self.plans.list(turn).items[self.number].id).id

    def complete_the_first(self, _time: int) -> str:
        turn = self.turn()
        first = self.plans.list(turn, frozenset(PlanStatus)).items[0]
        outcome = f"done by writer {self.number}"
        self.plans.end(turn, first.id, outcome)
        return outcome


def told(job: Callable[[int], str], time: int) -> tuple[str, str]:
    """What came of one call: `ok` and what was made, or the error's code and words."""
    try:
        return "ok", job(time)
    except PunchlistError as error:
        return error.code, str(error)
    except Exception as error:
        return "crash", repr(error)


@dataclass(frozen=True)
class Task:
    database: str
    job: str
    number: int
    times: int
    threads: int

    def run(self, store: Store) -> list[tuple[str, str]]:
        start = Barrier(self.threads)

        def work(thread: int) -> list[tuple[str, str]]:
            job = getattr(Writer(store, self.number * self.threads + thread), self.job)
            start.wait(60)
            return [told(job, time) for time in range(self.times)]

        with ThreadPoolExecutor(self.threads) as pool:
            return [outcome for each in pool.map(work, range(self.threads)) for outcome in each]


def main() -> None:
    store: Store | None = None
    while line := sys.stdin.readline():
        if store:
            store.close()
        task = Task(**json.loads(line))
        print("ready", flush=True)
        sys.stdin.readline()
        store = open_store(task.database)
        print(json.dumps(task.run(store)), flush=True)


if __name__ == "__main__":
    end_with_parent()
    main()
