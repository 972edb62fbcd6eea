"""A panel with one scrolled text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Static

from punchlist.surfaces.tui.panels.panel_screen import PanelScreen

T = TypeVar("T")


class TextPanel(PanelScreen[T], Generic[T]):
    TITLE_TEXT = ""
    DEFAULT_CSS = """
    TextPanel { align: center middle; }
    TextPanel > Vertical {
        width: 110; max-width: 98%; height: 92%; background: $surface; border: round $border; padding: 0 1;
    }
    TextPanel VerticalScroll { height: 1fr; background: $surface; }
    """

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self.TITLE_TEXT
            with VerticalScroll():
                yield Static(id="text", markup=False)
            yield Footer(compact=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(VerticalScroll).focus()

    def show(self, data: T) -> None:
        self.query_one("#text", Static).update(Content("\n").join(self.lines(data, self._width)))

    def lines(self, data: T, width: int) -> Sequence[Content]:
        raise NotImplementedError

    @property
    def _width(self) -> int:
        return max(self.query_one(VerticalScroll).size.width - 2, 20)

    def on_resize(self) -> None:
        def show_again() -> None:
            if self.data is not None:
                self.show(self.data)

        self.call_after_refresh(show_again)
