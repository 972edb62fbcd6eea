"""The checklist as text: for the model, for people, and as a line of the conversation.

Whatever the store holds is shown on one line and with control characters spelled out, so that the
text of an item can neither forge another line nor act on a terminal (W10).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistItem
from punchlist.kernel.text import visible

NO_TODOS: Final = "No todos."
ICONS: Final = {ChecklistStatus.COMPLETED: "✓", ChecklistStatus.IN_PROGRESS: "▶", ChecklistStatus.PENDING: "○"}

_MOST_SHOWN: Final = 1_000
"""Longer than anything we store, but a store may hold what we did not."""

_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_LONE_JOINER: Final = re.compile(f"(?<![{_EMOJI}])\u200d|\u200d(?![{_EMOJI}])")


def render_for_model(checklist: Checklist) -> str:
    """What TodoWrite returns (W4)."""
    if not checklist.items:
        return NO_TODOS
    progress = checklist.progress
    lines = [_model_line(item) for item in checklist.items]
    return "\n".join([*lines, "", f"({progress['completed']}/{progress['total']} completed)"])


def _model_line(item: ChecklistItem) -> str:
    content = visible(item.content)
    match item.status:
        case ChecklistStatus.COMPLETED:
            return f"[x] {content}"
        case ChecklistStatus.IN_PROGRESS:
            return f"[>] {content} <- {visible(item.active_form)}"
        case ChecklistStatus.PENDING:
            return f"[ ] {content}"


def update_message(checklist: Checklist) -> str:
    """What the conversation keeps of a change (W9)."""
    return "\n".join(
        ["Todo list updated:", *(f"  {ICONS[item.status]} {item_label(item)}" for item in checklist.items)]
    )


def item_label(item: ChecklistItem) -> str:
    """What people see of an item: what is happening while it happens, else what is to be done."""
    text = item.active_form if item.status is ChecklistStatus.IN_PROGRESS else item.content
    text = visible(text[:_MOST_SHOWN])
    # Terminals disagree about how wide a joiner makes text that is no emoji; without it they agree.
    return _LONE_JOINER.sub("", text)


def quoted_contents(items: Sequence[ChecklistItem]) -> str:
    """Items in one sentence, for messages."""
    return ", ".join(f"“{visible(item.content)}”" for item in items)
