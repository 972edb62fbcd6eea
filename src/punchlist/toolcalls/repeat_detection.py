"""Detects an agent that repeats the same call, or a short cycle of calls (S12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from punchlist.toolcalls.tool import Effect

REPEAT_LIMIT: Final = 5
"""The fifth identical call needs approval, and so does the first call of the fifth identical cycle."""
MAX_CYCLE: Final = 4
"""Calls in a cycle."""

_CHANGES_NOTHING: Final = (Effect.READ, Effect.LIST)


class RepeatDetector:
    """Counts identical calls between which no other call can have changed anything, and finds cycles of calls that can.

    Running the tests again after an edit is work; running them again without one is a loop. So a different
    call that can change something resets the counts, and one that only reads does not. Making the same edits and
    running the same commands in turn is a loop, too, although each changes something: the sequence of the calls that
    can change something is searched for a cycle at its end.
    """

    def __init__(self, history: Iterable[tuple[str, Effect]] = ()) -> None:
        self._counts: dict[str, int] = {}
        self._changes: deque[str] = deque(maxlen=MAX_CYCLE * (REPEAT_LIMIT - 1) + 1)
        """The last calls that can have changed something."""
        for key, effect in history:
            self.problem(key, effect)

    def problem(self, key: str, effect: Effect) -> str | None:
        """Count a call. Returns a description if it looks like a loop."""
        count = self._counts.get(key, 0) + 1
        if effect in _CHANGES_NOTHING:
            self._counts[key] = count
        else:
            self._counts = {key: count}
            self._changes.append(key)
        if count >= REPEAT_LIMIT:
            return f"the same call was made {count} times without a change in between"
        if effect not in _CHANGES_NOTHING and (length := self._cycle_length()):
            return f"the same {length} calls are made in turn for the {REPEAT_LIMIT}th time"
        return None

    def _cycle_length(self) -> int | None:
        changes = list(self._changes)
        for length in range(2, MAX_CYCLE + 1):
            last = changes[-(length * (REPEAT_LIMIT - 1) + 1) :]
            if len(last) == length * (REPEAT_LIMIT - 1) + 1 and last[length:] == last[:-length]:
                return length
        return None

    def reset(self, key: str) -> None:
        """Start again at zero: a person has approved the call."""
        self._counts.pop(key, None)
        self._changes.clear()
