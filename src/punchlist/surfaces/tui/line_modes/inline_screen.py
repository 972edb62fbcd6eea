"""Permanent lines above a small live area, on the normal screen of a terminal.

The live area is the last thing on the screen and contains the cursor. Permanent lines are printed in its place and
scroll into the terminal's own scrollback; then the live area is drawn again below them. Each update is one write inside
of a synchronized update, so terminals that know it do not flicker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TextIO

from punchlist.checklist.render import width

_STYLE: Final = re.compile(r"\x1b\[[\d;]*m")
_BEGIN: Final = "\x1b[?2026h"
_END: Final = "\x1b[?2026l"
BRACKETED_PASTE_ON: Final = "\x1b[?2004h"
BRACKETED_PASTE_OFF: Final = "\x1b[?2004l"


class InlineScreen:
    def __init__(self, stream: TextIO, columns: Callable[[], int]) -> None:
        self._stream = stream
        self._columns = columns
        self._live: list[str] = []
        self._cursor_row = 0

    def update(self, permanent: Sequence[str], live: Sequence[str], cursor: tuple[int, int] = (0, 0)) -> None:
        """Print permanent lines, then draw the live area with the cursor at (row, column) of it.

        The live lines must fit the width of the terminal.
        """
        if not permanent and list(live) == self._live:
            self._write(self._move_cursor(cursor))
            return
        printed = "".join(f"{line}\n" for line in permanent)
        text = self._to_top() + "\x1b[J" + printed + "\n".join(live)
        self._live, self._cursor_row = list(live), max(len(live) - 1, 0)
        self._write(_BEGIN + text + self._move_cursor(cursor) + _END)

    def clear(self) -> None:
        """Remove the live area; the cursor is where it began."""
        self._write(self._to_top() + "\x1b[J")
        self._live, self._cursor_row = [], 0

    def _to_top(self) -> str:
        # In a terminal that has become narrower, a line takes several rows.
        columns = max(self._columns(), 1)
        above = self._live[: self._cursor_row]
        rows = sum(max(1, -(-width(_STYLE.sub("", line)) // columns)) for line in above)
        return f"\r\x1b[{rows}A" if rows else "\r"

    def _move_cursor(self, cursor: tuple[int, int]) -> str:
        row, column = cursor
        up = self._cursor_row - row
        self._cursor_row = row
        vertical = f"\x1b[{up}A" if up > 0 else f"\x1b[{-up}B" if up < 0 else ""
        return f"{vertical}\r" + (f"\x1b[{column}C" if column else "")

    def _write(self, text: str) -> None:
        # A closed terminal must not stop the work.
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
