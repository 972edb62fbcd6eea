"""A file change as a unified diff."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Final

from punchlist.integrations.install.files import FileChange

_CONTEXT: Final = 3
_MAX_LINE_LENGTH: Final = 2_000
_LINE_CONTEXT: Final = 60
_NO_NEWLINE: Final = "\\ No newline at end of file"


def diff(change: FileChange) -> str:
    old, new = _lines(change.before), _lines(change.after)
    old_name = str(change.path) if change.before is not None else os.devnull
    new_name = str(change.path) if change.after is not None else os.devnull
    # Settings can have megabytes: leave out the common start and end.
    same = _common_prefix(old, new)
    skipped = max(0, same - _CONTEXT)
    kept = max(0, _common_prefix(old[same:][::-1], new[same:][::-1]) - _CONTEXT)
    old, new = old[skipped : len(old) - kept], new[skipped : len(new) - kept]
    lines = unified_diff(old, new, old_name, new_name, n=_CONTEXT, lineterm="")
    return "".join(f"{line}\n" for line in _shorten(lines, skipped))


def _lines(content: bytes | None) -> list[str]:
    if content is None:
        return []
    lines = content.decode(errors="replace").split("\n")
    if lines[-1]:
        lines[-1] += f"\n{_NO_NEWLINE}"
    else:
        lines.pop()
    return lines


def _common_prefix(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _shorten(lines: Iterator[str], skipped: int) -> Iterator[str]:
    """Correct the line numbers, and show only the changed part of very long lines."""
    removed = list[str]()
    for line in lines:
        if line.startswith("@@"):
            yield re.sub(r"(?<=[-+])\d+", lambda number: str(int(number.group()) + skipped), line) if skipped else line
        elif len(line) <= _MAX_LINE_LENGTH:
            yield line
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+") and removed:
            yield from _changed_part(removed.pop(0), line[1:])
        else:
            yield line if line.startswith("+") else f"{line[:_MAX_LINE_LENGTH]}… ({len(line) - 1:,} characters)"
    yield from (f"-{line}" for line in removed)


def _changed_part(old: str, new: str) -> Iterator[str]:
    head = _common_prefix(old, new)
    tail = min(_common_prefix(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    before = old[:head] if head <= _LINE_CONTEXT else f"…{old[head - _LINE_CONTEXT : head]}"
    after = old[len(old) - tail :] if tail <= _LINE_CONTEXT else f"{old[len(old) - tail :][:_LINE_CONTEXT]}…"
    for sign, line in (("-", old), ("+", new)):
        yield f"{sign}{before}{line[head : len(line) - tail]}{after}"
