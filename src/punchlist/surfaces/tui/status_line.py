"""The widget of the status line (`status_text.py`)."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Static

from punchlist.surfaces.tui.status_text import StatusValues, status_content


class StatusLine(Static):
    DEFAULT_CSS = "StatusLine { height: auto; max-height: 4; padding: 0 1; }"

    class Resized(Message):
        """The line has another number of rows."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(markup=False, id=id)
        self.values = StatusValues()
        self._frame = 0
        self._height = -1

    def show(self, values: StatusValues) -> None:
        if values != self.values:
            self.values = values
            self._draw()

    def tick(self, *, animated: bool) -> None:
        """Advance the sign of a working turn."""
        if self.values.is_moving:
            self._frame = self._frame + 1 if animated else 0
            self._draw(animated=animated)

    def _draw(self, *, animated: bool = True) -> None:
        width = max(self.size.width - 2, 20) if self.size.width else 78
        content = status_content(self.values, width, self._frame if animated else None)
        height = content.plain.count("\n")
        # A layout of the whole screen, ten times a second, would cost most of what a working conversation costs.
        self.update(content, layout=height != self._height)
        if height != self._height:
            self._height = height
            self.call_after_refresh(self.post_message, self.Resized())

    def on_resize(self) -> None:
        self._draw()
