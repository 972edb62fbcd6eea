"""Missions on SQLite: many processes that compete for the last slots, and reads with many ended todos.

`python -m bench.missions DATABASE NUMBER TIMES` is one of the competing processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.amounts import Amount
from bench.figures import Bench, Figure, Limits, Operation, interleave, runs
from bench.processes import PYTHON
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition
from punchlist.kernel.clock import system_clock, timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.ids import new_id
from punchlist.missions.config import file
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.metrics.service import Metrics
from punchlist.missions.model import Mission, MissionScope, MissionTodo, NewMissionTodo
from punchlist.missions.planning.prompt_data import PromptData
from punchlist.missions.service import Missions
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.service import MissionTodos
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

SLUG: Final = "bench"
PILLAR: Final = "speed"
FILE: Final = json.dumps({"name": "Bench", "slug": SLUG, "pillars": [{"name": "Speed", "slug": PILLAR}]})
PERSON: Final = MissionScope("bench", Actor(Role.PERSON, "bench"))
SLOTS: Final = 60
PROCESSES: Final = 32
ATTEMPTS: Final = 2_000
ANSWERS_PER_SECOND: Final = 300
MAX_ENDED: Final = 100_000
EACH: Final = 3


def measure(bench: Bench) -> Iterator[Figure]:
    quick = bench.sizes.rounds < 1_000
    yield from contention(bench.folder, 4 if quick else PROCESSES, 200 if quick else ATTEMPTS, 1 if quick else 3)
    yield from reads(bench, few=100, many=min(bench.sizes.many, MAX_ENDED))


# --- competition for the last slots ------------------------------------------------------------------------------


def contention(folder: Path, processes: int, attempts: int, rounds: int) -> Iterator[Figure]:
    times, over = [], 0
    for number in range(rounds):
        path = folder / f"contention-{number}.db"
        with closing(open_store(str(path))) as store:
            create_mission(store)
        seconds, answers = run_processes(path, processes, -(-attempts // processes))
        times.append(seconds / answers.total())
        with closing(open_store(str(path))) as store:
            taken = MissionTodos(store).capacity(SLUG)
        over += abs(answers["created"] - SLOTS) + abs(taken.active + taken.backlog - SLOTS)
    yield Figure(
        f"an answer, {processes} processes, {attempts:,} attempts at {SLOTS} slots",
        times,
        limits=Limits(seconds=1 / ANSWERS_PER_SECOND),
    )
    yield Amount("slots too many or too few after that", [over], unit="slots", maximum=0)


def run_processes(path: Path, processes: int, times: int) -> tuple[float, Counter[str]]:
    """Seconds from the common start until all processes have ended, and the counts of their answers."""
    started = [
        subprocess.Popen(
            [PYTHON, "-m", "bench.missions", str(path), str(number), str(times)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for process in started:
        assert process.stdout
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("a process could not start")
    begin = perf_counter()
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    answers: Counter[str] = Counter()
    for process in started:
        assert process.stdout
        answers.update(json.loads(process.stdout.readline()))
    taken = perf_counter() - begin
    for process in started:
        process.communicate()
    return taken, answers


def attempts(path: str, number: int, times: int) -> Counter[str]:
    """Counts the answers of one process, which starts when it reads a line."""
    with closing(open_store(path)) as store:
        todos = MissionTodos(store)
        todos.capacity(SLUG)
        print("ready", flush=True)
        sys.stdin.readline()
        answers: Counter[str] = Counter()
        for time in range(times):
            try:
                todos.create(PERSON, SLUG, NewMissionTodo(PILLAR, f"todo {time} of {number}"))
                answers["created"] += 1
            except IllegalTransition:
                answers["refused"] += 1
        return answers


# --- reads with many ended todos -------------------------------------------------------------------------------


def reads(bench: Bench, few: int, many: int) -> Iterator[Figure]:
    with (
        closing(open_store(str(bench.folder / "few.db"))) as small,
        closing(open_store(str(bench.folder / "many.db"))) as large,
    ):
        for store, ended in ((small, few), (large, many)):
            fill(store, create_mission(store), ended)
        with_many, with_few = MissionTodos(large), MissionTodos(small)
        rounds = max(bench.sizes.rounds // 4, 50)
        pairs: list[tuple[str, Operation, Operation]] = [
            ("list", lambda: with_many.list(SLUG), lambda: with_few.list(SLUG)),
            (
                "list of a pillar",
                lambda: with_many.list(SLUG, pillar=PILLAR),
                lambda: with_few.list(SLUG, pillar=PILLAR),
            ),
            ("planning prompt", planning_prompt(large), planning_prompt(small)),
            ("capacity", lambda: with_many.capacity(SLUG), lambda: with_few.capacity(SLUG)),
            ("cancel and create", replace_todo(large, rounds), replace_todo(small, rounds)),
        ]
        for name, large_read, small_read in pairs:
            times, raw = interleave(large_read, small_read, rounds=rounds, each=EACH)
            yield Figure(f"mission {name}, {many:,} against {few:,} ended", times, raw, Limits(times=1.5))


def planning_prompt(store: Store) -> Operation:
    """Builds the planning prompt of a pillar: its metrics, strategies and todos."""
    missions = Missions(store, Conversations(store))
    data = PromptData(
        missions, MissionTodos(store), Metrics(store), Escalations(store), Conversations(store), Runs(store)
    )
    mission = missions.get(SLUG)
    (pillar_status,) = missions.pillars(mission)

    def build() -> None:
        data.for_owner(mission, pillar_status.pillar, system_clock())

    return build


def replace_todo(store: Store, rounds: int) -> Operation:
    """Cancels a backlog todo and creates another."""
    todos, left = MissionTodos(store), runs(rounds, EACH)
    current = todos.list(SLUG, status={TodoStatus.BACKLOG}).items[0].id

    def replace() -> None:
        nonlocal left, current
        left -= 1
        todos.update(PERSON, SLUG, current, TodoAction.CANCEL, "bench")
        current = todos.create(PERSON, SLUG, NewMissionTodo(PILLAR, f"todo {left}", target=TodoStatus.BACKLOG)).todo.id

    return replace


def create_mission(store: Store) -> Mission:
    return Missions(store, Conversations(store)).apply(PERSON, file.parse_mission(FILE), FILE).mission


def fill(store: Store, mission: Mission, ended: int) -> None:
    """Fills both lists, and adds todos that ended in the last twenty days."""
    todos = MissionTodos(store)
    for number in range(SLOTS):
        todos.create(PERSON, SLUG, NewMissionTodo(PILLAR, f"todo {number}", "Work to do. " * 10))
    (pillar,) = [status.pillar for status in Missions(store, Conversations(store)).pillars(mission)]
    now = system_clock()
    with store.write() as tx:
        for number in range(ended):
            at = timestamp(now - timedelta(days=20) * number / ended)
            todo_repository.insert_todo(tx, ended_todo(mission, pillar.id, at))


def ended_todo(mission: Mission, pillar_id: str, at: str) -> MissionTodo:
    return MissionTodo(
        id=new_id(),
        pillar_id=pillar_id,
        mission_id=mission.id,
        title="It is done",
        description="Work that is done. " * 10,
        justification="",
        completion_criteria="",
        deadline=None,
        status=TodoStatus.COMPLETED,
        priority=TodoPriority.MEDIUM,
        assigned_agent=None,
        outcome="It went well.",
        created_at=at,
        started_at=at,
        completed_at=at,
        ended_at=at,
        also_affects="[]",
        completion_check=None,
        check_result=None,
        worked_at=None,
        override_reason=None,
        overdue_at=None,
        request_id=None,
    )


if __name__ == "__main__":
    print(json.dumps(attempts(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))), flush=True)
