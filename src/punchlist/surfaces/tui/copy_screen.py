"""Copy mode: the conversation as text, selected and copied with the keyboard. Nothing is copied unless asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, TextArea
from textual.widgets.text_area import Selection

from punchlist.surfaces.tui.entries import Entry
from punchlist.surfaces.tui.entry_text import code_block, entry_text
from punchlist.surfaces.tui.key_table import KeyScope, bindings


def transcript_text(entries: Sequence[Entry]) -> str:
    return "\n\n".join(entry_text(entry) for entry in entries)


class CopyText(TextArea):
    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        # Nothing is typed here, so every key can be a command.
        del key, character
        return False


class CopyScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.COPY)]
    DEFAULT_CSS = """
    CopyScreen > Vertical { background: $background; border: round $needs-you; }
    CopyScreen TextArea { height: 1fr; border: none; background: $background; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._mark: tuple[int, int] | None = None
        self._area = CopyText(text, read_only=True, soft_wrap=True, show_line_numbers=False, show_cursor=True)

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Copy: Space begins, Enter copies"
            yield self._area
            yield Footer(compact=True)

    def on_mount(self) -> None:
        self._area.move_cursor(self._area.document.end)
        self._area.focus()

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        end = self._area.cursor_location
        if self._mark is not None and self._area.selection != Selection(self._mark, end):
            self._area.selection = Selection(self._mark, end)

    def action_mark(self) -> None:
        self._mark = None if self._mark is not None else self._area.cursor_location
        if self._mark is None:
            self._area.selection = Selection.cursor(self._area.cursor_location)

    def action_everything(self) -> None:
        self._mark = None
        self._area.select_all()

    def action_copy(self) -> None:
        """Copy the selection, else the line of the cursor."""
        row = self._area.cursor_location[0]
        self._copy(self._area.selected_text or self._area.document[row])

    def action_code(self) -> None:
        """Copy the code block around the cursor."""
        row = self._area.cursor_location[0]
        if code := code_block(list(self._area.document.lines), row):
            self._copy(code)
        else:
            self.app.notify("The cursor is in no code block.", severity="warning", markup=False)

    def _copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        self.app.notify(f"Copied {lines} line{'s' if lines != 1 else ''}.", markup=False)
        self.dismiss(None)

    def action_close(self) -> None:
        self.dismiss(None)
