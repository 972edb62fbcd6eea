"""Detects an agent that repeats the same call (S12)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from punchlist.toolcalls.tool import Effect

REPEAT_LIMIT: Final = 5
"""The fifth identical call needs approval."""


_CHANGES_NOTHING: Final = (Effect.READ, Effect.LIST)


class RepeatDetector:
    """Counts identical calls between which no other call can have changed anything.

    Running the tests again after an edit is work; running them again without one is a loop. So a different
    call that can change something resets the counts, and one that only reads does not.
    """

    def __init__(self, history: Iterable[tuple[str, Effect]] = ()) -> None:
        self._counts: dict[str, int] = {}
        for key, effect in history:
            self.count(key, effect)

    def count(self, key: str, effect: Effect) -> int:
        """Count a call; returns how often it has been made."""
        count = self._counts.get(key, 0) + 1
        if effect not in _CHANGES_NOTHING:
            self._counts = {key: count}
        else:
            self._counts[key] = count
        return count

    def reset(self, key: str) -> None:
        """Start again at zero: a person has approved the call."""
        self._counts.pop(key, None)
