"""The keys of a focused list in one line, for its border: `a add · e edit · x done`. Keys of the user's file count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from textual.app import App
from textual.keys import format_key

from punchlist.surfaces.tui.key_table import KEYS, NO_KEY, KeyScope

LIST_HINTS: Final = (
    ("add", "add"),
    ("edit", "edit"),
    ("complete", "done"),
    ("start", "start"),
    ("cancel", "cancel"),
    ("accept", "accept"),
    ("up", "up"),
    ("down", "down"),
    ("undo", "undo"),
)
QUEUE_HINTS: Final = (("edit", "change"), ("remove", "remove"), ("leave", "back to the prompt"))
_EDGES: Final = 6
"""Cells of a border that its text cannot use."""
_ALL: Final = "? all"


def key_hint(app: App[Any], scope: KeyScope, words: Sequence[tuple[str, str]], width: int) -> str:
    """As many keys as fit, the important ones first."""
    keymap = app._keymap
    parts: list[str] = []
    for name, word in words:
        action = next(each for each in KEYS if each.scope is scope and each.name == name)
        key = keymap.get(action.id, action.keys[0]).split(",")[0]
        if key == NO_KEY:
            continue
        part = f"{format_key(key)} {word}"
        if sum(len(each) + 3 for each in (*parts, part, _ALL)) > width - _EDGES:
            return " · ".join([*parts, _ALL])
        parts.append(part)
    return " · ".join(parts)
