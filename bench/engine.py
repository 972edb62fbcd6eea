"""The durable engine on SQLite: what a step of ours adds to one of DBOS, and how a long queue of runs is worked off.

As a program, `python -m bench.engine ours|bare DATABASE RUNS`, it is one worker that works off such a queue.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from bench.measuring import Bench, Figure, Limits
from bench.processes import PYTHON
from punchlist.app import App
from punchlist.config import load
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.engine.durable import DurableEngine
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.process_id import current_process
from punchlist.missions.config import file
from punchlist.missions.service import Missions
from punchlist.models.rehearsal import Rehearsal, RehearsalScript, RehearsedReply
from punchlist.runs.model import Run, RunKind
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode

PERSON: Final = Actor(Role.PERSON, "bench")
FILE: Final = json.dumps({"name": "Bench", "slug": "bench", "pillars": [{"name": "Speed", "slug": "speed"}]})
RUNS: Final = 500
PART: Final = 100
"""So many runs at the beginning of a queue are compared with as many at its end."""
STEPS: Final = 2
"""Of a run that has next to nothing to do."""

Nothing = Callable[[], Awaitable[Any]]


def measure(bench: Bench) -> Iterator[Figure]:
    rounds = bench.sizes.rounds
    with closing(open_store(str(bench.folder / "steps.db"))) as store:
        ours, bare = asyncio.run(steps(store, rounds))
    yield Figure("a durable step", ours, bare, Limits(times=2.0))
    runs, times = (100, 1) if rounds < 1_000 else (RUNS, 3)
    drained: dict[str, list[list[float]]] = {"ours": [], "bare": []}
    for number in range(times):
        for which, made in drained.items():
            made.append(drain(which, bench.folder / f"{which}-{number}.db", runs))
    each = {which: [made[-1] / runs for made in all_made] for which, all_made in drained.items()}
    yield Figure(f"a run of {runs} in a queue, against a bare workflow", each["ours"], each["bare"])
    if runs > 2 * PART:
        last = [(made[-1] - made[-PART - 1]) / PART for made in drained["ours"]]
        first = [(made[PART] - made[0]) / PART for made in drained["ours"]]
        yield Figure(f"the last {PART} of {runs} against the first", last, first, Limits(times=2.0))
        yield Figure("the longest time without an end of a run", [longest_wait(made) for made in drained["ours"]])


def longest_wait(ends: list[float]) -> float:
    return max(after - before for before, after in pairwise(ends))


# --- one step -------------------------------------------------------------------------------------------------


async def steps(store: Store, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds per step, ours and the engine's own, which take turns in one run."""
    from dbos import DBOS

    durable, came = DurableEngine(store, current_process()), asyncio.get_running_loop().create_future()

    async def nothing() -> int:
        return 1

    async def bare() -> int:
        return await DBOS.run_step_async({"name": "bare"}, nothing)

    async def ours() -> int:
        return await durable.step("ours", nothing)

    async def work(_run_id: str) -> str:
        times: dict[Nothing, list[float]] = {ours: [], bare: []}
        for number in range(rounds):
            for step in (ours, bare) if number % 2 else (bare, ours):
                begin = perf_counter()
                await step()
                times[step].append(perf_counter() - begin)
        came.set_result((times[ours], times[bare]))
        return "done"

    await durable.open(work)
    await durable.enqueue(queued(store, 1)[0])
    found: tuple[list[float], list[float]] = await came
    await durable.close()
    return found


# --- a long queue ---------------------------------------------------------------------------------------------


def drain(which: str, path: Path, runs: int) -> list[float]:
    """Seconds after which each of so many runs had ended, in their order, in a process of its own."""
    with closing(open_store(str(path))) as store:
        if which == "ours":
            queued(store, runs)
    command = [PYTHON, "-m", "bench.engine", which, str(path), str(runs)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    ends: list[float] = json.loads(done.stdout)
    return ends


def queued(store: Store, runs: int) -> list[Run]:
    """Runs that collect nothing: what they take is the engine's time."""
    scope = Scope("bench", PERSON)
    mission = Missions(store, Conversations(store)).apply(scope, file.parse_mission(FILE), FILE).mission
    return [
        Runs(store).enqueue(
            scope,
            kind=RunKind.COLLECT,
            conversation_id=mission.conversation_id,
            agent="mission-lead",
            request={},
            mission_id=mission.id,
        )
        for _ in range(runs)
    ]


async def ours(path: str, runs: int) -> list[float]:
    """The worker, as the program has it."""
    house = App(load(environment={"PUNCHLIST_DATABASE_URL": path, "HOME": str(Path(path).parent)}))
    model = Rehearsal(RehearsalScript((RehearsedReply("Done."),), {}))
    begun = house.store.clock()
    await house.worker(lambda _: model, Mode.YOLO, slots=8, report=lambda _: None).run(until_idle=True)
    ended = [run.ended_at for run in house.runs.list(ended=True, limit=runs)]
    house.store.close()
    return sorted((parse_timestamp(at) - begun).total_seconds() for at in ended if at)


async def bare(path: str, runs: int) -> list[float]:
    """The engine alone: as many workflows with as many steps, through its queue."""
    from dbos import DBOS

    ends: list[float] = []
    all_done = asyncio.Event()

    async def nothing() -> int:
        return 1

    async def work(run_id: str) -> str:
        for _ in range(STEPS):
            await DBOS.run_step_async({"name": "nothing"}, nothing)
        ends.append(perf_counter() - begun)
        if len(ends) == runs:
            all_done.set()
        return run_id

    with closing(open_store(path)) as store:
        durable, given = DurableEngine(store, current_process()), queued(store, runs)
        begun = perf_counter()
        await durable.open(work)
        for run in given:
            await durable.enqueue(run)
        await all_done.wait()
        await durable.close()
    return ends


if __name__ == "__main__":
    worked_off = {"ours": ours, "bare": bare}[sys.argv[1]]
    print(json.dumps(asyncio.run(worked_off(sys.argv[2], int(sys.argv[3])))))
