"""The agent's loop: what it adds between a model's reply and the next request, alone and two hundred at once.

Everything is stored on SQLite as ever; the model takes no time and each reply calls a tool that does
nothing, with five tasks on the plan. The others are given the same, and keep it in memory.
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

from bench.agent_house import Instant, turn
from bench.amounts import Amount
from bench.measuring import Bench, Figure, Limits, Skipped, fsync_probe, shown
from bench.peers.environment import peers_python
from bench.peers.iterations import AROUND
from bench.peers.loops import SCRIPTS, looped
from punchlist.agent.prompts import PLANNING
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
EACH: Final = 20
BEGUN: Final = 3
"""Iterations after which all turns have begun: that takes longer than an iteration, and all begin at once."""
THINKING: Final = (0.5, 1.5)
"""Seconds that a model takes for a reply, which is little, when many turns run at once."""
FAIR: Final = Limits(times=1.5)
GROWS: Final = Limits(times=2.0)
"""What is left of an iteration are the id of its call and our own times, 250 bytes; a call that stays takes 4,000."""
HISTORY: Final = (200, 2_000, 20_000)
LIST_TOOLS: Final = ("create_todo", "list_todo", "start_todo", "complete_todo", "TodoWrite")


def measure(bench: Bench) -> Iterator[Figure]:
    quick = bench.sizes.rounds < 1_000
    print(f"agent: fsync of 4 KiB {shown(fsync_probe(bench.folder))}")
    with closing(open_store(str(bench.folder / "agent.db"))) as store:
        yield from Loops(store, bench.folder, "loop").figures(quick)
        yield from at_once(store, bench.folder, TURNS // 10 if quick else TURNS)
        yield from beginning(store, bench.folder, HISTORY[:2] if quick else HISTORY)
        yield from prompt(store, bench.folder)


# --- one turn ---------------------------------------------------------------------------------------------


class Loops:
    """Turns of one agent, one after the other, each in a session of its own."""

    def __init__(self, store: Store, folder: Path, name: str) -> None:
        self._store = store
        self._folder = folder
        self._name = name
        self._turns = 0
        self._run(SHORT)

    def _run(self, iterations: int) -> list[float]:
        self._turns += 1
        return asyncio.run(turn(self._store, f"{self._name}-{self._turns}", self._folder, iterations)).gaps

    def later(self) -> float:
        return near(self._run(SHORT), LATER)

    def figures(self, quick: bool) -> Iterator[Figure]:
        short = [self._run(SHORT) for _ in range(SHORT_ROUNDS // 10 if quick else SHORT_ROUNDS)]
        early, later = [near(gaps, EARLY) for gaps in short], [near(gaps, LATER) for gaps in short]
        yield Figure(f"iteration {LATER}, all of it on SQLite", later, limits=Limits(best=1e-3))
        yield Figure(f"iteration {LATER}, against iteration {EARLY}", later, early, Limits(times=1.1))
        early, late = [], []
        for _ in range(1 if quick else LONG_ROUNDS):
            # The next turn is at its fifth iteration a moment later: its own was long ago by then.
            late.append(near(self._run(LONG), LATE))
            early.append(near(self._run(SHORT), EARLY))
        yield Figure(f"iteration {LATE}, against iteration {EARLY}", late, early, Limits(times=1.2))
        yield from self._against_peers(1 if quick else PEER_ROUNDS)

    def _against_peers(self, rounds: int) -> Iterator[Figure]:
        """Ours before each of theirs, so that every pair is of one moment."""
        try:
            python = peers_python()
        except Skipped as reason:
            print(f"agent: peers skipped, {reason}")
            return
        for script in SCRIPTS:
            ours, theirs = [], []
            for _ in range(rounds):
                ours.append(self._run(LONG))
                theirs.append(looped(script, LONG, (LATER, LATE), python))
            for number in (LATER, LATE):
                raw = [one.at[number] for one in theirs]
                name = f"iteration {number}, against {theirs[0].peer}"
                yield Figure(name, [near(gaps, number) for gaps in ours], raw, Limits(times=1.0))


def near(gaps: Sequence[float], iteration: int) -> float:
    return median(gaps[max(iteration - 1 - AROUND, 0) : iteration + AROUND])


# --- many turns -------------------------------------------------------------------------------------------


def at_once(store: Store, folder: Path, turns: int) -> Iterator[Figure]:
    """Models that think, and models that do not.

    Turns whose models take no time share one core: each is as many times slower as there are turns, and
    all that can be asked for is that none gets less than its share.
    """
    loops = Loops(store, folder, "alone")
    alone = [loops.later() for _ in range(5)]
    chance = random.Random(1)
    thinking = [Instant(thinking=lambda: chance.uniform(*THINKING)) for _ in range(turns)]
    asyncio.run(together(store, folder, "thinking", thinking))
    alone = [median([*alone, *(loops.later() for _ in range(5))])]
    name = f"95% of iterations, {turns} turns, models that take {THINKING[0]} to {THINKING[1]} s"
    yield Figure(name, [most_of(thinking)], alone, Limits(times=50.0))

    busy = [Instant() for _ in range(turns)]
    asyncio.run(together(store, folder, "busy", busy))
    each = [(model.entered[-1] - model.entered[0]) / (EACH - 1) for model in busy]
    yield Figure(f"95% of iterations, {turns} turns, models that take no time", [most_of(busy)], alone)
    yield Figure(f"a share of {turns} in such an iteration", [median(each) / turns], alone, Limits(times=2.0))
    yield Figure("such an iteration in the slowest turn, against the median", [max(each)], [median(each)], FAIR)
    yield Amount("rows lost by all of them", [lost(store, turns)], unit="rows", most=0)


def most_of(models: Sequence[Instant]) -> float:
    gaps = sorted(gap for model in models for gap in model.gaps[BEGUN:])
    return gaps[int(len(gaps) * 0.95)]


async def together(store: Store, folder: Path, name: str, models: Sequence[Instant]) -> None:
    await asyncio.gather(*(turn(store, f"{name}-{n}", folder, EACH, model) for n, model in enumerate(models)))


def lost(store: Store, turns: int) -> int:
    """Rows that are missing, and whatever else the check finds wrong: a broken chain, a row without its event."""
    expected = {"messages WHERE role = 'assistant'": EACH, "messages WHERE role = 'tool'": EACH}
    expected |= {"tool_calls WHERE status = 'success'": EACH, "turn_todos WHERE status = 'pending'": 5}
    missing = 0
    with store.read() as tx:
        for what, each in expected.items():
            sessions = "(conversation_id LIKE 'thinking-%' OR conversation_id LIKE 'busy-%')"
            [(found,)] = tx.raw(f"SELECT count(*) FROM {what} AND {sessions}")
            missing += abs(found - 2 * turns * each)
    problems = check(store, SCHEMA_VERSION).problems
    for problem in problems:
        print(f"agent: {problem}")
    return missing + len(problems)


# --- history and memory -----------------------------------------------------------------------------------


class Weighing(Instant):
    """Sees how much memory is in use at each request, and how much was at most."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[int] = []
        self.most: list[int] = []

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        self.most.append(tracemalloc.get_traced_memory()[1])
        gc.collect()
        self.kept.append(tracemalloc.get_traced_memory()[0])
        return await super().ask(request, on_text)


def beginning(store: Store, folder: Path, sizes: Sequence[int]) -> Iterator[Figure]:
    peaks: list[list[float]] = []
    for size in sizes:
        session = f"after-{size}"
        fill(store, folder, session, size)
        starts = [start(store, folder, session) for _ in range(9)]
        yield Figure(f"first request, after {size:,} messages", starts, limits=Limits(seconds=0.1))
        peaks.append([weighed(store, folder, session, 1).most[0] for _ in range(5)])
    for size, peak in zip(sizes[1:], peaks[1:], strict=True):
        name = f"memory until then, after {size:,} messages against {sizes[0]}"
        yield Amount(name, peak, peaks[0], Limits(times=1.2), unit="bytes")
    # Over several compactions, since the context grows from one to the next.
    kept = weighed(store, folder, "weighed", LONG).kept
    early, late = [max(kept[LATER : 2 * LATER])], [max(kept[LATE:])]
    yield Amount(f"memory of a turn after {LATE} iterations, against {LATER}", late, early, GROWS, unit="bytes")


def fill(store: Store, folder: Path, session: str, messages: int) -> None:
    """By turns that have really been: calls and events are there too."""
    iterations = messages // 2
    while iterations > 0:
        asyncio.run(turn(store, session, folder, min(iterations, LONG)))
        iterations -= LONG


def start(store: Store, folder: Path, session: str) -> float:
    begin = perf_counter()
    return asyncio.run(turn(store, session, folder, 1)).entered[0] - begin


def weighed(store: Store, folder: Path, session: str, iterations: int) -> Weighing:
    gc.collect()
    model = Weighing()
    tracemalloc.start()
    try:
        asyncio.run(turn(store, session, folder, iterations, model))
    finally:
        tracemalloc.stop()
    return model


# --- what the lists cost in a prompt ----------------------------------------------------------------------


def prompt(store: Store, folder: Path) -> Iterator[Figure]:
    model = asyncio.run(turn(store, "prompt", folder, 2, Instant(tasks=10)))
    request = model.last
    assert request is not None
    state = request.messages[-1]
    assert isinstance(state, UserText)
    assert state.text.startswith("<state>")
    yield Amount("a plan of 10 tasks in a request", [tokens(state.text)], unit="tokens", most=600)
    offered = [(tool.name, tool.description, tool.input_schema) for tool in request.tools if tool.name in LIST_TOOLS]
    fixed = [PLANNING, GUIDANCE, json.dumps(offered)]
    yield Amount("the lists' tools and guidance, always there", [sum(map(tokens, fixed))], unit="tokens")


def tokens(text: str) -> int:
    """A little more than there are: for our texts, 5% to 50% above what tiktoken's o200k and cl100k count.

    Their vocabularies have to be downloaded. Four letters or three digits to a token, and one for each
    sign: an id is mostly tokens of one or two characters, of which a count of characters knows nothing.
    """
    pieces = re.findall(r"[A-Za-z]+|[0-9]+|\n|[^A-Za-z0-9\s]", text)
    counted = sum(-(-len(piece) // (3 if piece.isdigit() else 4)) for piece in pieces)
    return max(counted, -(-len(text) // 4))
