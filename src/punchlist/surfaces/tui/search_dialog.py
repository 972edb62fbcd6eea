"""Search all sessions by name, goal and items; also the picker of `/resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from punchlist.surfaces.tui.home_lines import row_lines

if TYPE_CHECKING:
    from punchlist.surfaces.tui.app import PunchlistApp


class SearchDialog(ModalScreen[str | None]):
    """Returns the id of a session."""

    app: PunchlistApp
    DEFAULT_CSS = """
    SearchDialog { align: center middle; }
    SearchDialog > Vertical { width: 96%; max-width: 110; height: 80%; border: round $border; background: $surface; }
    SearchDialog Input { border: none; padding: 0 1; height: 1; }
    SearchDialog OptionList { border: none; height: 1fr; background: $surface; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close", show=False),
        Binding("down", "move(1)", "Next", show=False, priority=True),
        Binding("up", "move(-1)", "Previous", show=False, priority=True),
    ]

    def __init__(self, title: str, words: str = "") -> None:
        super().__init__()
        self._title = title
        self._words = words

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = "Enter opens · Esc closes"
            yield Input(self._words, "words of a session, a goal or an item", compact=True)
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._search(self._words)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._search(event.value)

    def _search(self, words: str) -> None:
        self.run_worker(self._find(words), exclusive=True, group="search")

    async def _find(self, words: str) -> None:
        rows = await self.app.in_thread(self.app.backend.search, words)
        found, now = self.query_one(OptionList), self.app.backend.now()
        width = max(found.scrollable_content_region.width - 1, 20)
        found.clear_options()
        found.add_options(Option(Content("\n").join(row_lines(row, now, width)), id=row.session) for row in rows)
        found.highlighted = 0 if rows else None
        if not rows:
            found.add_option(Option("Nothing has these words.", disabled=True))

    def action_move(self, step: int) -> None:
        found = self.query_one(OptionList)
        if step > 0:
            found.action_cursor_down()
        else:
            found.action_cursor_up()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        found = self.query_one(OptionList)
        if found.highlighted is not None:
            self.dismiss(found.get_option_at_index(found.highlighted).id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)
