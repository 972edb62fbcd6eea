"""The agent loop: time between a model's reply and the next request, for one turn and for 200 concurrent turns.

Everything is stored on SQLite. The model replies at once, each reply calls a no-op tool, and the plan has five tasks.
Peers get the same script and store nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import re
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from bench.amounts import Amount
from bench.figures import Bench, Figure, Limits, Skipped, format_seconds, fsync_probe
from bench.instant_agent import InstantModel, turn
from bench.peers.environment import peers_python
from bench.peers.iterations import AROUND
from bench.peers.loops import SCRIPTS, run_loop
from punchlist.agent.prompts import planning
from punchlist.audit.check import check
from punchlist.checklist.render import GUIDANCE
from punchlist.models.model import ModelRequest, Reply, TextListener, UserText
from punchlist.storage.open import open_store
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store

EARLY, LATER, LATE = 5, 50, 500
SHORT: Final = LATER + 2 * AROUND
LONG: Final = LATE + 2 * AROUND
LONG_ROUNDS: Final = 9
SHORT_ROUNDS: Final = 40
PEER_ROUNDS: Final = 3
TURNS: Final = 200
ITERATIONS: Final = 20
START_ITERATIONS: Final = 3
"""The first iterations of concurrent turns are not measured: all turns start at once, which takes longer than an
iteration."""
REPLY_SECONDS: Final = (0.5, 1.5)
"""Range of the time that a model takes for a reply in the benchmark of concurrent turns."""
FAIR: Final = Limits(times=1.5)
GROWTH: Final = Limits(times=2.0)
"""An iteration leaves the id of its call and our measurements, 250 bytes; a call that is not released takes 4,000."""
HISTORY: Final = (200, 2_000, 20_000)
LIST_TOOLS: Final = ("create_todo", "list_todo", "start_todo", "complete_todo", "TodoWrite")


def measure(bench: Bench) -> Iterator[Figure]:
    quick = bench.sizes.rounds < 1_000
    print(f"agent: fsync of 4 KiB {format_seconds(fsync_probe(bench.folder))}")
    with closing(open_store(str(bench.folder / "agent.db"))) as store:
        yield from Loops(store, bench.folder, "loop").figures(quick)
        yield from at_once(store, bench.folder, TURNS // 10 if quick else TURNS)
        yield from first_request(store, bench.folder, HISTORY[:2] if quick else HISTORY)
        yield from prompt(store, bench.folder)


# --- one turn ---------------------------------------------------------------------------------------------


class Loops:
    """Consecutive turns of one agent, each in its own session."""

    def __init__(self, store: Store, folder: Path, name: str) -> None:
        self._store = store
        self._folder = folder
        self._name = name
        self._turns = 0
        self._run(SHORT)

    def _run(self, iterations: int) -> list[float]:
        self._turns += 1
        return asyncio.run(turn(self._store, f"{self._name}-{self._turns}", self._folder, iterations)).gaps

    def later_iteration(self) -> float:
        return near(self._run(SHORT), LATER)

    def figures(self, quick: bool) -> Iterator[Figure]:
        short = [self._run(SHORT) for _ in range(SHORT_ROUNDS // 10 if quick else SHORT_ROUNDS)]
        early, later = [near(gaps, EARLY) for gaps in short], [near(gaps, LATER) for gaps in short]
        yield Figure(f"iteration {LATER}, all of it on SQLite", later, limits=Limits(best=1e-3))
        yield Figure(f"iteration {LATER}, against iteration {EARLY}", later, early, Limits(times=1.1))
        early, late = [], []
        for _ in range(1 if quick else LONG_ROUNDS):
            # Compare with the fifth iteration of the next turn, a moment later; its own was long before.
            late.append(near(self._run(LONG), LATE))
            early.append(near(self._run(SHORT), EARLY))
        yield Figure(f"iteration {LATE}, against iteration {EARLY}", late, early, Limits(times=1.2))
        yield from self._against_peers(1 if quick else PEER_ROUNDS)

    def _against_peers(self, rounds: int) -> Iterator[Figure]:
        """Our loop runs before each peer, so that both times of a pair come from the same moment."""
        try:
            python = peers_python()
        except Skipped as reason:
            print(f"agent: peers skipped, {reason}")
            return
        for script in SCRIPTS:
            ours, peers = [], []
            for _ in range(rounds):
                ours.append(self._run(LONG))
                peers.append(run_loop(script, LONG, (LATER, LATE), python))
            for number in (LATER, LATE):
                raw = [peer.at[number] for peer in peers]
                name = f"iteration {number}, against {peers[0].peer}"
                yield Figure(name, [near(gaps, number) for gaps in ours], raw, Limits(times=1.0))


def near(gaps: Sequence[float], iteration: int) -> float:
    return median(gaps[max(iteration - 1 - AROUND, 0) : iteration + AROUND])


# --- many turns -------------------------------------------------------------------------------------------


def at_once(store: Store, folder: Path, turns: int) -> Iterator[Figure]:
    """Concurrent turns with slow models and with instant models.

    With instant models all turns share one core, so each is slower by the number of turns; the limit is only that every
    turn gets its share.
    """
    loops = Loops(store, folder, "alone")
    alone = [loops.later_iteration() for _ in range(5)]
    generator = random.Random(1)
    slow = [InstantModel(delay=lambda: generator.uniform(*REPLY_SECONDS)) for _ in range(turns)]
    asyncio.run(run_together(store, folder, "slow", slow))
    alone = [median([*alone, *(loops.later_iteration() for _ in range(5))])]
    name = f"95% of iterations, {turns} turns, models that take {REPLY_SECONDS[0]} to {REPLY_SECONDS[1]} s"
    yield Figure(name, [percentile_95(slow)], alone, Limits(times=50.0))

    busy = [InstantModel() for _ in range(turns)]
    asyncio.run(run_together(store, folder, "busy", busy))
    each = [(model.entered[-1] - model.entered[0]) / (ITERATIONS - 1) for model in busy]
    yield Figure(f"95% of iterations, {turns} turns, models that take no time", [percentile_95(busy)], alone)
    yield Figure(f"a share of {turns} in such an iteration", [median(each) / turns], alone, Limits(times=2.0))
    yield Figure("such an iteration in the slowest turn, against the median", [max(each)], [median(each)], FAIR)
    yield Amount("rows lost by all of them", [count_lost_rows(store, turns)], unit="rows", maximum=0)


def percentile_95(models: Sequence[InstantModel]) -> float:
    gaps = sorted(gap for model in models for gap in model.gaps[START_ITERATIONS:])
    return gaps[int(len(gaps) * 0.95)]


async def run_together(store: Store, folder: Path, name: str, models: Sequence[InstantModel]) -> None:
    await asyncio.gather(*(turn(store, f"{name}-{n}", folder, ITERATIONS, model) for n, model in enumerate(models)))


def count_lost_rows(store: Store, turns: int) -> int:
    """Missing rows, plus problems that `db check` finds: a broken chain, a row without its event."""
    expected = {"messages WHERE role = 'assistant'": ITERATIONS, "messages WHERE role = 'tool'": ITERATIONS}
    expected |= {"tool_calls WHERE status = 'success'": ITERATIONS, "turn_todos WHERE status = 'pending'": 5}
    missing = 0
    with store.read() as tx:
        for table, each in expected.items():
            sessions = "(conversation_id LIKE 'slow-%' OR conversation_id LIKE 'busy-%')"
            [(found,)] = tx.raw(f"SELECT count(*) FROM {table} AND {sessions}")
            missing += abs(found - 2 * turns * each)
    problems = check(store, SCHEMA_VERSION).problems
    for problem in problems:
        print(f"agent: {problem}")
    return missing + len(problems)


# --- history and memory -----------------------------------------------------------------------------------


class MemoryRecorder(InstantModel):
    """Records the memory in use at each request, and the peak so far."""

    def __init__(self) -> None:
        super().__init__()
        self.used: list[int] = []
        self.peaks: list[int] = []

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        self.peaks.append(tracemalloc.get_traced_memory()[1])
        gc.collect()
        self.used.append(tracemalloc.get_traced_memory()[0])
        return await super().ask(request, on_text)


def first_request(store: Store, folder: Path, sizes: Sequence[int]) -> Iterator[Figure]:
    peaks: list[list[float]] = []
    for size in sizes:
        session = f"after-{size}"
        fill(store, folder, session, size)
        starts = [start(store, folder, session) for _ in range(9)]
        yield Figure(f"first request, after {size:,} messages", starts, limits=Limits(seconds=0.1))
        peaks.append([run_with_memory(store, folder, session, 1).peaks[0] for _ in range(5)])
    for size, peak in zip(sizes[1:], peaks[1:], strict=True):
        name = f"memory until the first request, after {size:,} messages against {sizes[0]}"
        yield Amount(name, peak, peaks[0], Limits(times=1.2), unit="bytes")
    # The maximum over several compactions, since the context grows between them.
    used = run_with_memory(store, folder, "memory", LONG).used
    early, late = [max(used[LATER : 2 * LATER])], [max(used[LATE:])]
    yield Amount(f"memory of a turn after {LATE} iterations, against {LATER}", late, early, GROWTH, unit="bytes")


def fill(store: Store, folder: Path, session: str, messages: int) -> None:
    """Adds messages by running real turns, which also adds calls and events."""
    iterations = messages // 2
    while iterations > 0:
        asyncio.run(turn(store, session, folder, min(iterations, LONG)))
        iterations -= LONG


def start(store: Store, folder: Path, session: str) -> float:
    begin = perf_counter()
    return asyncio.run(turn(store, session, folder, 1)).entered[0] - begin


def run_with_memory(store: Store, folder: Path, session: str, iterations: int) -> MemoryRecorder:
    gc.collect()
    model = MemoryRecorder()
    tracemalloc.start()
    try:
        asyncio.run(turn(store, session, folder, iterations, model))
    finally:
        tracemalloc.stop()
    return model


# --- tokens of the lists in a prompt ----------------------------------------------------------------------


def prompt(store: Store, folder: Path) -> Iterator[Figure]:
    model = asyncio.run(turn(store, "prompt", folder, 2, InstantModel(tasks=10)))
    request = model.last
    assert request is not None
    state = request.messages[-1]
    assert isinstance(state, UserText)
    assert state.text.startswith("<state>")
    yield Amount("a plan of 10 tasks in a request", [tokens(state.text)], unit="tokens", maximum=600)
    offered = [(tool.name, tool.description, tool.input_schema) for tool in request.tools if tool.name in LIST_TOOLS]
    fixed = [planning(("delegate", "wait_todo")), GUIDANCE, json.dumps(offered)]
    yield Amount("the lists' tools and guidance, in every request", [sum(map(tokens, fixed))], unit="tokens")


def tokens(text: str) -> int:
    """An upper estimate of the tokens: for our texts, 5% to 50% above the counts of tiktoken's o200k and cl100k.

    Their vocabularies would have to be downloaded. Counts four letters or three digits as a token, and each other
    character as one: an id consists mostly of tokens of one or two characters, which a count of characters misses.
    """
    pieces = re.findall(r"[A-Za-z]+|[0-9]+|\n|[^A-Za-z0-9\s]", text)
    counted = sum(-(-len(piece) // (3 if piece.isdigit() else 4)) for piece in pieces)
    return max(counted, -(-len(text) // 4))
