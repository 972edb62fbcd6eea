"""Which checks have passed before the last change: their results do not count any more (V2).

One counter for a turn and everything below it. It counts calls, not files: what a command changes is unknown.
"""

from __future__ import annotations


class PassedChecks:
    def __init__(self) -> None:
        self._changes = 0
        self._passed: dict[str, int] = {}

    @property
    def any_change(self) -> bool:
        return self._changes > 0

    def changed(self) -> None:
        """A call that can have changed something has ended."""
        self._changes += 1

    def add(self, item_id: str) -> None:
        """The check of the item has its result now."""
        self._passed[item_id] = self._changes

    def is_stale(self, item_id: str) -> bool:
        """A result that is not known here is from before a restart."""
        return self._changes > self._passed.get(item_id, 0)
