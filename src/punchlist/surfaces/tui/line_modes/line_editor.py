"""The prompt of inline mode: text, cursor, and what keys do to them. Pure."""

from __future__ import annotations

import re
from typing import Final

_WORD_LEFT: Final = re.compile(r"\S+\s*\Z|\s+\Z")
_WORD_RIGHT: Final = re.compile(r"\s*\S+|\s+")


class LineEditor:
    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0

    def set(self, text: str) -> None:
        self.text, self.cursor = text, len(text)

    def insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def replace_before(self, start: int, text: str) -> None:
        """Replace the text from `start` to the cursor."""
        self.text = self.text[:start] + text + self.text[self.cursor :]
        self.cursor = start + len(text)

    @property
    def line_start(self) -> int:
        return self.text.rfind("\n", 0, self.cursor) + 1

    @property
    def line_before_cursor(self) -> str:
        return self.text[self.line_start : self.cursor]

    @property
    def on_first_line(self) -> bool:
        return self.line_start == 0

    @property
    def on_last_line(self) -> bool:
        return "\n" not in self.text[self.cursor :]

    def press(self, key: str) -> bool:
        """Do what a key means for the text; False if it means nothing."""
        act = getattr(self, f"_{key}", None)
        if act is None:
            return False
        act()
        return True

    def _left(self) -> None:
        self.cursor = max(0, self.cursor - 1)

    def _right(self) -> None:
        self.cursor = min(len(self.text), self.cursor + 1)

    def _home(self) -> None:
        self.cursor = self.line_start

    def _end(self) -> None:
        end = self.text.find("\n", self.cursor)
        self.cursor = len(self.text) if end < 0 else end

    def _word_left(self) -> None:
        found = _WORD_LEFT.search(self.text[: self.cursor])
        self.cursor = found.start() if found else 0

    def _word_right(self) -> None:
        found = _WORD_RIGHT.match(self.text, self.cursor)
        self.cursor = found.end() if found else len(self.text)

    def _backspace(self) -> None:
        if self.cursor:
            self.replace_before(self.cursor - 1, "")

    def _delete(self) -> None:
        self.text = self.text[: self.cursor] + self.text[self.cursor + 1 :]

    def _newline(self) -> None:
        self.insert("\n")

    def _kill_start(self) -> None:
        self.replace_before(self.line_start, "")

    def _kill_end(self) -> None:
        end = self.text.find("\n", self.cursor)
        self.text = self.text[: self.cursor] + ("" if end < 0 else self.text[end:])

    def _kill_word(self) -> None:
        found = _WORD_LEFT.search(self.text[: self.cursor])
        self.replace_before(found.start() if found else 0, "")

    def _up(self) -> None:
        column = self.cursor - self.line_start
        above = self.text.rfind("\n", 0, max(self.line_start - 1, 0)) + 1
        self.cursor = min(above + column, max(self.line_start - 1, 0))

    def _down(self) -> None:
        column = self.cursor - self.line_start
        below = self.text.find("\n", self.cursor) + 1
        end = self.text.find("\n", below)
        self.cursor = min(below + column, len(self.text) if end < 0 else end)
