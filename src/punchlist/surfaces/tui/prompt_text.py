"""The text field of the composer: long pastes become markers, and a marker is deleted as a whole."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import TextArea

from punchlist.surfaces.tui.pastes import Pastes

PASTE_SECONDS: Final = 0.003
"""No person presses Enter this soon after another key."""


class PromptText(TextArea):
    DEFAULT_CSS = """
    PromptText {
        height: auto; min-height: 3; max-height: 12;
        border: round $primary-darken-1; padding: 0 1; background: transparent;
    }
    PromptText:focus { border: round $accent; }
    """

    paste_seconds: ClassVar[float] = PASTE_SECONDS

    class Paged(Message):
        """A key that pages, which a text that is visible in full does not need."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def __init__(self, placeholder: str) -> None:
        super().__init__(
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=Content(placeholder),
        )
        self.pastes = Pastes()
        self._typed_at = 0.0

    @property
    def line_before_cursor(self) -> str:
        row, column = self.cursor_location
        return self.document[row][:column]

    @property
    def on_first_line(self) -> bool:
        return self.cursor_location[0] == 0

    @property
    def on_last_line(self) -> bool:
        return self.cursor_location[0] == self.document.line_count - 1

    @property
    def expanded_text(self) -> str:
        """The text with the pasted texts in place of their markers."""
        return self.pastes.expand(self.text)

    def set_prompt(self, text: str) -> None:
        """Replace the text; the cursor is at the end."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def clear_prompt(self) -> None:
        self.load_text("")
        self.pastes.clear()

    def replace_token(self, start: int, text: str) -> None:
        """Replace the text from `start` to the cursor in the line of the cursor."""
        row, column = self.cursor_location
        self.replace(text, (row, start), (row, column), maintain_selection_offset=False)

    def insert_text(self, text: str) -> None:
        self.replace(text, *self.selection, maintain_selection_offset=False)

    async def _on_key(self, event: events.Key) -> None:
        """Carry out keys in the order in which they were pressed.

        Textual runs priority bindings before the letters that wait in this widget's queue, and other bindings after
        those that follow. Enter would send half of what was typed.
        """
        is_pasted = event.time - self._typed_at < self.paste_seconds
        self._typed_at = event.time
        if event.key == "enter" and is_pasted:
            # A paste of a terminal without bracketed paste: its lines are one text.
            event.stop()
            event.prevent_default()
            self.insert_text("\n")
            return
        # With the keys of the user's file.
        chain = () if event.is_printable and self.text else self.screen._binding_chain
        own = {node: bindings for node, bindings in chain if node in (self, self.parent)}
        for node in (self.parent, self):
            bindings = own.get(node) if node is not None else None
            for binding in bindings.key_to_bindings.get(event.key, ()) if bindings is not None else ():
                if await self.app.run_action(binding.action, node):
                    event.stop()
                    event.prevent_default()
                    return
        await super()._on_key(event)

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        # On an empty prompt, `?` shows the keys instead of being typed.
        return bool(self.text) and super().check_consume_key(key, character)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert_text(self.pastes.hold(event.text))

    def action_cursor_page_up(self) -> None:
        if self._scrolls:
            super().action_cursor_page_up()
        else:
            self.post_message(self.Paged(-1))

    def action_cursor_page_down(self) -> None:
        if self._scrolls:
            super().action_cursor_page_down()
        else:
            self.post_message(self.Paged(1))

    @property
    def _scrolls(self) -> bool:
        return self.wrapped_document.height > self.content_size.height

    def action_delete_left(self) -> None:
        marker = self.pastes.marker_before(self.line_before_cursor) if self.selection.is_empty else None
        if marker is None:
            super().action_delete_left()
            return
        row, column = self.cursor_location
        self.delete((row, column - len(marker)), (row, column))
