"""`/resume`: find a session by its words, look into it, and open it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from punchlist.conversations.model import ConversationOverview
from punchlist.conversations.repository import overviews
from punchlist.surfaces.tui.display_text import assemble, line
from punchlist.surfaces.tui.entries import Entry, SaidEntry
from punchlist.surfaces.tui.entry_lines import summary_line
from punchlist.surfaces.tui.figures import age_of, format_age
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.panels.panel_screen import PanelScreen

MAX_SESSIONS: Final = 200
PREVIEW: Final = 8


@dataclass(frozen=True, slots=True)
class SessionRow:
    overview: ConversationOverview
    goal: str
    """The newest request."""

    @property
    def session(self) -> str:
        return self.overview.conversation.id

    @property
    def words(self) -> str:
        return f"{self.session} {self.overview.conversation.title} {self.goal}".lower()


class ResumeScreen(PanelScreen[Sequence[SessionRow]]):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.RESUME)]
    DEFAULT_CSS = """
    ResumeScreen { align: center middle; }
    ResumeScreen > Vertical {
        width: 110; max-width: 98%; height: 90%; background: $surface; border: round $border; padding: 0 1;
    }
    ResumeScreen OptionList { height: 1fr; border: none; background: $surface; }
    ResumeScreen #preview { height: 10; border-top: solid $rule; }
    """

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self._words = words
        self._shown: list[SessionRow] = []

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Sessions"
            yield Input(self._words, "Search", compact=True)
            yield OptionList(markup=False)
            yield Static(id="preview", markup=False)
            yield Footer(compact=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(Input).focus()

    def load(self) -> Sequence[SessionRow]:
        with self.backend.services.store.read() as tx:
            found = overviews(tx, MAX_SESSIONS)
        return [SessionRow(one, self._goal(one)) for one in found if one.messages]

    def _goal(self, overview: ConversationOverview) -> str:
        if overview.last is None:
            return ""
        messages = self.backend.services.conversations.turn_messages(overview.last.id)[:1]
        return next((message.content for message in messages if message.role == "user"), "")

    def show(self, data: Sequence[SessionRow]) -> None:
        words = self.query_one(Input).value.lower().split()
        self._shown = [row for row in data if all(word in row.words for word in words)]
        now = self.backend.now()
        options = self.query_one(OptionList)
        place = options.highlighted or 0
        options.set_options([Option(_row(row, format_age(age_of(_at(row), now)))) for row in self._shown])
        if self._shown:
            options.highlighted = min(place, len(self._shown) - 1)
        else:
            options.set_options([Option("No session fits.", disabled=True)])
            self.query_one("#preview", Static).update("")

    @on(Input.Changed)
    def _search(self) -> None:
        if self.data is not None:
            self.show(self.data)

    @on(OptionList.OptionHighlighted)
    def _preview(self) -> None:
        row = self._chosen
        if row is None:
            return

        def read() -> None:
            entries = self.backend.page(row.session, limit=PREVIEW * 2).entries[-PREVIEW:]
            self.app.call_from_thread(self._show_preview, row, entries)

        self.run_worker(read, thread=True, group="preview", exclusive=True, exit_on_error=False)

    def _show_preview(self, row: SessionRow, entries: Sequence[Entry]) -> None:
        if row is self._chosen and self.is_mounted:
            width = max(self.query_one("#preview").size.width, 20)
            self.query_one("#preview", Static).update(
                Content("\n").join([summary_line(entry, width) for entry in entries if entry != SaidEntry("", "")])
            )

    @property
    def _chosen(self) -> SessionRow | None:
        place = self.query_one(OptionList).highlighted
        return self._shown[place] if place is not None and place < len(self._shown) else None

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_open(self) -> None:
        if (row := self._chosen) is not None:
            self.app.open_conversation(row.session)


def _at(row: SessionRow) -> str:
    last = row.overview.last
    return (last.ended_at or last.started_at) if last is not None else row.overview.conversation.created_at


def _row(row: SessionRow, age: str) -> Content:
    last = row.overview.last
    state = "running" if last is not None and last.open else (last.end_reason or "") if last is not None else ""
    return assemble(
        f"{age:>6}  ",
        (line(row.goal or row.session, 80), "bold"),
        "  ",
        (line(f"{row.session}  {state}", 120), "$quiet"),
    )
