"""A signal that somebody wants something to stop: asked for once, seen by all who hold it."""

from __future__ import annotations

from collections.abc import Callable

Callback = Callable[[str], None]


class CancelSignal:
    """Set from the event loop's thread. A signal with a parent is set when the parent is."""

    __slots__ = ("_notices", "reason", "suspends")

    def __init__(self, parent: CancelSignal | None = None) -> None:
        self.reason: str | None = None
        self.suspends = False
        """What stops is to be gone on with later."""
        self._notices: list[Callback] = []
        if parent is not None:
            parent.on_set(lambda reason: self.set(reason, suspends=parent.suspends))

    @property
    def is_set(self) -> bool:
        return self.reason is not None

    def set(self, reason: str = "cancelled", *, suspends: bool = False) -> None:
        if self.reason is None:
            self.reason = reason
            self.suspends = suspends
            notices, self._notices = self._notices, []
            for notice in notices:
                notice(reason)

    def on_set(self, notice: Callback) -> Callable[[], None]:
        """Call `notice` when the signal is set, at once if it is; the answer takes that back."""
        if self.reason is not None:
            notice(self.reason)
            return lambda: None
        self._notices.append(notice)

        def forget() -> None:
            if notice in self._notices:
                self._notices.remove(notice)

        return forget
