"""Keeps the history on the screen in step with the database: pages, calls that change, and streamed text.

The view holds a part of the history: `_first` and `_last` are the positions of the messages at its ends. While an
earlier part is shown (`has_later`), new messages are not added; they are loaded when the view reaches its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from punchlist.surfaces.tui.entries import CallEntry, Entry, NoteEntry, ReplyEntry, SaidEntry
from punchlist.surfaces.tui.live_buffer import LiveBuffer, live_id
from punchlist.surfaces.tui.screen_state import EntryPage
from punchlist.surfaces.tui.stored_entries import open_calls, with_results

if TYPE_CHECKING:
    from punchlist.surfaces.tui.backend import Backend
    from punchlist.surfaces.tui.transcript_view import TranscriptView
    from punchlist.views.live_text import LiveText

FIRST_PAGE: Final = 60
PAGE: Final = 100
CONTEXT: Final = 10
"""Messages after the one that was searched for."""
SENT: Final = "sent"
"""The id of the entry of a message that is not stored yet."""


@dataclass(frozen=True, slots=True)
class LoadedEntries:
    page: EntryPage
    calls: Sequence[CallEntry]
    """Calls that had not ended, as they are now."""
    is_first: bool
    streamed: Sequence[LiveText] = ()
    """With the first page: what is not stored yet, so far."""


class HistoryFeed:
    def __init__(self, session: str, view: TranscriptView, at: int | None = None) -> None:
        """`at` is the position of the message to begin with, instead of the newest one."""
        self.session = session
        self._view = view
        self._at = at
        self._first = self._last = 0
        self._has_earlier = False
        self.has_later = False
        self._is_loaded = False
        self._open_calls: list[CallEntry] = []
        self._live = LiveBuffer()
        self._early: list[LiveText] = []
        """Pieces that came before the first page was there."""
        self._streamed: set[int] = set()
        """The numbers of the pieces that came with the first page."""
        self.sent: str | None = None
        """A message of the person whose turn has not begun."""
        view.on_trim = self._trimmed

    # --- stored entries -----------------------------------------------------------------------------------------

    def load(self, backend: Backend) -> LoadedEntries:
        """What is new. Called in a thread."""
        is_first = not self._is_loaded
        if is_first and self._at is not None:
            page = backend.page(self.session, before=self._at + CONTEXT, limit=FIRST_PAGE)
        elif is_first:
            page = backend.page(self.session, limit=FIRST_PAGE)
        elif self.has_later:
            page = EntryPage((), self._first, self._last, self._has_earlier, True)
        else:
            page = backend.page(self.session, after=self._last, limit=PAGE)
        calls = backend.calls([*self._open_calls, *open_calls(page.entries)])
        # After the page: a reply that is stored meanwhile has ended.
        streamed = backend.streamed(self.session) if is_first else ()
        return LoadedEntries(page, with_results(calls, page.results), is_first, streamed)

    def show(self, loaded: LoadedEntries) -> int:
        """Draw what was loaded; returns how many entries are new."""
        page, view, new = loaded.page, self._view, 0
        if loaded.is_first:
            self._is_loaded, self._first, self._has_earlier = True, page.first, page.has_earlier
            self.has_later = self._at is not None and page.has_later
            if any(isinstance(entry, SaidEntry) and entry.text == self.sent for entry in page.entries):
                self.sent = None
            view.replace([*page.entries, *self._sent_entry()])
        elif page.entries:
            self._drop_replaced(page.entries)
            new = view.extend(page.entries)
        view.extend(loaded.calls)
        if loaded.is_first:
            self._begin_live(loaded.streamed)
        self._open_calls = open_calls(loaded.calls)
        self._last = max(self._last, page.last)
        return new

    def fail(self, message: str) -> None:
        """Nothing can be read."""
        if not self._is_loaded:
            self._view.replace([NoteEntry("problem", "problem", f"This conversation cannot be read.\n{message}")])
            self._view.toggle("problem")

    def load_older(self, backend: Backend) -> EntryPage | None:
        """Called in a thread."""
        return backend.page(self.session, before=self._first, limit=PAGE) if self._has_earlier else None

    def show_older(self, page: EntryPage) -> None:
        self._has_earlier = page.has_earlier
        if page.entries:
            self._first = page.first
            self._view.prepend(page.entries)

    def load_newer(self, backend: Backend) -> EntryPage:
        """Called in a thread."""
        return backend.page(self.session, after=self._last, limit=PAGE)

    def show_newer(self, page: EntryPage) -> None:
        self._last, self.has_later = page.last, page.has_later
        self._view.extend(page.entries)

    def _trimmed(self, *, older: bool, position: int) -> None:
        """The view has dropped entries at one end; the message at `position` may have lost some of its entries."""
        if older:
            self._first, self._has_earlier = position + 1, True
        else:
            self._last, self.has_later = position - 1, True

    # --- streamed text ------------------------------------------------------------------------------------------

    def add_live(self, pieces: Iterable[LiveText]) -> bool:
        """Take streamed text; whether there is something to draw."""
        mine = [piece for piece in pieces if piece.conversation_id == self.session and piece.seq not in self._streamed]
        if not self._is_loaded:
            self._early += mine
            return False
        for piece in mine:
            self._live.add(piece)
        return bool(mine)

    def _begin_live(self, streamed: Sequence[LiveText]) -> None:
        """Start with what was streamed so far. What has ended is among the stored entries, or will be."""
        self._streamed = {piece.seq for piece in streamed}
        early, self._early = self._early, []
        for piece in streamed:
            self._live.add(piece)
        self.add_live(early)
        for turn in list(self._live.ended):
            self._live.forget(turn)

    @property
    def has_undrawn(self) -> bool:
        return self._live.has_changed

    def draw_live(self, turn: str | None) -> None:
        """`turn` is the turn of the conversation; others are workers'."""
        view, live = self._view, self._live
        if self.has_later:
            return
        entries: list[Entry] = [*live.take_replies(turn)]
        early = []
        for call_id, output in live.take_outputs().items():
            call = view.entry(call_id)
            if call is None:
                # A call can print before it was read.
                early.append(call_id)
            elif isinstance(call, CallEntry) and not call.has_ended:
                entries.append(replace(call, status="executing", output=output))
        live.taken(but=early)
        if entries:
            view.extend(entries)

    # --- a message that was just sent ---------------------------------------------------------------------------

    def show_sent(self, text: str) -> None:
        self.sent = text
        self._view.extend(self._sent_entry())
        self._view.follow()

    def drop_sent(self) -> None:
        self.sent = None
        self._view.drop(SENT)

    def _sent_entry(self) -> list[Entry]:
        return [SaidEntry(SENT, self.sent)] if self.sent is not None else []

    def _drop_replaced(self, stored: Sequence[Entry]) -> None:
        """Remove streamed text and the sent message if they are among the stored entries."""
        texts = {entry.text for entry in stored if isinstance(entry, ReplyEntry)}
        for turn in self._live.streaming:
            if turn in self._live.ended or self._live.text(turn).strip() in texts:
                self._live.forget(turn)
                self._view.drop(live_id(turn))
        if any(isinstance(entry, SaidEntry) for entry in stored):
            self.drop_sent()
