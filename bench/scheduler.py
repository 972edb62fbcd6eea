"""Tool calls: the overhead of the scheduler against `asyncio.gather` and against peers; cancelling many commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from bench.figures import Bench, Figure, Limits, Skipped
from bench.peers import measure_peers
from bench.peers.environment import peers_python
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store
from punchlist.storage.store import Store
from punchlist.toolcalls.batch_writer import BatchWriter
from punchlist.toolcalls.listeners import Listeners
from punchlist.toolcalls.model import ToolCallRequest
from punchlist.toolcalls.policy import Mode, Policy
from punchlist.toolcalls.scheduler import CoreToolScheduler
from punchlist.toolcalls.service import ToolCallService
from punchlist.tools.function_tool import tool
from punchlist.tools.tool_session import native_tools
from punchlist.tools.workspace import Workspace

CALLS: Final = 10_000
STORED: Final = 1_000
COMMANDS: Final = 100
ROUNDS: Final = 9
PEER_ROUNDS: Final = 3
SCOPE: Final = Scope("bench", Actor(Role.SUPERVISOR, "bench"))


@tool
async def nothing(n: int) -> int:
    """Return the argument."""
    return n


def measure(bench: Bench) -> Iterator[Figure]:
    few = bench.sizes.rounds < 1_000
    calls, rounds = (CALLS // 10, 3) if few else (CALLS, ROUNDS)
    ours: list[float] = []
    small: list[float] = []
    gathered: list[float] = []
    for _ in range(rounds):
        gathered.append(asyncio.run(gather(calls)) / calls)
        ours.append(asyncio.run(scheduled(calls)) / calls)
        small.append(asyncio.run(scheduled(calls // 10)) / (calls // 10))
    yield Figure(f"a call of {calls:,}, above asyncio.gather", ours, gathered, Limits(above=40e-6))
    yield Figure(f"a call of {calls:,}, against one of {calls // 10:,}", ours, small, Limits(times=1.5))
    yield from against_peers(calls, ours)
    with closing(open_store(str(bench.folder / "calls.db"))) as store:
        times = [asyncio.run(stored(STORED, store)) for _ in range(rounds)]
    yield Figure(f"{STORED:,} calls in one batch, on SQLite", times, limits=Limits(seconds=1.0))
    ends = [asyncio.run(cancelled(COMMANDS, bench.folder)) for _ in range(3)]
    yield Figure(f"ending {COMMANDS} commands and their children", ends, limits=Limits(seconds=1.0))


def against_peers(calls: int, ours: list[float]) -> Iterator[Figure]:
    try:
        python = peers_python()
    except Skipped as reason:
        print(f"scheduler: peers skipped, {reason}")
        return
    for peer in measure_peers(calls, PEER_ROUNDS, python):
        if peer.name != "asyncio.gather":
            each = [seconds / peer.calls for seconds in peer.seconds]
            name = f"a call of {peer.calls:,}, against {peer.name} {peer.version}"
            yield Figure(name, [median(ours)] * len(each), each, Limits(times=1.0))


async def gather(calls: int) -> float:
    begin = perf_counter()
    await asyncio.gather(*(nothing.function(n) for n in range(calls)))
    return perf_counter() - begin


async def scheduled(calls: int) -> float:
    """Runs calls through validation, policy, execution and listeners, without storage."""
    updates = 0

    def count_update(_: object) -> None:
        nonlocal updates
        updates += 1

    listeners = Listeners(
        on_tool_calls_update=count_update, on_transition=count_update, on_all_tool_calls_complete=count_update
    )
    scheduler = CoreToolScheduler([nothing], Policy(Mode.YOLO), listeners=listeners)
    requests = [ToolCallRequest("nothing", {"n": n}) for n in range(calls)]
    begin = perf_counter()
    done = await scheduler.schedule(requests)
    taken = perf_counter() - begin
    assert len(done) == calls
    assert updates == calls * 4 * 2 + 1
    return taken


async def stored(calls: int, store: Store) -> float:
    journal = BatchWriter(ToolCallService(store, SCOPE, "/"), store)
    scheduler = CoreToolScheduler([nothing], Policy(Mode.YOLO), journal=journal)
    requests = [ToolCallRequest("nothing", {"n": n}) for n in range(calls)]
    begin = perf_counter()
    await scheduler.schedule(requests)
    taken = perf_counter() - begin
    await scheduler.close()
    journal.close()
    return taken


async def cancelled(commands: int, folder: Path) -> float:
    """Seconds from the cancellation until no process of the commands runs; each command has two children."""
    tools = native_tools(Workspace(folder))
    started = asyncio.Event()
    lines = 0

    def count_lines(_: str, text: str) -> None:
        nonlocal lines
        lines += text.count("\n")
        if lines == commands:
            started.set()

    scheduler = CoreToolScheduler(
        tools, Policy(Mode.YOLO), listeners=Listeners(on_output=count_lines), concurrent=commands
    )
    line = "sleep 600 & setsid sleep 600 & echo started; sleep 600"
    batch = scheduler.schedule([ToolCallRequest("run_command", {"command": f"{line} # {n}"}) for n in range(commands)])
    await asyncio.wait_for(started.wait(), 60)
    begin = perf_counter()
    batch.cancel()
    await batch
    while any_running():
        await asyncio.sleep(0.005)
    return perf_counter() - begin


def any_running() -> bool:
    """Whether a process of the commands is running."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if Path(f"/proc/{entry}/cmdline").read_bytes() == b"sleep\x00600\x00":
                    return True
            except OSError:
                continue
    return False
