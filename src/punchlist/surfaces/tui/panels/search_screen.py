"""`/search` and `/resume`: sessions by their last activity; with words, every text and item that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from punchlist.kernel.text import visible
from punchlist.surfaces.figures import age_of, format_age
from punchlist.surfaces.tui.display_text import assemble, cut, justified, line
from punchlist.surfaces.tui.entries import Entry
from punchlist.surfaces.tui.entry_lines import summary_line
from punchlist.surfaces.tui.home_rows import ended_state
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.panels.panel_screen import PanelScreen
from punchlist.surfaces.tui.theme import SIGNS, STYLES
from punchlist.views.conversations import ConversationLine, read_conversations
from punchlist.views.search import SearchHit

MAX_SESSIONS: Final = 100
PREVIEW: Final = 8
_SIGNS: Final = {"working": "in_progress", "waiting": "waiting", "interrupted": "failed", "ended": "completed"}
_KINDS: Final = {
    "request": "request",
    "message": "message",
    "plan_todo": "plan",
    "checklist_item": "checklist",
    "mission_todo": "mission",
}
NOTHING: Final = "Nothing has these words. Every word must occur, at least as the beginning of a word."
NO_SESSIONS: Final = "No sessions yet. n on Home begins one."


@dataclass(frozen=True, slots=True)
class FoundRow:
    session: str
    at: str
    text: Content
    details: str
    position: int | None = None
    """Of the message that was found."""


Found = tuple[str, Sequence[FoundRow]]
"""Words, and the rows that have them."""


class SearchScreen(PanelScreen[Found]):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.SEARCH)]
    DEFAULT_CSS = """
    SearchScreen { align: center middle; }
    SearchScreen > Vertical {
        width: 120; max-width: 98%; height: 90%; background: $surface; border: round $border; padding: 0 1;
    }
    SearchScreen Input { height: 1; padding: 0; border: none; background: $panel; margin: 0 0 1 0; }
    SearchScreen OptionList, SearchScreen OptionList:focus { border: none; }
    SearchScreen OptionList { height: 1fr; padding: 0; background: $surface; scrollbar-size-vertical: 1; }
    SearchScreen #preview { height: 10; border-top: solid $rule; color: $quiet; }
    """

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self._words = words
        self._found: str | None = None
        """The words of the rows that are shown."""
        self._opens = False

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Sessions and search"
            yield Input(self._words, "Words of a request, a message or an item", compact=True)
            yield OptionList(markup=False)
            yield Static(id="preview", markup=False)
            yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(Input).focus()

    def load(self) -> Found:
        words = self._words
        return words, self._find(words)

    def _find(self, typed: str) -> Sequence[FoundRow]:
        found = read_conversations(self.backend.services.store, limit=MAX_SESSIONS).conversations
        sessions = [_session_row(each) for each in found if each.turn is not None or each.items.total]
        words = typed.lower().split()
        if not words:
            return sessions
        named = [row for row in sessions if all(word in row.session.lower() for word in words)]
        return [*named, *map(_hit_row, self.backend.search(typed).hits)]

    def show(self, data: Found) -> None:
        self._found, rows = data
        options, now = self.query_one(OptionList), self.backend.now()
        place, width = options.highlighted or 0, max(options.scrollable_content_region.width - 1, 20)
        if rows:
            options.set_options([Option(_row_line(row, format_age(age_of(row.at, now)), width)) for row in rows])
            options.highlighted = min(place, len(rows) - 1)
        else:
            options.set_options([Option(NOTHING if self._words.strip() else NO_SESSIONS, disabled=True)])
            self.query_one("#preview", Static).update("")
        if self._opens and self._found == self._words:
            self._open()

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        if event.value != self._words:
            self._words = event.value
            self.query_one(OptionList).highlighted = None
            self.reload()

    @on(OptionList.OptionHighlighted)
    def _preview(self) -> None:
        if (row := self._chosen) is None:
            return

        def read() -> None:
            before = None if row.position is None else row.position + 1
            entries = self.backend.page(row.session, before=before, limit=PREVIEW * 2).entries[-PREVIEW:]
            self.app.call_from_thread(self._show_preview, row, entries)

        self.run_worker(read, thread=True, group="preview", exclusive=True, exit_on_error=False)

    def _show_preview(self, row: FoundRow, entries: Sequence[Entry]) -> None:
        if row is self._chosen and self.is_mounted:
            preview = self.query_one("#preview", Static)
            lines = [summary_line(entry, max(preview.size.width, 20)) for entry in entries]
            preview.update(Content("\n").join(lines))

    @property
    def _chosen(self) -> FoundRow | None:
        place = self.query_one(OptionList).highlighted
        rows = self.data[1] if self.data is not None else ()
        return rows[place] if place is not None and place < len(rows) else None

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    @on(Input.Submitted)
    def _open_first(self, event: Input.Submitted) -> None:
        """Open the chosen row, as soon as what was typed is found."""
        event.stop()
        self._opens = True
        if self._found == self._words:
            self._open()

    @on(OptionList.OptionSelected)
    def _open_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._open()

    def _open(self) -> None:
        self._opens = False
        if (row := self._chosen) is not None:
            self.app.open_conversation(row.session, at=row.position)


def _session_row(found: ConversationLine) -> FoundRow:
    state = _state(found)
    text = assemble((f"{SIGNS[state]} ", STYLES[state]), line(found.title or found.id, 300))
    done = f"{found.items.done}/{found.items.total}" if found.items.total else ""
    ended = found.turn.end_reason if found.turn is not None and found.state == "ended" else found.state
    ended = "needs your approval" if found.approvals else ended
    return FoundRow(found.id, found.active_at, text, " · ".join(filter(None, (ended, done, found.id))))


def _state(found: ConversationLine) -> str:
    """The sign of a session, as on Home."""
    if found.approvals:
        return "needs_you"
    if found.state != "ended" or found.turn is None:
        return _SIGNS.get(found.state, "pending")
    state = ended_state(found.turn.end_reason or "")
    return "waiting" if state == "completed" and found.items.open else state


def _hit_row(hit: SearchHit) -> FoundRow:
    text = Content("").join([Content.styled(f"{_KINDS.get(hit.kind, hit.kind):<10}", "$quiet"), *_excerpt(hit)])
    return FoundRow(hit.conversation_id, hit.at, text, hit.conversation_id, hit.position)


def _excerpt(hit: SearchHit) -> Iterator[Content]:
    if hit.title:
        yield from _marked(hit.title, hit.title_matches)
        yield Content.styled(" · ", "$quiet")
    yield from _marked(hit.excerpt, hit.matches)


def _marked(text: str, matches: Sequence[tuple[int, int]]) -> Iterator[Content]:
    """A text with its matches marked. Escapes would move them, so each part is made safe by itself."""
    end = 0
    for first, last in matches:
        yield Content(visible(text[end:first]))
        yield Content.styled(visible(text[first:last]), "bold $needs-you")
        end = last
    yield Content(visible(text[end:]))


def _row_line(row: FoundRow, age: str, width: int) -> Content:
    head = Content("").join([Content.styled(f"{age:<7}", "$quiet"), row.text])
    return justified(head, cut(Content.styled(line(row.details), "$quiet"), max(width // 3, 12)), width)
