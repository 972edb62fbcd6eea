"""The live area of inline mode: what runs, the list, the queue, the prompt and one line of status."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from textual.content import Content

from punchlist.checklist.render import width
from punchlist.surfaces.tui.display_text import assemble, block, cut, line
from punchlist.surfaces.tui.entry_lines import call_header
from punchlist.surfaces.tui.status_text import status_content, status_values
from punchlist.surfaces.tui.theme import SIGNS, STYLES

if TYPE_CHECKING:
    from punchlist.surfaces.tui.line_modes.chat_feed import FeedUpdate
    from punchlist.surfaces.tui.line_modes.line_chat import LineChat
    from punchlist.surfaces.tui.line_modes.line_editor import LineEditor

STREAMED_LINES: Final = 6
OPEN_ITEMS: Final = 4


class LiveLines:
    def __init__(self, *, animated: bool) -> None:
        self.animated = animated

    def above(self, chat: LineChat, update: FeedUpdate, room: int) -> list[Content]:
        """What is above the prompt."""
        lines = [cut(Content(part), room) for part in _tail(update.streaming, room)]
        lines += [call_header(call, room, expanded=False, now=None) for call in update.running]
        if chat.is_running:
            lines += _open_items(update, room)
        lines += [
            cut(assemble((f"⋯ {number} ", "$working"), (line(message.content, 300), "$quiet")), room)
            for number, message in enumerate(update.state.queued, 1)
        ]
        return lines

    def status(self, chat: LineChat, update: FeedUpdate, room: int) -> list[Content]:
        """The same line as in the full screen."""
        backend = chat.backend
        starts = chat.is_running and not update.state.is_running
        values = status_values(update.state, backend.options.mode, backend.now(), starts=starts)
        return status_content(values, room, self._frame() if chat.is_running else None).split("\n")

    def _frame(self) -> int | None:
        return int(time.monotonic() * 8) if self.animated else None


def prompt_lines(editor: LineEditor, room: int, *, answer: bool) -> tuple[list[Content], tuple[int, int]]:
    """The rows of the prompt, and row and column of the cursor."""
    sign = "? " if answer else "❯ "
    rows: list[str] = [""]
    cursor = (0, 0)
    used = 0
    for place, letter in enumerate([*editor.text, ""]):
        if place == editor.cursor:
            cursor = (len(rows) - 1, used)
        if letter == "\n":
            rows.append("")
            used = 0
            continue
        cells = width(letter) if letter else 0
        if used + cells > room - 2:
            rows.append("")
            used = 0
            if place == editor.cursor:
                cursor = (len(rows) - 1, 0)
        rows[-1] += letter
        used += cells
    style = "bold $needs-you" if answer else "bold $working"
    lines = [assemble((sign if number == 0 else "  ", style), row) for number, row in enumerate(rows)]
    return lines, (cursor[0], cursor[1] + 2)


def _tail(text: str, room: int) -> list[str]:
    if not text.strip():
        return []
    parts = block(text[-4_000:]).rstrip("\n").split("\n")[-STREAMED_LINES:]
    rows = [piece.plain for part in parts for piece in (Content(part).wrap(room) if part else [Content("")])]
    return rows[-STREAMED_LINES:]


def _open_items(update: FeedUpdate, room: int) -> list[Content]:
    todos = update.state.todos
    items = todos.open_items
    if not items:
        return []
    lines = [
        cut(assemble((f"{SIGNS[item.status]} ", STYLES[item.status]), line(item.label)), room)
        for item in items[:OPEN_ITEMS]
    ]
    done, total = todos.progress
    more = f", {len(items) - OPEN_ITEMS} more open" if len(items) > OPEN_ITEMS else ""
    lines.append(Content.styled(f"  {done}/{total} done{more}", "$quiet"))
    return lines
