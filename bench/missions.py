"""Missions on SQLite: many processes that want the last slots, and reads beside a great many todos that ended.

As a program, `python -m bench.missions DATABASE NUMBER TIMES`, it is one of those processes.
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
from bench.measuring import Bench, Figure, Limits, Operation, interleave, runs
from bench.processes import PYTHON
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.clock import system_clock, timestamp
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
ANSWERS_A_SECOND: Final = 300
MOST_ENDED: Final = 100_000
EACH: Final = 3


def measure(bench: Bench) -> Iterator[Figure]:
    quick = bench.sizes.rounds < 1_000
    yield from contention(bench.folder, 4 if quick else PROCESSES, 200 if quick else ATTEMPTS, 1 if quick else 3)
    yield from reads(bench, few=100, many=min(bench.sizes.many, MOST_ENDED))


# --- many who want the last slots ------------------------------------------------------------------------------


def contention(folder: Path, processes: int, attempts: int, rounds: int) -> Iterator[Figure]:
    times, over = [], 0
    for number in range(rounds):
        path = folder / f"contention-{number}.db"
        with closing(open_store(str(path))) as store:
            make_mission(store)
        seconds, answers = let_go(path, processes, -(-attempts // processes))
        times.append(seconds / answers.total())
        with closing(open_store(str(path))) as store:
            taken = MissionTodos(store).capacity(SLUG)
        over += abs(answers["made"] - SLOTS) + abs(taken.active + taken.backlog - SLOTS)
    yield Figure(
        f"an answer, {processes} processes, {attempts:,} attempts at {SLOTS} slots",
        times,
        limits=Limits(seconds=1 / ANSWERS_A_SECOND),
    )
    yield Amount("slots too many or too few after that", [over], unit="slots", most=0)


def let_go(path: Path, processes: int, times: int) -> tuple[float, Counter[str]]:
    """Seconds from the moment when all may begin until all have ended, and what they were answered."""
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
            raise RuntimeError("a process could not begin")
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
    """What one process is told; it begins when it is let."""
    with closing(open_store(path)) as store:
        todos = MissionTodos(store)
        todos.capacity(SLUG)
        print("ready", flush=True)
        sys.stdin.readline()
        answers: Counter[str] = Counter()
        for time in range(times):
            try:
                todos.create(PERSON, SLUG, NewMissionTodo(PILLAR, f"todo {time} of {number}"))
                answers["made"] += 1
            except IllegalTransition:
                answers["refused"] += 1
        return answers


# --- reads beside what has ended -------------------------------------------------------------------------------


def reads(bench: Bench, few: int, many: int) -> Iterator[Figure]:
    with (
        closing(open_store(str(bench.folder / "few.db"))) as small,
        closing(open_store(str(bench.folder / "many.db"))) as large,
    ):
        for store, ended in ((small, few), (large, many)):
            fill(store, make_mission(store), ended)
        ours, theirs = MissionTodos(large), MissionTodos(small)
        rounds = max(bench.sizes.rounds // 4, 50)
        pairs: list[tuple[str, Operation, Operation]] = [
            ("list", lambda: ours.list(SLUG), lambda: theirs.list(SLUG)),
            ("list of a pillar", lambda: ours.list(SLUG, pillar=PILLAR), lambda: theirs.list(SLUG, pillar=PILLAR)),
            ("planning prompt", briefing(large), briefing(small)),
            ("capacity", lambda: ours.capacity(SLUG), lambda: theirs.capacity(SLUG)),
            ("cancel and create", replacing(large, rounds), replacing(small, rounds)),
        ]
        for name, one, other in pairs:
            times, raw = interleave(one, other, rounds=rounds, each=EACH)
            yield Figure(f"mission {name}, {many:,} against {few:,} ended", times, raw, Limits(times=1.5))


def briefing(store: Store) -> Operation:
    """What a pillar's owner is given in planning: the pillar's metrics, strategies and todos."""
    missions = Missions(store, Conversations(store))
    desk = PromptData(
        missions, MissionTodos(store), Metrics(store), Escalations(store), Conversations(store), Runs(store)
    )
    mission = missions.get(SLUG)
    (standing,) = missions.pillars(mission)

    def brief() -> None:
        desk.for_owner(mission, standing.pillar, system_clock())

    return brief


def replacing(store: Store, rounds: int) -> Operation:
    """Cancel a todo of the backlog and make another."""
    todos, left = MissionTodos(store), runs(rounds, EACH)
    there = todos.list(SLUG, status={TodoStatus.BACKLOG}).items[0].id

    def replace() -> None:
        nonlocal left, there
        left -= 1
        todos.update(PERSON, SLUG, there, TodoAction.CANCEL, "bench")
        there = todos.create(PERSON, SLUG, NewMissionTodo(PILLAR, f"todo {left}", target=TodoStatus.BACKLOG)).todo.id

    return replace


def make_mission(store: Store) -> Mission:
    return Missions(store, Conversations(store)).apply(PERSON, file.parse_mission(FILE), FILE).mission


def fill(store: Store, mission: Mission, ended: int) -> None:
    """Both lists full, and so many todos that ended in the last twenty days."""
    todos = MissionTodos(store)
    for number in range(SLOTS):
        todos.create(PERSON, SLUG, NewMissionTodo(PILLAR, f"todo {number}", "What there is to do. " * 10))
    (pillar,) = [standing.pillar for standing in Missions(store, Conversations(store)).pillars(mission)]
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
        description="What there was to do. " * 10,
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
