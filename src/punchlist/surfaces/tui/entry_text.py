"""An entry of a conversation as plain text, to be copied: without gutters, and with the line ends of the text only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from punchlist.kernel.text import visible_block
from punchlist.surfaces.tui.entries import CallEntry, Entry, ListEntry, NoteEntry, ReplyEntry, SaidEntry
from punchlist.views.call_text import call_diff

_FENCE: Final = re.compile(r"\s*(```+|~~~+)")


def entry_text(entry: Entry) -> str:
    match entry:
        case SaidEntry(text=text) | ReplyEntry(text=text) | NoteEntry(text=text):
            return visible_block(text.strip("\n"))
        case ListEntry(after=after):
            return visible_block(after)
        case CallEntry():
            return visible_block("\n".join(_call_text(entry)).rstrip())


def _call_text(entry: CallEntry) -> Iterator[str]:
    edited = f" (edited by {entry.edited_by})" if entry.edited_by else ""
    yield f"{entry.tool} {entry.status}{edited}"
    if diff := call_diff(entry.tool, entry.arguments):
        yield diff
    else:
        for name, value in entry.arguments.items():
            yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)}"
    if entry.output.strip():
        yield entry.output


def code_block(lines: list[str], row: int) -> str:
    """The text between the fences around a line; empty if the line is in no code block."""
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    for first, last in zip(fences[::2], fences[1::2], strict=False):
        if first <= row <= last:
            return "\n".join(lines[first + 1 : last])
    return ""
