"""Runs the iterations of one peer's loop: their number and the observed ones from the command line, JSON on stdout.

Uses only the standard library, since it is imported in the environment of the peers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final

WARM_UP: Final = 20
AROUND: Final = 3
"""Iterations before and after the observed one that are measured too."""
TASKS: Final = [f"Look into part {number} of the request and write down what is there" for number in range(1, 6)]
"""The list of a peer that has one."""


class Times:
    """The times of requests to the model and of its replies; between a reply and the next request the loop works."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations
        self._asked: list[float] = []
        self._replied: list[float] = []

    def ask(self) -> int:
        """The model calls this at the start of each request. Returns the number of the iteration, from 1."""
        self._asked.append(perf_counter())
        return len(self._asked)

    def reply(self, answer: Any) -> Any:
        """The model calls this last."""
        self._replied.append(perf_counter())
        return answer

    def near(self, iteration: int) -> list[float]:
        """Seconds between reply and next request at this iteration and its neighbours."""
        gaps = [asked - replied for replied, asked in zip(self._replied, self._asked[1:], strict=False)]
        return gaps[max(iteration - 1 - AROUND, 0) : iteration + AROUND]


Run = Callable[[Times], Awaitable[int]]
"""Runs an agent to its end, with one call in each reply except the last, and returns the number of results."""


def main(peer: str, version: str, run: Run) -> None:
    iterations, *observed = map(int, sys.argv[1:])
    times = asyncio.run(_measured(run, iterations))
    near = {str(number): times.near(number) for number in observed}
    print(json.dumps({"peer": peer, "version": version, "near": near}))


async def _measured(run: Run, iterations: int) -> Times:
    for count in (WARM_UP, iterations):
        times = Times(count)
        results = await run(times)
        # Peers report a failed call to their model and continue, so failures would be timed without this check.
        if results != count:
            raise RuntimeError(f"{results} of {count} calls succeeded.")
    return times
