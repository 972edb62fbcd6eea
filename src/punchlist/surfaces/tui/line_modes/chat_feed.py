"""What is new in a session: finished entries in order, each once; running calls; the text being streamed.

An entry that is not finished, such as a running call, holds back the entries after it, so that what was printed never
has to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from punchlist.surfaces.tui.entries import CallEntry, Entry
from punchlist.surfaces.tui.live_buffer import LiveBuffer
from punchlist.surfaces.tui.stored_entries import CallResult, with_results
from punchlist.views.live_text import LiveTextFeed

if TYPE_CHECKING:
    from punchlist.surfaces.tui.backend import Backend
    from punchlist.surfaces.tui.screen_state import ConversationState

EARLIER: Final = 20
"""Messages of an existing session that are shown at the start."""


@dataclass(frozen=True, slots=True)
class FeedUpdate:
    finished: Sequence[Entry]
    running: Sequence[CallEntry]
    """Calls that have not ended, with their output so far."""
    streaming: str
    state: ConversationState


class ChatFeed:
    def __init__(self, backend: Backend, session: str) -> None:
        self._backend = backend
        self._session = session
        self._last: int | None = None
        self._held: list[Entry] = []
        self._live = LiveBuffer()
        self._texts = LiveTextFeed(backend.services.store, session)

    def poll(self) -> FeedUpdate:
        """Reads the database."""
        for piece in self._texts.poll():
            self._live.add(piece)
        state = self._backend.conversation(self._session)
        new, results = self._new_entries()
        self._held += new
        open_calls = [entry for entry in self._held if isinstance(entry, CallEntry) and not entry.has_ended]
        current = {call.id: call for call in self._backend.calls(open_calls)}
        held = [current.get(entry.id, entry) if isinstance(entry, CallEntry) else entry for entry in self._held]
        self._held = with_results(held, results)
        finished = self._take_finished(is_open=state.is_open)
        for turn_id in tuple(self._live.ended):
            self._live.forget(turn_id)
        streaming = self._live.text(state.turn.id).lstrip() if state.turn is not None and state.is_running else ""
        return FeedUpdate(finished, self._running(), streaming, state)

    def _new_entries(self) -> tuple[list[Entry], dict[str, CallResult]]:
        """New entries, and new results of calls."""
        found: list[Entry] = []
        results: dict[str, CallResult] = {}
        while True:
            before = self._last or 0
            if self._last is None:
                page = self._backend.page(self._session, limit=EARLIER)
            else:
                page = self._backend.page(self._session, after=self._last)
            found += page.entries
            results |= page.results
            self._last = max(page.last, self._last or 0)
            if not page.has_later or page.last <= before:
                return found, results

    def _take_finished(self, *, is_open: bool) -> list[Entry]:
        """Entries up to the first call that has not ended. After the end of a turn no call is waited for."""
        finished: list[Entry] = []
        while self._held:
            first = self._held[0]
            if is_open and isinstance(first, CallEntry) and not first.has_ended:
                break
            finished.append(self._held.pop(0))
        return finished

    def _running(self) -> list[CallEntry]:
        return [entry for entry in self._held if isinstance(entry, CallEntry) and not entry.has_ended]
