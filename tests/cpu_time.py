"""CPU time in units of a fixed amount of work, so that limits hold on slow and throttled machines too."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

ADDITIONS: Final = 30_000
"""A quiet core takes about a millisecond for them."""


def nominal_milliseconds(work: Callable[[], object], times: int = 50) -> float:
    """The least CPU time of `work`, measured in turns with a loop that counts as a millisecond."""
    # The tracer of a coverage run would be measured too.
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        pairs = [(_taken(work), _taken(_additions)) for _ in range(times)]
    finally:
        sys.settrace(tracer)
    return min(taken for taken, _ in pairs) / min(reference for _, reference in pairs)


def _taken(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def _additions() -> int:
    total = 0
    for number in range(ADDITIONS):
        total += number
    return total
