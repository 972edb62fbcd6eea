"""Claims on a plan: the effect of a long list on claiming its next todo, and the throughput of many processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.amounts import Amount
from bench.figures import QUICK, Bench, Figure, Limits, Operation, interleave
from bench.rows import ACTOR, ITEM
from punchlist.claims.model import ClaimGranted
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.plan.model import TurnTodo
from punchlist.plan.service import Plans
from punchlist.plan.validation import MAX_BATCH, MAX_PLAN
from punchlist.storage.open import open_store
from punchlist.storage.store import Store

CLAIMANTS: Final = 16
FEW: Final = 100
MANY: Final = MAX_PLAN


def measure(bench: Bench) -> Iterator[Figure]:
    with (
        closing(open_store(str(bench.folder / "few.db"))) as small,
        closing(open_store(str(bench.folder / "many.db"))) as large,
    ):
        ours, raw = interleave(
            alternate_claims(large, create_plan(large, MANY)),
            alternate_claims(small, create_plan(small, FEW)),
            rounds=bench.sizes.rounds,
        )
        name = f"claim by one of {CLAIMANTS}, {MANY:,} against {FEW} todos"
        yield Figure(name, ours, raw, Limits(times=1.5))
    todos = 1_000 if bench.sizes is QUICK else MANY
    yield Amount(f"{CLAIMANTS} processes drain {todos:,} todos", [per_second(bench.folder, todos)], unit="a second")


def create_plan(store: Store, todos: int) -> TurnScope:
    """A turn whose plan has this many todos."""
    turn = TurnScope("bench", ACTOR, Conversations(store).open_turn(Scope("bench", ACTOR)).id)
    plans = Plans(store)
    for first in range(0, todos, MAX_BATCH):
        plans.create(turn, [ITEM] * min(todos - first, MAX_BATCH))
    return turn


def alternate_claims(store: Store, turn: TurnScope) -> Operation:
    """Every claimant holds a todo. In turn, each releases its todo and claims the next free one."""
    plans = Plans(store)
    held = {f"claimant-{number}": claim_next(plans, turn, f"claimant-{number}") for number in range(CLAIMANTS)}
    order = cycle(held)

    def once() -> None:
        claimant = next(order)
        plans.release_claim(turn, claimant, held[claimant].todo.id, held[claimant].claim.fence)
        held[claimant] = claim_next(plans, turn, claimant)

    return once


def claim_next(plans: Plans, turn: TurnScope, claimant: str) -> ClaimGranted[TurnTodo]:
    claimed = plans.claim(turn, claimant)
    assert isinstance(claimed, ClaimGranted)
    return claimed


def per_second(folder: Path, todos: int) -> float:
    """Todos per second that several processes claim and complete."""
    path = str(folder / f"drained-{todos}.db")
    with closing(open_store(path)) as store:
        turn = create_plan(store, todos)
    command = [sys.executable, "-m", "bench.claims", path, turn.turn_id]
    processes = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(CLAIMANTS)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    begin = perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    return todos / (perf_counter() - begin)


def drain(path: str, turn_id: str, number: str) -> None:
    """Claims and completes todos until none is free."""
    turn = TurnScope("bench", ACTOR, turn_id)
    with closing(open_store(path)) as store:
        plans = Plans(store)
        print("ready", flush=True)
        sys.stdin.readline()
        while isinstance(claimed := plans.claim(turn, number), ClaimGranted):
            plans.end(turn, claimed.todo.id, "done", fence=claimed.claim.fence)


if __name__ == "__main__":
    drain(*sys.argv[1:])
