"""Rounds of one peer, for its script: calls and rounds from the command line, JSON to standard output.

Standard library only: it is imported in the peers' own environment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Final

Round = Callable[[], Awaitable[Iterable[int]]]
"""Makes all the calls, each with a number of its own, and gives back what they returned."""

WARM_UP: Final = 200


def main(peer: str, version: str, prepare: Callable[[int], Round]) -> None:
    """`prepare` makes what a round of so many calls needs; only the round is timed."""
    calls, rounds = map(int, sys.argv[1:])
    seconds = asyncio.run(_measured(prepare, calls, rounds))
    print(json.dumps({"peer": peer, "version": version, "calls": calls, "seconds": seconds}))


async def _measured(prepare: Callable[[int], Round], calls: int, rounds: int) -> list[float]:
    await _seconds(prepare(WARM_UP), WARM_UP)
    return [await _seconds(prepare(calls), calls) for _ in range(rounds)]


async def _seconds(run: Round, calls: int) -> float:
    begin = perf_counter()
    returned = await run()
    taken = perf_counter() - begin
    # A peer tells a failed call to its model and goes on: without this, failures would be timed.
    if sorted(returned) != list(range(calls)):
        raise RuntimeError(f"Not each of {calls} calls came back with its own number.")
    return taken
