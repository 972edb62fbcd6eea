"""A process that works in a mission; the tests have many of them and let them go at the same moment.

It reads a task as JSON, says `ready`, waits for another line, does its job again and again from all its
threads, and prints what came of every call.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from threading import Barrier

from tests.contract.missions import BUILD, ONBOARDING, SLUG
from tests.contract.writer import told
from tests.faults.processes import ROOT, module
from tests.parent_death import end_with_parent

from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import MissionScope, NewMissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.service import MissionTodos
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

Outcome = tuple[str, str]


class Member:
    """One caller. Each of its jobs makes one change and tells what it made."""

    def __init__(self, store: Store, number: int) -> None:
        self.number = number
        self.todos = MissionTodos(store)
        self.scope = MissionScope("s", Actor(Role.LEAD, f"lead-{number}"), SLUG)
        self.random = random.Random(number)

    def create(self, time: int) -> str:
        """Into either list, in either pillar."""
        target = self.random.choice([TodoStatus.PENDING, TodoStatus.PENDING, TodoStatus.BACKLOG])
        pillar = self.random.choice([BUILD, ONBOARDING])
        new = NewMissionTodo(pillar, f"todo {time} of {self.number}", target=target)
        return self.todos.create(self.scope, SLUG, new).todo.id

    def anything(self, time: int) -> str:
        """Whatever somebody may do to some todo that is open, as it seems."""
        action = self.random.choice([TodoAction.CREATE, TodoAction.COMPLETE, *_MOVES])
        there = self.todos.list(SLUG, status={TodoStatus.BACKLOG, TodoStatus.PENDING, TodoStatus.IN_PROGRESS}).items
        if action is TodoAction.CREATE or not there:
            return f"create {self.create(time)}"
        todo = self.random.choice(there)
        if action is TodoAction.COMPLETE:
            self.todos.complete(self.scope, SLUG, todo.id, f"by {self.number}")
        else:
            self.todos.update(self.scope, SLUG, todo.id, action, f"by {self.number}")
        return f"{action} {todo.id}"

    def promote(self, _time: int) -> str:
        waiting = self.todos.list(SLUG, status={TodoStatus.BACKLOG}).items
        return self.todos.update(self.scope, SLUG, self.random.choice(waiting).id, TodoAction.PROMOTE, "now").todo.id

    def shuffle(self, time: int) -> str:
        """Swap two todos, or add a sub-item to one."""
        there = self.todos.list(SLUG, status={TodoStatus.BACKLOG, TodoStatus.PENDING}).items
        pending = self.random.choice([todo for todo in there if todo.status is TodoStatus.PENDING])
        waiting = self.random.choice([todo for todo in there if todo.status is TodoStatus.BACKLOG])
        if time % 3 == 2:
            parent = pending.parent_id or pending.id
            new = NewMissionTodo(BUILD, f"part {time} of {self.number}", parent_id=parent)
            return f"part {self.todos.create(self.scope, SLUG, new).todo.id}"
        self.todos.swap(self.scope, SLUG, pending.id, waiting.id, f"by {self.number}")
        return f"swap {pending.id}"

    def reprioritize(self, time: int) -> str:
        (todo,) = self.todos.list(SLUG).items
        reason = f"change {time} of {self.number}"
        priority = self.random.choice(list(TodoPriority))
        self.todos.update(self.scope, SLUG, todo.id, TodoAction.REPRIORITIZE, reason, priority=priority)
        return reason

    def complete(self, _time: int) -> str:
        (todo,) = self.todos.list(SLUG).items
        outcome = f"done by {self.number}"
        self.todos.complete(self.scope, SLUG, todo.id, outcome)
        return outcome

    def repeat(self, time: int) -> str:
        """The request that all the others make, too."""
        new = NewMissionTodo(BUILD, f"request {time}", request_id=f"r-{time}")
        return self.todos.create(self.scope, SLUG, new).todo.id


_MOVES = [TodoAction.PROMOTE, TodoAction.PROMOTE, TodoAction.DEMOTE, TodoAction.START, TodoAction.CANCEL]


@dataclass(frozen=True)
class Task:
    database: str
    job: str
    times: int = 1
    threads: int = 1
    number: int = 0

    def run(self, store: Store) -> list[Outcome]:
        start = Barrier(self.threads)

        def work(thread: int) -> list[Outcome]:
            job = getattr(Member(store, self.number * self.threads + thread), self.job)
            start.wait(60)
            return [told(job, time) for time in range(self.times)]

        with ThreadPoolExecutor(self.threads) as pool:
            return [outcome for each in pool.map(work, range(self.threads)) for outcome in each]


class Crew:
    """Processes that are started when first needed and stay for what comes next."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []

    def go(self, task: Task, processes: int) -> list[Outcome]:
        """What came of all the calls of so many processes, which begin at the same moment."""
        try:
            return self._go(task, processes)
        except BaseException:
            # Some may still be at work for a test that has failed.
            self.end()
            raise

    def _go(self, task: Task, processes: int) -> list[Outcome]:
        command = module("tests.faults.mission_writer")
        while len(self._processes) < processes:
            self._processes.append(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        chosen = self._processes[:processes]
        for number, process in enumerate(chosen):
            _send(process, json.dumps(asdict(replace(task, number=number))))
        for process in chosen:
            assert _line(process) == "ready\n"
        for process in chosen:
            _send(process, "go")
        return [(code, detail) for process in chosen for code, detail in json.loads(_line(process))]

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()
        self._processes.clear()


def _send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def main() -> None:
    while line := sys.stdin.readline():
        task = Task(**json.loads(line))
        store = open_store(task.database)
        print("ready", flush=True)
        sys.stdin.readline()
        outcomes = task.run(store)
        # Before it is told: whoever hears it may take the database away.
        store.close()
        print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    end_with_parent()
    main()
