"""Permanent output with lines below it that are redrawn in place, on a terminal.

The live lines are the last ones on the screen. They are erased before anything permanent is printed and drawn again
afterwards. Text that a model streams is permanent too and may stop in the middle of a line: the live lines are then
drawn below that line, and the next piece of text continues it.

Nothing here is specific to agents. On a stream that is no terminal, only permanent output is printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Final, TextIO

from punchlist.checklist.render import width
from punchlist.surfaces.cli.context import terminal_width

_STYLE: Final = re.compile(r"\x1b\[[\d;]*m")
_MAX_OPEN_LINE: Final = 2_000
"""Characters of an unfinished line that can be continued below live lines. A longer one is ended."""
_ASCII: Final = str.maketrans(
    {
        **dict.fromkeys("┌┐└┘", "+"),
        **dict.fromkeys("✓", "x"),
        **dict.fromkeys("▶→", ">"),
        **dict.fromkeys("○◐", "o"),
        **dict.fromkeys("✗·–", "-"),
        **dict.fromkeys("“”", '"'),
        **dict.fromkeys("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "*"),
        "│": "|",
        "─": "-",
        "…": "~",
    }
)


class LiveArea:
    def __init__(self, screen: TextIO, *, live: bool) -> None:
        self._screen = screen
        self._live = live
        self._drawn: list[str] = []
        self._open_line = ""
        """Permanent text since the last line break."""
        self._line_is_above = False
        """The cursor is at the start of the line below the open one."""
        self._table = None if _can_encode(screen) else _ASCII

    def print(self, text: str) -> None:
        """Print whole lines."""
        self._write(f"{self._erased()}{self._ended_line()}{text}\n")

    def stream(self, text: str) -> None:
        """Print a piece of text; the next piece continues its last line."""
        if not text:
            return
        back = self._erased() + self._back_to_open_line()
        last = text.rpartition("\n")
        self._open_line = last[2] if last[1] else self._open_line + text
        self._write(back + text)

    def end_stream(self) -> None:
        """End the line of streamed text, if it is not ended."""
        if self._open_line:
            self._write(self._erased() + self._ended_line())

    def draw(self, lines: Sequence[str]) -> None:
        """Replace the live lines. They must fit the width of the terminal."""
        if not self._live or list(lines) == self._drawn:
            return
        kept = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(self._drawn, lines, strict=False))))
        text = self._erased(kept)
        if self._open_line and not self._line_is_above:
            text += "\n"
            self._line_is_above = True
        self._drawn = list(lines)
        self._write(text + "".join(f"{line}\n" for line in lines[kept:]))

    def erase(self) -> None:
        """Remove the live lines, so that other code can print."""
        self._write(self._erased() + self._ended_line())

    # --- what to write ------------------------------------------------------------------------------------

    def _erased(self, kept: int = 0) -> str:
        """Erase the live lines but the first `kept`."""
        # In a terminal that has become narrower, a line takes several rows.
        columns = max(terminal_width(), 1)
        rows = sum(max(1, -(-width(_STYLE.sub("", line)) // columns)) for line in self._drawn[kept:])
        self._drawn = self._drawn[:kept]
        return f"\x1b[{rows}F\x1b[J" if rows else ""

    def _ended_line(self) -> str:
        ends = bool(self._open_line) and not self._line_is_above
        self._open_line, self._line_is_above = "", False
        return "\n" if ends else ""

    def _back_to_open_line(self) -> str:
        """Move the cursor from below the open line to its end."""
        if not self._line_is_above:
            return ""
        self._line_is_above = False
        columns = max(terminal_width(), 1)
        cells = _last_row(self._open_line, columns) if len(self._open_line) <= _MAX_OPEN_LINE else columns
        # At the end of a full row the cursor is where the text continues anyway.
        return f"\x1b[1F\x1b[{cells}C" if cells < columns else ""

    def _write(self, text: str) -> None:
        # A closed stderr must not stop the agent.
        if text:
            with suppress(OSError):
                print(text.translate(self._table) if self._table else text, end="", file=self._screen, flush=True)


def _last_row(line: str, columns: int) -> int:
    """The cells that a line takes in its last row, after the terminal has wrapped it."""
    if line.isascii():
        return (len(line) - 1) % columns + 1
    import wcwidth

    used = 0
    for grapheme in wcwidth.iter_graphemes(line):
        cells = wcwidth.width(grapheme)
        used = cells if used + cells > columns else used + cells
    return used


def _can_encode(screen: TextIO) -> bool:
    try:
        "┌✓⠋".encode(screen.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
