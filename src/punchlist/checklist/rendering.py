"""The checklist as text: for the model, for people, and as a line of the conversation.

Whatever the store holds is shown on one line and with control characters spelled out, so that the
text of an item can neither forge another line nor act on a terminal (W10).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import wcwidth

from punchlist.checklist.lifecycle import Status
from punchlist.checklist.model import Checklist, Item
from punchlist.kernel.text import ELLIPSIS, visible

NO_TODOS: Final = "No todos."
ICONS: Final = {Status.COMPLETED: "✓", Status.IN_PROGRESS: "▶", Status.PENDING: "○"}
TITLE: Final = "Tasks"
NARROWEST: Final = len(TITLE) + 1
WIDEST: Final = 100
LINES_PER_ITEM: Final = 2

_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_LONE_JOINER: Final = re.compile(f"(?<![{_EMOJI}])\u200d|\u200d(?![{_EMOJI}])")


def for_model(checklist: Checklist) -> str:
    """What TodoWrite returns (W4)."""
    if not checklist.items:
        return NO_TODOS
    progress = checklist.progress
    lines = [_model_line(item) for item in checklist.items]
    return "\n".join([*lines, "", f"({progress['completed']}/{progress['total']} completed)"])


def _model_line(item: Item) -> str:
    content = visible(item.content)
    match item.status:
        case Status.COMPLETED:
            return f"[x] {content}"
        case Status.IN_PROGRESS:
            return f"[>] {content} <- {visible(item.active_form)}"
        case Status.PENDING:
            return f"[ ] {content}"


def update_line(checklist: Checklist) -> str:
    """What the conversation keeps of a change (W9)."""
    return "\n".join(["Todo list updated:", *(f"  {ICONS[item.status]} {_label(item)}" for item in checklist.items)])


def box(checklist: Checklist, columns: int = 80) -> list[str]:
    """The box people watch, never wider than `columns` (W9)."""
    if not checklist.items:
        return [NO_TODOS]
    if columns < NARROWEST + 4:
        return [_clip(f"{ICONS[item.status]} {_label(item)}", columns) for item in checklist.items]
    progress = checklist.progress
    footer = f"Progress: {progress['completed']}/{progress['total']} ({progress['percent']}%)"
    labels = [(ICONS[item.status], _label(item)) for item in checklist.items]
    needed = max(wcwidth.width(footer), len(TITLE) + 2, *(wcwidth.width(label) + 2 for _, label in labels))
    inner = max(NARROWEST, min(needed, columns - 4, WIDEST))
    lines = [f"┌─ {TITLE} {'─' * (inner - len(TITLE) - 1)}┐"]
    for icon, label in labels:
        first, *rest = _wrap(label, inner - 2)
        lines.append(_row(f"{icon} {first}", inner))
        lines += [_row(f"  {part}", inner) for part in rest]
    return [*lines, _row("", inner), _row(_clip(footer, inner), inner), f"└{'─' * (inner + 2)}┘"]


def _label(item: Item) -> str:
    label = visible(item.active_form if item.status is Status.IN_PROGRESS else item.content)
    # Terminals disagree about how wide a joiner makes text that is no emoji; without it they agree.
    return _LONE_JOINER.sub("", label)


def _row(content: str, inner: int) -> str:
    return f"│ {content}{' ' * (inner - wcwidth.width(content))} │"


def _wrap(label: str, width: int) -> list[str]:
    """`label` in lines of at most `width` cells, cut after a few of them."""
    lines = _fold(label, width)
    if len(lines) > LINES_PER_ITEM:
        last = _clip(lines[LINES_PER_ITEM - 1], width - 1) + ELLIPSIS
        lines = [*lines[: LINES_PER_ITEM - 1], last]
    return lines


def _fold(label: str, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in label.split(" "):
        candidate = f"{line} {word}" if line else word
        if wcwidth.width(candidate) <= width:
            line = candidate
            continue
        if line:
            lines.append(line)
        *full, line = _cut(word, width)
        lines += full
    return [*lines, line] if line or not lines else lines


def _cut(word: str, width: int) -> list[str]:
    """A word that may be too long for one line, in pieces that are not."""
    pieces: list[str] = []
    while wcwidth.width(word) > width:
        head = _clip(word, width) or word[:1]
        pieces.append(head)
        word = word[len(head) :]
    return [*pieces, word]


def _clip(content: str, width: int) -> str:
    """The longest beginning that fits, without cutting a character people see as one."""
    taken, cells = "", 0
    for grapheme in wcwidth.iter_graphemes(content):
        cells += wcwidth.width(grapheme)
        if cells > width:
            break
        taken += grapheme
    return taken


def sequence(items: Sequence[Item]) -> str:
    """Items in one sentence, for messages."""
    return ", ".join(f"“{visible(item.content)}”" for item in items)
