"""Token buckets: how many requests one client may send."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_MAX_CLIENTS: Final = 2_000


class RateLimit:
    """`rate` requests per second on average, `burst` at once, for each client."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        """What is left of each client's bucket, and when that was."""

    def allows(self, client: str) -> bool:
        """Use one request of the client's bucket if there is one."""
        now = self._clock()
        left = self._left_at(client, now)
        self._left.pop(client, None)
        if len(self._left) >= _MAX_CLIENTS:
            # The client that has been silent for the longest time: its bucket is full again or nearly so.
            self._left.pop(next(iter(self._left)))
        self._left[client] = (left - 1 if left >= 1 else left, now)
        return left >= 1

    def has_left(self, client: str) -> bool:
        return self._left_at(client, self._clock()) >= 1

    def _left_at(self, client: str, now: float) -> float:
        left, at = self._left.get(client, (self._burst, now))
        return min(self._burst, left + (now - at) * self._rate)
