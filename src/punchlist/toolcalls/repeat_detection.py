"""Noticing an agent that makes the same call over and over (S12)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from punchlist.toolcalls.tool import Effect

REPEAT_LIMIT: Final = 5
"""The fifth identical call is asked about."""


_CHANGES_NOTHING: Final = (Effect.READ, Effect.LIST)


class RepeatDetector:
    """Counts identical calls as long as nothing else changed the world in between.

    Running the tests again after an edit is work; running them again after nothing is a loop. So
    a different call that may change something starts the count anew, and one that reads does not.
    """

    def __init__(self, history: Iterable[tuple[str, Effect]] = ()) -> None:
        self._counts: dict[str, int] = {}
        for key, effect in history:
            self.count(key, effect)

    def count(self, key: str, effect: Effect) -> int:
        """How often this call has now been made."""
        count = self._counts.get(key, 0) + 1
        if effect not in _CHANGES_NOTHING:
            self._counts = {key: count}
        else:
            self._counts[key] = count
        return count

    def reset(self, key: str) -> None:
        """Somebody knows of it: count from the beginning."""
        self._counts.pop(key, None)
