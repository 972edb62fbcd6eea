"""The checklist as text: for the model, for the conversation, and as the box that people watch (W9).

Every item is rendered on one line with control characters escaped, so that its text can neither forge
another line nor control a terminal (W10).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.checklist.validation import MAX_ITEMS
from punchlist.kernel.text import ELLIPSIS, visible

GUIDANCE: Final = f"""\
Keep a checklist of this session's work. People watch it, and it is your memory: it remains available \
when older messages are gone.

Use it for work of three or more steps, when you are given several tasks, or when a task needs planning.
Do not use it for a single simple task, a trivial one, or a question you can answer at once.

Each call replaces the whole list (at most {MAX_ITEMS} items), so send every item each time: an unfinished item that \
you leave out stays open as dropped. To give one up, send it with the status cancelled and a reason. \
Have one item in_progress while you work; mark it completed as soon as it is done, not later in a batch. \
Write content as an instruction ("Run the tests") and activeForm as what is happening ("Running the tests")."""
"""How a model uses the list (W8): the tool's description, and part of the system prompt."""

_PROGRESS: Final = re.compile(r"^\((\d+)/\d+ completed\)$", re.MULTILINE)
NO_TODOS: Final = "No todos."
ICONS: Final = {
    ChecklistStatus.COMPLETED: "✓",
    ChecklistStatus.IN_PROGRESS: "▶",
    ChecklistStatus.PENDING: "○",
    ChecklistStatus.CANCELLED: "✗",
    ChecklistStatus.DROPPED: "!",
}
BOX_TITLE: Final = "Tasks"
MIN_WIDTH: Final = len(BOX_TITLE) + 1
MAX_WIDTH: Final = 100
MAX_LINES_PER_ITEM: Final = 2
_FRAME: Final = 4
# Longer than any valid item; a damaged store may hold more.
_MAX_LABEL_LENGTH: Final = 1_000

_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_LONE_JOINER: Final = re.compile(f"(?<![{_EMOJI}])\u200d|\u200d(?![{_EMOJI}])")


def render_for_model(checklist: Checklist, *, count_dropped: bool = False) -> str:
    """The result of TodoWrite (W4). With `count_dropped`, dropped items count: they are open."""
    if not checklist.items:
        return NO_TODOS
    progress = checklist.progress
    total = len(checklist.items) if count_dropped else progress["total"]
    lines = [_model_line(item) for item in checklist.items]
    return "\n".join([*lines, "", f"({progress['completed']}/{total} completed)"])


def completed_items(rendered: str) -> int | None:
    """How many items of a rendered list are completed; None if it shows no list."""
    # No item can look like this line: each begins with its mark.
    found = _PROGRESS.search(rendered)
    return int(found[1]) if found else 0 if rendered.startswith(NO_TODOS) else None


def _model_line(item: ChecklistItem) -> str:
    content = visible(item.content)
    match item.status:
        case ChecklistStatus.COMPLETED:
            return f"[x] {content}"
        case ChecklistStatus.IN_PROGRESS:
            return f"[>] {content} <- {visible(item.active_form)}"
        case ChecklistStatus.CANCELLED:
            return f"[-] {content}{_status_note(item)}"
        case ChecklistStatus.DROPPED:
            return f"[!] {content}{_status_note(item)}"
        case ChecklistStatus.PENDING:
            return f"[ ] {content}"


def _status_note(item: ChecklistItem) -> str:
    if item.status is ChecklistStatus.DROPPED:
        return " (dropped)"
    if item.status is not ChecklistStatus.CANCELLED:
        return ""
    return f" (cancelled: {visible(item.reason)})" if item.reason else " (cancelled)"


def dropped_note(checklist: Checklist) -> str:
    """What is dropped, and what the agent can do about it; empty if nothing is."""
    if not checklist.dropped:
        return ""
    return (
        f"Dropped unfinished items: {quoted_contents(checklist.dropped)}. They stay open. Send each of them again to "
        "do it, or send it with the status cancelled and a reason."
    )


def update_message(checklist: Checklist) -> str:
    """The message that a change adds to the conversation (W9)."""
    return "\n".join(
        ["Todo list updated:", *(f"  {ICONS[item.status]} {item_label(item)}" for item in checklist.items)]
    )


def item_label(item: ChecklistItem) -> str:
    """The active form while the item is in progress, otherwise its content; with the reason of a cancelled one."""
    text = item.active_form if item.status is ChecklistStatus.IN_PROGRESS else item.content
    # Terminals disagree about the width of a joiner between characters other than emoji.
    return _LONE_JOINER.sub("", visible(text[:_MAX_LABEL_LENGTH]) + _status_note(item)[:_MAX_LABEL_LENGTH])


def quoted_contents(items: Sequence[ChecklistItem]) -> str:
    return ", ".join(f"“{visible(item.content)}”" for item in items)


def render_frame(labels: Sequence[tuple[str, str]], footer: str, columns: int = 80) -> list[str]:
    """Icons and labels in a frame. Each label is a single line that is safe to show."""
    indent = max(len(icon) for icon, _ in labels) + 1
    if columns < MIN_WIDTH + _FRAME + indent - 2:
        return [f"{icon} {clip(text, columns - indent)}"[: max(columns, 1)] for icon, text in labels]
    needed = max(len(footer), len(BOX_TITLE) + 2, *(width(text) + indent for _, text in labels))
    inner = max(MIN_WIDTH, min(needed, columns - _FRAME, MAX_WIDTH))
    lines = [f"┌─ {BOX_TITLE} {'─' * (inner - len(BOX_TITLE) - 1)}┐"]
    for icon, text in labels:
        first, *rest = _wrap(text, inner - indent)
        lines.append(_row(icon, first, inner))
        lines += [_row(" " * (indent - 1), part, inner) for part in rest]
    return [*lines, f"│ {'':{inner}} │", f"│ {clip(footer, inner):{inner}} │", f"└{'─' * (inner + 2)}┘"]


def _row(icon: str, text: str, inner: int) -> str:
    return f"│ {icon} {text}{' ' * (inner - len(icon) - 1 - width(text))} │"


def _wrap(text: str, cells: int) -> list[str]:
    """Wrap `text` at `cells` columns, and cut it after a few lines."""
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
        *full, line = _split_word(word, cells)
        lines += full
    return [*lines, line] if line or not lines else lines


def _split_word(word: str, cells: int) -> list[str]:
    pieces: list[str] = []
    while width(word) > cells:
        head = clip(word, cells) or word[:1]
        pieces.append(head)
        word = word[len(head) :]
    return [*pieces, word]


def width(text: str) -> int:
    if text.isascii():
        return len(text)
    import wcwidth

    return wcwidth.width(text)


def clip(text: str, cells: int) -> str:
    """The longest prefix that fits, cut between graphemes."""
    if text.isascii():
        return text[:cells]
    import wcwidth

    taken, used = "", 0
    for grapheme in wcwidth.iter_graphemes(text):
        used += wcwidth.width(grapheme)
        if used > cells:
            break
        taken += grapheme
    return taken
