"""A plain prompt: Enter sends, Shift+Enter or Ctrl+J breaks the line."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import TextArea


class PromptArea(TextArea):
    DEFAULT_CSS = """
    PromptArea { height: auto; max-height: 10; border: round $border-blurred; padding: 0 1; background: $background; }
    PromptArea:focus { border: round $border; }
    """

    class Submitted(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Queued(Submitted):
        pass

    class SlashEntered(Message):
        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class Interrupted(Message):
        pass

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            text = self.text.strip()
            self.clear()
            if text.startswith("/"):
                self.post_message(self.SlashEntered(text))
            elif text:
                self.post_message(self.Submitted(text))
        elif event.key in ("shift+enter", "ctrl+j"):
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)
