"""Claims on a plan: whether a long list is felt by those who take the next todo of it, and what many get done."""

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
from bench.measuring import QUICK, Bench, Figure, Limits, Operation, interleave
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
            taking_turns(large, planned(large, MANY)),
            taking_turns(small, planned(small, FEW)),
            rounds=bench.sizes.rounds,
        )
        name = f"claim by one of {CLAIMANTS}, {MANY:,} against {FEW} todos"
        yield Figure(name, ours, raw, Limits(times=1.5))
    todos = 1_000 if bench.sizes is QUICK else MANY
    yield Amount(f"{CLAIMANTS} processes drain {todos:,} todos", [per_second(bench.folder, todos)], unit="a second")


def planned(store: Store, todos: int) -> TurnScope:
    """A turn with so many todos on its plan."""
    turn = TurnScope("bench", ACTOR, Conversations(store).open_turn(Scope("bench", ACTOR)).id)
    plans = Plans(store)
    for first in range(0, todos, MAX_BATCH):
        plans.create(turn, [ITEM] * min(todos - first, MAX_BATCH))
    return turn


def taking_turns(store: Store, turn: TurnScope) -> Operation:
    """All hold a todo. One after the other gives its own back and takes the next that is free."""
    plans = Plans(store)
    held = {f"claimant-{number}": take(plans, turn, f"claimant-{number}") for number in range(CLAIMANTS)}
    line = cycle(held)

    def once() -> None:
        at = next(line)
        plans.release_claim(turn, at, held[at].todo.id, held[at].claim.fence)
        held[at] = take(plans, turn, at)

    return once


def take(plans: Plans, turn: TurnScope, at: str) -> ClaimGranted[TurnTodo]:
    claimed = plans.claim(turn, at)
    assert isinstance(claimed, ClaimGranted)
    return claimed


def per_second(folder: Path, todos: int) -> float:
    """Todos that are claimed and completed in a second when several processes do nothing else."""
    path = str(folder / f"drained-{todos}.db")
    with closing(open_store(path)) as store:
        turn = planned(store, todos)
    command = [sys.executable, "-m", "bench.claims", path, turn.turn_id]
    crowd = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(CLAIMANTS)
    ]
    for process in crowd:
        assert process.stdout is not None
        process.stdout.readline()
    begin = perf_counter()
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in crowd:
        process.communicate()
    return todos / (perf_counter() - begin)


def drain(path: str, turn_id: str, number: str) -> None:
    """What each of them does."""
    turn = TurnScope("bench", ACTOR, turn_id)
    with closing(open_store(path)) as store:
        plans = Plans(store)
        print("ready", flush=True)
        sys.stdin.readline()
        while isinstance(claimed := plans.claim(turn, number), ClaimGranted):
            plans.end(turn, claimed.todo.id, "done", fence=claimed.claim.fence)


if __name__ == "__main__":
    drain(*sys.argv[1:])
