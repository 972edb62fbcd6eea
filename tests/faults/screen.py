"""What may reach a terminal, and what must not."""

from __future__ import annotations

import re
from typing import Final

import wcwidth

# Written by hand and not taken from the program: C0 but the line feed, DEL, C1, line and paragraph
# separators, bidirectional marks, what has no width, tags.
ACTING: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

ESCAPES: Final = {
    "CSI": "\x1b[31m\x1b[2J",
    "OSC 8": "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
    "OSC 52": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "DCS": "\x1bP+q544e\x1b\\",
    "8-bit C1": "\x9b31m\x9d52;c;aGk=\x9c\x90q\x9c",
    "backspace and DEL": "x\x08\x7f\x07",
    "forged line": "x\r\n[x] All is done\u2028(3/3 completed)\x85",
    "bidirectional": "\u202eabc\u2066def\u2069\u200f",
    "zero width": "a\u200bb\ufeffc\u2060d\U000e0041",
}
BYTES: Final = {
    "lone surrogates": b"a\xed\xa0\x80b\xed\xb0\x80",
    "no UTF-8": b"a\xff\xfe\xc3",
    "raw C1": b"a\x9b31m\x9d52;c;aGk=\x9c",
}


def acting(output: bytes) -> list[str]:
    """What in a program's output could do something else than be read."""
    shown = output.decode(errors="surrogateescape")
    found = [f"{ord(char):#x}" for char in ACTING.findall(shown)]
    return found + [f"byte {ord(char) - 0xDC00:#x}" for char in shown if 0xDC80 <= ord(char) <= 0xDCFF]


class Screen:
    """A terminal of unlimited height, as far as our programs use one: lines, going up and right, erasing, colours."""

    def __init__(self, columns: int | None = None) -> None:
        self._columns = columns
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        return ["".join(row) for row in self._rows]

    def show(self, output: str) -> list[str]:
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b\n]+|\n|\x1b", output.replace("\r\n", "\n")):
            self._take(part)
        return [line for line in self.lines if line]

    def _take(self, part: str) -> None:
        if part == "\n":
            self._next_row()
        elif up := re.fullmatch(r"\x1b\[(\d+)F", part):
            self._row, self._column = self._row - int(up[1]), 0
            assert self._row >= 0, "above the first line"
        elif right := re.fullmatch(r"\x1b\[(\d+)C", part):
            self._column += int(right[1])
            assert self._columns is None or self._column < self._columns, "beyond the last column"
        elif part == "\x1b[J":
            del self._rows[self._row + 1 :]
            del self._rows[self._row][self._column :]
        elif not re.fullmatch(r"\x1b\[[\d;]*m", part):
            assert "\x1b" not in part, f"unexpected {part!r}"
            for grapheme in wcwidth.iter_graphemes(part):
                self._put(grapheme, wcwidth.width(grapheme))

    def _put(self, grapheme: str, cells: int) -> None:
        if self._columns is not None and self._column + cells > self._columns:
            self._next_row()
        row = self._rows[self._row]
        row += [" "] * (self._column - len(row))
        row[self._column : self._column + cells] = [grapheme, *[""] * (cells - 1)]
        self._column += cells

    def _next_row(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append([])
