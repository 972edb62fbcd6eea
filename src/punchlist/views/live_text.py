"""Live text: what a model is streaming and what running calls print, from any process, beside the event log.

A piece says how many characters of its reply or call came before it, so that a reader notices a piece it missed. When
the reply or the result is stored, an empty piece with `ended` follows; from then on, the stored message has the text.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from punchlist.conversations import live_repository
from punchlist.conversations.live_repository import StoredLiveText
from punchlist.kernel.camel_json import camel_json
from punchlist.storage.store import Store

MAX_PIECES: Final = 1_000
GAP_SECONDS: Final = 2.0
"""A missing number may still become visible for this long (PostgreSQL)."""


@dataclass(frozen=True, slots=True)
class LiveText:
    seq: int
    """Its number; not those of events."""
    conversation_id: str
    turn_id: str
    call_id: str | None
    """None for the text of the model's reply."""
    position: int
    """How many characters came before. More than were received: the beginning was dropped."""
    text: str
    ended: bool
    """The reply or the result of the call is stored now; there is no text."""
    at: str

    def as_json(self) -> dict[str, Any]:
        return camel_json(self)


@dataclass(slots=True)
class LiveTextFeed:
    """The live text of one conversation or of all. Starts with what the open turns have streamed so far."""

    store: Store
    conversation_id: str | None = None
    after: int | None = None
    """Start after this number instead."""
    monotonic: Callable[[], float] = time.monotonic
    _settled: int = field(init=False, default=0)
    """All pieces up to this number were returned, or will never be visible."""
    _seen: dict[int, float] = field(init=False, default_factory=dict)
    """Numbers above `_settled` that were returned, and when."""

    def poll(self) -> list[LiveText]:
        """The new pieces in order."""
        if self.after is None:
            return self._select(self._so_far())
        if not self._settled:
            self._settled = self.after
        with self.store.read() as tx:
            rows = live_repository.texts_after(tx, self._settled, MAX_PIECES)
        new = [row for row in rows if row.seq not in self._seen]
        self._settle(new)
        return self._select(new)

    def _so_far(self) -> list[StoredLiveText]:
        with self.store.read() as tx:
            self._settled = self.after = live_repository.newest_text(tx) or 0
            return live_repository.texts_of_open_turns(tx, self._settled)

    def _settle(self, new: list[StoredLiveText]) -> None:
        """PostgreSQL assigns numbers before transactions commit: a lower number may follow a higher one."""
        if self.store.database.one_writer:
            self._settled = max((row.seq for row in new), default=self._settled)
            return
        now = self.monotonic()
        self._seen |= {row.seq: now for row in new}
        for number in sorted(self._seen):
            if number != self._settled + 1 and now - self._seen[number] < GAP_SECONDS:
                break
            self._settled = number
            del self._seen[number]

    def _select(self, rows: list[StoredLiveText]) -> list[LiveText]:
        wanted = self.conversation_id
        return [live_text(row) for row in rows if wanted is None or row.conversation_id == wanted]


def live_text(row: StoredLiveText) -> LiveText:
    names = row.conversation_id, row.turn_id, row.call_id or None
    return LiveText(row.seq, *names, row.position, row.text, bool(row.ended), row.created_at)
