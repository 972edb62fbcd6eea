"""What changed between two states of a list, in words. Pure.

A message about a change has the whole list as lines: a sign and a label. Items have no ids there, and a running item
may have another label, so what is left over after equal labels is matched by its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

_WORDS: Final = {
    "completed": "done",
    "in_progress": "started",
    "pending": "reopened",
    "cancelled": "cancelled",
    "dropped": "dropped",
}
MAX_NAMED: Final = 3
"""Items of one kind of change that are named."""

_Line = tuple[str, str]
"""Status and label."""


def list_change_words(before: str, after: str) -> str:
    """`done “Read it” · added “Test it”`; what a list contains now if only its order changed."""
    old, new = _lines(before), _lines(after)
    changes: dict[str, list[str]] = {}
    for word, label in _changes(old, new):
        changes.setdefault(word, []).append(label)
    if changes:
        return " · ".join(_named(word, labels) for word, labels in changes.items())
    if not new:
        return "list emptied" if old else "list is empty"
    return "list moved" if old != new else "list as before"


def _changes(old: Sequence[_Line], new: Sequence[_Line]) -> Iterator[tuple[str, str]]:
    known = {label: status for status, label in old}
    labels = {label for _, label in new}
    left = [line for line in old if line[1] not in labels]
    for status, label in new:
        if label in known:
            if known[label] != status:
                yield _WORDS[status], label
            continue
        # A new label continues the first line that is left over; not so for a pending one of a list that got shorter.
        match = left.pop(0) if left and (status != "pending" or len(old) <= len(new)) else None
        if match is None:
            yield "added" if status == "pending" else _WORDS[status], label
        elif match[0] != status:
            yield _WORDS[status], label
        else:
            yield "changed", label
    for _, label in left:
        yield "removed", label


def _named(word: str, labels: Sequence[str]) -> str:
    named = ", ".join(f"“{label}”" for label in labels[:MAX_NAMED])
    more = f" and {len(labels) - MAX_NAMED} more" if len(labels) > MAX_NAMED else ""
    return f"{word} {named}{more}"


@cache
def _statuses() -> dict[str, str]:
    """The status of each sign. Imported when it is needed: the first frame of Home shows no list."""
    from punchlist.checklist.render import ICONS

    return {icon: status.value for status, icon in ICONS.items()}


def _lines(message: str) -> list[_Line]:
    _, *lines = message.splitlines() or [""]
    parts = (line.strip().partition(" ") for line in lines)
    statuses = _statuses()
    return [(statuses[icon], _title(label, statuses[icon])) for icon, _, label in parts if icon in statuses]


def _title(label: str, status: str) -> str:
    """Without the note of its status, such as ` (cancelled: too large)`."""
    return label.rpartition(f" ({status}")[0] or label
