"""The box people watch (W9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from punchlist.checklist.model import Checklist
from punchlist.checklist.render import ICONS, NO_TODOS, item_label
from punchlist.checklist.text_width import clip, width
from punchlist.kernel.text import ELLIPSIS

TITLE: Final = "Tasks"
MIN_WIDTH: Final = len(TITLE) + 1
MAX_WIDTH: Final = 100
MAX_LINES_PER_ITEM: Final = 2
_FRAME: Final = 4
_ICON: Final = 2


def render_box(checklist: Checklist, columns: int = 80) -> list[str]:
    """The list in a frame, never wider than `columns`; without one where there is no room for it."""
    if not checklist.items:
        return [NO_TODOS]
    progress = checklist.progress
    footer = f"Progress: {progress['completed']}/{progress['total']} ({progress['percent']}%)"
    return render_frame([(ICONS[item.status], item_label(item)) for item in checklist.items], footer, columns)


def render_frame(labels: Sequence[tuple[str, str]], footer: str, columns: int = 80) -> list[str]:
    """Labels with their icons in a frame, each safe to show and on one line."""
    if columns < MIN_WIDTH + _FRAME:
        return [f"{icon} {clip(text, columns - _ICON)}"[: max(columns, 1)] for icon, text in labels]
    needed = max(len(footer), len(TITLE) + 2, *(width(text) + _ICON for _, text in labels))
    inner = max(MIN_WIDTH, min(needed, columns - _FRAME, MAX_WIDTH))
    lines = [f"┌─ {TITLE} {'─' * (inner - len(TITLE) - 1)}┐"]
    for icon, text in labels:
        first, *rest = _wrap(text, inner - _ICON)
        lines.append(_row(icon, first, inner))
        lines += [_row(" ", part, inner) for part in rest]
    return [*lines, f"│ {'':{inner}} │", f"│ {clip(footer, inner):{inner}} │", f"└{'─' * (inner + 2)}┘"]


def _row(icon: str, text: str, inner: int) -> str:
    return f"│ {icon} {text}{' ' * (inner - _ICON - width(text))} │"


def _wrap(text: str, cells: int) -> list[str]:
    """`text` in lines of at most so many cells, cut after a few of them."""
    lines = _fold(text, cells)
    if len(lines) > MAX_LINES_PER_ITEM:
        last = clip(lines[MAX_LINES_PER_ITEM - 1], cells - 1) + ELLIPSIS
        lines = [*lines[: MAX_LINES_PER_ITEM - 1], last]
    return lines


def _fold(text: str, cells: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        candidate = f"{line} {word}" if line else word
        if width(candidate) <= cells:
            line = candidate
            continue
        if line:
            lines.append(line)
        *full, line = _cut(word, cells)
        lines += full
    return [*lines, line] if line or not lines else lines


def _cut(word: str, cells: int) -> list[str]:
    """A word that may be too long for one line, in pieces that are not."""
    pieces: list[str] = []
    while width(word) > cells:
        head = clip(word, cells) or word[:1]
        pieces.append(head)
        word = word[len(head) :]
    return [*pieces, word]
