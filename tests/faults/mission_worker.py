"""Workers that are killed: processes that open the store and work on runs as the program does, on a rehearsal.

One process has everything imported and makes the others by `fork`, so that a test can afford many deaths. It reads
tasks as JSON, one a line; for each it starts a worker and prints its process id. A worker says what it does in the
file `worker.log` of its folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.faults.processes import PATIENCE, ROOT, module

from punchlist.agent.definitions import AgentDefinition
from punchlist.agent.model_resolver import ModelResolver
from punchlist.app import Services
from punchlist.config import load
from punchlist.engine import liveness
from punchlist.engine.periodic import enqueue_cycle
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config import file
from punchlist.missions.model import MissionScope
from punchlist.models.model import Model
from punchlist.runs import workers
from punchlist.toolcalls.policy import Mode

SLUG: Final = "developer-experience"
CYCLE: Final = "the-cycle"
READINGS: Final = (
    *(("local-build-time", 55.0), ("local-build-time", 63.0)),
    *(("cache-hit-rate", 82.0), ("cache-hit-rate", 81.0), ("cache-hit-rate", 82.0)),
)
PERSON: Final = Actor(Role.PERSON, "ada")


@dataclass(frozen=True)
class Task:
    folder: str
    """A project: `rehearsal.yaml` is what its agents say, `mission.json` what is applied first."""
    database: str
    home: str
    begins: bool = False
    """It applies the mission, records readings and begins the cycle before it works, as far as nobody did."""
    until_idle: bool = True
    mode: str = "yolo"
    slots: int = 8
    lease: float | None = None
    """Seconds after which it takes over the runs of a worker that does nothing."""
    simulated: bool = False
    """Its clock is moved and its model is scripted: see `long_mission.py`."""

    @property
    def log(self) -> Path:
        return Path(self.folder) / "worker.log"

    def house(self) -> Services:
        """The one of this folder, whoever opens it."""
        environment = {"PUNCHLIST_DATABASE_URL": self.database, "HOME": self.home}
        return Services(load(environment=environment, cwd=Path(self.folder)))


def begin(house: Services, *, cycles: bool = True) -> None:
    """What a person does first; each step is there once, however often this is done."""
    text = file.read(house.workspace / "mission.json")
    mission = house.missions.apply(MissionScope("cli", PERSON), file.parse_mission(text), text).mission
    scope = MissionScope(mission.conversation_id, PERSON)
    for slug in dict.fromkeys(slug for slug, _ in READINGS):
        values = [value for one, value in READINGS if one == slug]
        (view,) = house.metrics.views(SLUG, slug, limit=100)
        by_hand = [reading for reading in view.readings if reading.source == "manual"]
        for value in values[len(by_hand) :]:
            house.metrics.record(scope, SLUG, slug, value)
    if cycles:
        enqueue_cycle(house.store, scope, mission, CYCLE)


async def work(task: Task) -> None:
    house = task.house()
    casting: Callable[[AgentDefinition], Model]
    if task.simulated:
        from tests.faults.long_mission import count_passes, simulate

        casting = simulate(house, Path(task.folder))
    else:
        if task.begins:
            begin(house)
        casting = ModelResolver(f"rehearsal:{task.folder}/rehearsal.yaml", os.environ)

    def tell(line: str) -> None:
        print(f"{os.getpid()}: {line}", flush=True)

    if task.lease is not None:
        liveness.LEASE_SECONDS = task.lease  # type: ignore[misc]
        workers.RENEWAL = timedelta(seconds=task.lease / 4)  # type: ignore[misc]
    ours = house.worker(casting, Mode(task.mode), slots=task.slots, report=tell)
    if task.simulated:
        count_passes(ours, Path(task.folder))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ours.stop)
    await ours.run(until_idle=task.until_idle)
    house.store.close()


# --- the process that makes them ----------------------------------------------------------------------------


def live(task: Task) -> None:
    """A worker from its first moment; the process ends with it."""
    code = 1
    try:
        os.environ["HOME"] = task.home
        os.environ.pop("XDG_DATA_HOME", None)
        os.chdir(task.folder)
        log = os.open(task.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        asyncio.run(work(task))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    # Imported by whoever works first: here it is done once for all.
    import dbos._serialization
    import filelock
    import psycopg
    import yaml

    import punchlist.engine.worker

    del dbos, filelock, psycopg, yaml, punchlist.engine.worker
    for line in sys.stdin:
        match json.loads(line):
            case int() as pid:
                found, status = os.waitpid(pid, os.WNOHANG)
                answer = os.waitstatus_to_exitcode(status) if found else None
            case wanted:
                answer = os.fork()
                if answer == 0:
                    live(Task(**wanted))
        print(json.dumps(answer), flush=True)


# --- and its side of the tests ------------------------------------------------------------------------------


def until(condition: Callable[[], object], what: str | Callable[[], str], patience: float = PATIENCE) -> float:
    """Wait until `condition` holds; how many seconds that took. As `eventually`, but it leaves others the processor."""
    begun, tick = time.monotonic(), threading.Event()
    while not condition():
        if time.monotonic() - begun > patience:
            raise AssertionError(f"{what if isinstance(what, str) else what()}: not within {patience:.0f} seconds")
        tick.wait(0.005)
    return time.monotonic() - begun


class Nursery:
    """Where workers are born."""

    def __init__(self, *prefix: str) -> None:
        """`prefix` is a command that starts another one, for example on a simulated host."""
        self._process = subprocess.Popen(
            [*prefix, *module("tests.faults.mission_worker")],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ended: dict[int, int] = {}
        self._born: list[Life] = []

    def start(self, task: Task) -> Life:
        self._born.append(Life(self._asked(asdict(task)), task, self))
        return self._born[-1]

    def ended(self, pid: int) -> int | None:
        if pid not in self._ended and (code := self._asked(pid)) is not None:
            self._ended[pid] = code
        return self._ended.get(pid)

    def _asked(self, what: object) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps(what)}\n")
        self._process.stdin.flush()
        answer: int = json.loads(self._process.stdout.readline())
        return answer

    def clear(self) -> None:
        """Nobody outlives the test that wanted them."""
        for life in self._born:
            if life.code is None:
                life.kill(signal.SIGCONT)
                life.end()
        self._born.clear()

    def close(self) -> None:
        self.clear()
        self._process.communicate(timeout=PATIENCE)


class Life:
    """One worker's."""

    def __init__(self, pid: int, task: Task, nursery: Nursery) -> None:
        self.pid = pid
        self.task = task
        self._nursery = nursery

    @property
    def code(self) -> int | None:
        """How it ended; None while it lives."""
        return self._nursery.ended(self.pid)

    def kill(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self, number: int = signal.SIGKILL) -> int:
        """Make it end, and see it gone."""
        if self.code is None:
            self.kill(number)
        return self.wait()

    def wait(self, patience: float = PATIENCE) -> int:
        """Until it has ended; how."""
        until(lambda: self.code is not None, lambda: f"worker {self.pid} ends\n{self.said}", patience)
        code = self.code
        assert code is not None
        return code

    @property
    def said(self) -> str:
        return self.task.log.read_text()[-5_000:] if self.task.log.exists() else ""


if __name__ == "__main__":
    main()
