"""Runs the rounds of one peer: calls and rounds from the command line, JSON on stdout.

Uses only the standard library, since it is imported in the environment of the peers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Final

Round = Callable[[], Awaitable[Iterable[int]]]
"""Makes all calls, each with its own number, and returns their results."""

WARM_UP: Final = 200


def main(peer: str, version: str, prepare: Callable[[int], Round]) -> None:
    """`prepare` sets up a round with this many calls; only the round is timed."""
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
    # Peers report a failed call to their model and continue, so failures would be timed without this check.
    if sorted(returned) != list(range(calls)):
        raise RuntimeError(f"Not all of {calls} calls returned their own number.")
    return taken
