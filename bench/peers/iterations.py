"""Iterations of one peer's loop, for its script: how many and at which to look, from the command line; JSON out.

Standard library only: it is imported in the peers' own environment.
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
"""Iterations to each side of the one that is looked at."""
TASKS: Final = [f"Look into part {number} of the request and write down what is there" for number in range(1, 6)]
"""What a peer that keeps a list has on it throughout."""


class Times:
    """When a model was asked, and when it had replied: between the two times the loop works."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations
        self._asked: list[float] = []
        self._replied: list[float] = []

    def ask(self) -> int:
        """Called first by the model, each time it is asked: the number of this iteration, from 1."""
        self._asked.append(perf_counter())
        return len(self._asked)

    def reply(self, answer: Any) -> Any:
        """Called last."""
        self._replied.append(perf_counter())
        return answer

    def near(self, iteration: int) -> list[float]:
        """Seconds of the loop's own work at this iteration and at those around it."""
        gaps = [asked - replied for replied, asked in zip(self._replied, self._asked[1:], strict=False)]
        return gaps[max(iteration - 1 - AROUND, 0) : iteration + AROUND]


Run = Callable[[Times], Awaitable[int]]
"""Runs an agent to its end, with one call for each of the model's replies but the last; the number of results."""


def main(peer: str, version: str, run: Run) -> None:
    iterations, *looked_at = map(int, sys.argv[1:])
    times = asyncio.run(_measured(run, iterations))
    near = {str(number): times.near(number) for number in looked_at}
    print(json.dumps({"peer": peer, "version": version, "near": near}))


async def _measured(run: Run, iterations: int) -> Times:
    for count in (WARM_UP, iterations):
        times = Times(count)
        results = await run(times)
        # A peer tells a failed call to its model and goes on: without this, failures would be timed.
        if results != count:
            raise RuntimeError(f"{results} of {count} calls came back as they should.")
    return times
