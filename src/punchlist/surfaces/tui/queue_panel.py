"""Queued messages above the prompt: shown in the order of delivery, changed and removed by key (S10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from punchlist.conversations.model import QueuedMessage
from punchlist.kernel.text import visible
from punchlist.surfaces.tui.key_hints import QUEUE_HINTS, key_hint
from punchlist.surfaces.tui.key_table import KeyScope, bindings

MAX_SHOWN: Final = 50


class QueuePanel(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.QUEUE)]
    DEFAULT_CSS = """
    QueuePanel {
        height: auto; max-height: 6; display: none; background: transparent;
        border: round $secondary-darken-1; padding: 0 1;
    }
    QueuePanel:focus { border: round $accent; }
    QueuePanel.-filled { display: block; }
    """

    class EditRequested(Message):
        def __init__(self, queued: QueuedMessage, number: int) -> None:
            super().__init__()
            self.queued = queued
            self.number = number

    class RemoveRequested(Message):
        def __init__(self, queued: QueuedMessage) -> None:
            super().__init__()
            self.queued = queued

    class Left(Message):
        """The person returns to the prompt."""

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.messages: Sequence[QueuedMessage] = ()
        self._hint = ""
        self._show_title()

    @property
    def hint(self) -> str:
        """How the messages are delivered, if that does not happen by itself."""
        return self._hint

    @hint.setter
    def hint(self, hint: str) -> None:
        self._hint = hint
        self._show_title()

    def _show_title(self) -> None:
        count = f"Queued {len(self.messages)}" if self.messages else "Queued"
        self.border_title = f"{count} · {self._hint}" if self._hint else count

    def show(self, messages: Sequence[QueuedMessage]) -> None:
        if messages == self.messages:
            return
        place = self.highlighted or 0
        self.messages = messages
        lines = [
            Option(Text(f"{number} {visible(' '.join(message.content.split()))}", no_wrap=True, overflow="ellipsis"))
            for number, message in enumerate(messages[:MAX_SHOWN], 1)
        ]
        self.set_options(lines)
        self._show_title()
        self.set_class(bool(messages), "-filled")
        if messages:
            self.highlighted = min(place, len(lines) - 1)
        elif self.has_focus:
            self.post_message(self.Left())

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        self.border_subtitle = key_hint(self.app, KeyScope.QUEUE, QUEUE_HINTS, self.size.width) if value else ""
        if value and self.option_count:
            # The prompt, from which one comes, is below.
            self.highlighted = self.option_count - 1

    @property
    def chosen(self) -> tuple[QueuedMessage, int] | None:
        place = self.highlighted
        if place is None or place >= len(self.messages):
            return None
        return self.messages[place], place + 1

    def action_edit(self) -> None:
        if self.chosen:
            self.post_message(self.EditRequested(*self.chosen))

    def action_remove(self) -> None:
        if self.chosen:
            self.post_message(self.RemoveRequested(self.chosen[0]))

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def action_cursor_up(self) -> None:
        """Not from the first message to the last."""
        if self.highlighted:
            super().action_cursor_up()

    def action_cursor_down(self) -> None:
        """Below the last message is the prompt."""
        if self.highlighted is not None and self.highlighted >= self.option_count - 1:
            self.post_message(self.Left())
        else:
            super().action_cursor_down()
