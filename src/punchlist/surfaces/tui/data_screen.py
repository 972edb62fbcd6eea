"""What Home and conversations have in common: they show data that other processes change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.screen import Screen

if TYPE_CHECKING:
    from punchlist.surfaces.tui.app import PunchlistApp
    from punchlist.views.live_text import LiveText


class DataScreen(Screen[None]):
    app: PunchlistApp

    def on_mount(self) -> None:
        if self.app.is_ready:
            self.start()

    def start(self) -> None:
        """The services are there: load what the screen shows."""
        raise NotImplementedError

    def data_changed(self) -> None:
        """A process has written to the database."""
        raise NotImplementedError

    def add_live(self, pieces: Sequence[LiveText]) -> None:
        """Take streamed text."""

    def on_screen_resume(self) -> None:
        if self.app.is_ready:
            self.data_changed()
