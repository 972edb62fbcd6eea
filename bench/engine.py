"""The durable engine on SQLite: the cost of our steps against bare DBOS steps, and the throughput of a long queue.

`python -m bench.engine ours|bare DATABASE RUNS` is one worker process that drains such a queue.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from bench.figures import Bench, Figure, Limits
from bench.processes import PYTHON
from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.engine.durable import DurableEngine
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import current_process
from punchlist.missions.config import file
from punchlist.missions.service import Missions
from punchlist.models.rehearsal import Rehearsal, RehearsalScript, RehearsedReply
from punchlist.runs.model import Run, RunKind
from punchlist.runs.service import Runs
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.toolcalls.policy import Mode
from punchlist.trust import Trust

PERSON: Final = Actor(Role.PERSON, "bench")
FILE: Final = json.dumps({"name": "Bench", "slug": "bench", "pillars": [{"name": "Speed", "slug": "speed"}]})
RUNS: Final = 500
PART: Final = 100
"""The first and the last runs of a queue that are compared."""
STEPS: Final = 2
"""Steps of a run that does almost nothing."""

Step = Callable[[], Awaitable[Any]]


def measure(bench: Bench) -> Iterator[Figure]:
    rounds = bench.sizes.rounds
    with closing(open_store(str(bench.folder / "steps.db"))) as store:
        ours, bare = asyncio.run(steps(store, rounds))
    yield Figure("a durable step", ours, bare, Limits(times=2.0))
    runs, times = (100, 1) if rounds < 1_000 else (RUNS, 3)
    drained: dict[str, list[list[float]]] = {"ours": [], "bare": []}
    for number in range(times):
        for which, ends in drained.items():
            ends.append(drain(which, bench.folder / f"{which}-{number}.db", runs))
    each = {which: [ends[-1] / runs for ends in rounds_ends] for which, rounds_ends in drained.items()}
    yield Figure(f"a run of {runs} in a queue, against a bare workflow", each["ours"], each["bare"])
    if runs > 2 * PART:
        last = [(ends[-1] - ends[-PART - 1]) / PART for ends in drained["ours"]]
        first = [(ends[PART] - ends[0]) / PART for ends in drained["ours"]]
        yield Figure(f"the last {PART} of {runs} against the first", last, first, Limits(times=2.0))
        yield Figure("the longest time in which no run ended", [longest_wait(ends) for ends in drained["ours"]])


def longest_wait(ends: list[float]) -> float:
    return max(after - before for before, after in pairwise(ends))


# --- one step -------------------------------------------------------------------------------------------------


async def steps(store: Store, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds per step, ours and bare DBOS steps, alternating in one run."""
    from dbos import DBOS

    durable, measured = (
        DurableEngine(store, current_process(), Trust.of_user(os.environ)),
        asyncio.get_running_loop().create_future(),
    )

    async def nothing() -> int:
        return 1

    async def bare() -> int:
        return await DBOS.run_step_async({"name": "bare"}, nothing)

    async def ours() -> int:
        return await durable.step("ours", nothing)

    async def work(_run_id: str) -> str:
        times: dict[Step, list[float]] = {ours: [], bare: []}
        for number in range(rounds):
            for step in (ours, bare) if number % 2 else (bare, ours):
                begin = perf_counter()
                await step()
                times[step].append(perf_counter() - begin)
        measured.set_result((times[ours], times[bare]))
        return "done"

    await durable.open(work)
    await durable.enqueue(enqueue_runs(store, 1)[0])
    found: tuple[list[float], list[float]] = await measured
    await durable.close()
    return found


# --- a long queue ---------------------------------------------------------------------------------------------


def drain(which: str, path: Path, runs: int) -> list[float]:
    """Seconds until each run ended, in order, measured in a separate process."""
    with closing(open_store(str(path))) as store:
        if which == "ours":
            enqueue_runs(store, runs)
    command = [PYTHON, "-m", "bench.engine", which, str(path), str(runs)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    ends: list[float] = json.loads(done.stdout)
    return ends


def enqueue_runs(store: Store, runs: int) -> list[Run]:
    """Runs without metrics to collect, so that their time is the engine's time."""
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
    """Our worker."""
    app = Services(load(environment={"PUNCHLIST_DATABASE_URL": path, "HOME": str(Path(path).parent)}))
    model = Rehearsal(RehearsalScript((RehearsedReply("Done."),), {}))
    started = app.store.clock()
    await app.worker(lambda _: model, Mode.YOLO, slots=8, report=lambda _: None).run(until_idle=True)
    ended = [run.ended_at for run in app.runs.list(ended=True, limit=runs)]
    app.store.close()
    return sorted((parse_timestamp(at) - started).total_seconds() for at in ended if at)


async def bare(path: str, runs: int) -> list[float]:
    """DBOS alone: the same number of workflows and steps, through its queue."""
    from dbos import DBOS

    ends: list[float] = []
    all_done = asyncio.Event()

    async def nothing() -> int:
        return 1

    async def work(run_id: str) -> str:
        for _ in range(STEPS):
            await DBOS.run_step_async({"name": "nothing"}, nothing)
        ends.append(perf_counter() - started)
        if len(ends) == runs:
            all_done.set()
        return run_id

    with closing(open_store(path)) as store:
        durable, queue = DurableEngine(store, current_process(), Trust.of_user(os.environ)), enqueue_runs(store, runs)
        started = perf_counter()
        await durable.open(work)
        for run in queue:
            await durable.enqueue(run)
        await all_done.wait()
        await durable.close()
    return ends


if __name__ == "__main__":
    drain_queue = {"ours": ours, "bare": bare}[sys.argv[1]]
    print(json.dumps(asyncio.run(drain_queue(sys.argv[2], int(sys.argv[3])))))
