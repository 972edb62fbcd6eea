"""A change of a file, for people: a unified diff."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Final

from punchlist.integrations.install.files import FileChange

_CONTEXT: Final = 3
_LONGEST: Final = 2_000
_AROUND: Final = 60
_UNENDED: Final = "\\ No newline at end of file"


def diff(change: FileChange) -> str:
    old, new = _lines(change.before), _lines(change.after)
    was = str(change.path) if change.before is not None else os.devnull
    becomes = str(change.path) if change.after is not None else os.devnull
    # What is the same at both ends is not compared line by line: settings can be megabytes.
    same = _same(old, new)
    tail = _same(old[same:][::-1], new[same:][::-1])
    skipped = max(0, same - _CONTEXT)
    kept = max(0, tail - _CONTEXT)
    old, new = old[skipped : len(old) - kept], new[skipped : len(new) - kept]
    parts = unified_diff(old, new, was, becomes, n=_CONTEXT, lineterm="")
    return "".join(f"{line}\n" for line in _shown(parts, skipped))


def _lines(content: bytes | None) -> list[str]:
    """With their ends, as far as these are not plain."""
    if content is None:
        return []
    text = content.decode(errors="replace")
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += f"\n{_UNENDED}"
    else:
        lines.pop()
    return lines


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _shown(lines: Iterator[str], skipped: int) -> Iterator[str]:
    """The diff's lines. Of very long ones, as files that are one line have them, only what is about the change."""
    gone = list[str]()
    for line in lines:
        if line.startswith("@@"):
            yield _moved(line, skipped)
        elif len(line) <= _LONGEST:
            yield line
        elif line.startswith("-"):
            gone.append(line[1:])
        elif line.startswith("+") and gone:
            yield from _around(gone.pop(0), line[1:])
        else:
            yield line if line.startswith("+") else f"{line[:_LONGEST]}… ({len(line) - 1:,} characters)"
    yield from (f"-{line}" for line in gone)


def _around(old: str, new: str) -> Iterator[str]:
    """Two long lines, less what they have in common at their ends."""
    head = _same(old, new)
    tail = min(_same(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    before = old[:head] if head <= _AROUND else f"…{old[head - _AROUND : head]}"
    after = old[len(old) - tail :] if tail <= _AROUND else f"{old[len(old) - tail :][:_AROUND]}…"
    for sign, line in (("-", old), ("+", new)):
        yield f"{sign}{before}{line[head : len(line) - tail]}{after}"


def _moved(heading: str, by: int) -> str:
    """A heading of lines, of which some were left out before the first."""
    if not by:
        return heading
    marks = []
    for mark in heading.split()[1:3]:
        start, comma, count = mark[1:].partition(",")
        marks.append(f"{mark[0]}{int(start) + by}{comma}{count}")
    return f"@@ {' '.join(marks)} @@"
