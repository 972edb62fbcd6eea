"""The text that answers the request, whatever was said after it (C13)."""

from __future__ import annotations

import re
from typing import Final

from punchlist.agent.work_log import LIST_TOOLS
from punchlist.models.model import Reply

SUBSTANTIAL: Final = 200
"""Characters from which a text beside list calls counts as a part of the answer: shorter ones announce the calls."""


_ANNOUNCEMENT: Final = re.compile(
    r"(?:I'll|I’ll|I will|I am going to|I'm going to|Let me|Next)\b[^\n]{0,100}", re.IGNORECASE
)


def _announces(text: str) -> bool:
    """Whether a text only says what will be done next: it answers nothing."""
    return _ANNOUNCEMENT.fullmatch(text) is not None


class AnswerText:
    """Texts since the last work. A report that was written while an item was still unmarked is part of the answer."""

    def __init__(self, text: str = "") -> None:
        self._parts: list[str] = []
        self._last = text

    def add(self, reply: Reply) -> None:
        works = any(call.tool not in LIST_TOOLS for call in reply.calls)
        if works:
            self._parts.clear()
        text = reply.text.strip()
        if not text:
            return
        self._last = text
        if not reply.calls or (len(text) >= SUBSTANTIAL and not works):
            # A later text that repeats an earlier one replaces it.
            self._parts = [part for part in self._parts if part not in text and not _announces(part)] + [text]

    @property
    def is_empty(self) -> bool:
        """No text answers the request: at most, texts beside calls announced them."""
        return not self._parts

    @property
    def text(self) -> str:
        return "\n\n".join(self._parts) or self._last
