"""Finds the line of a key in a TOML text, for error messages; `tomllib` does not report it.

The text is split into statements (a table header, or a key with its value), and each is parsed on its own, so that the
cost is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

KeyPath = tuple[str | int, ...]
"""The path to a value: table names, and indexes into arrays, from 0."""

_MAX_PARSED: Final = 2_000_000
"""The limit of parsed characters, against files made to waste time."""
_ENDS: Final = ('"""', "'''", "]", "}")
"""The last line of a multi-line value contains one of these."""


def find_line(source: str, keys: KeyPath) -> int | None:
    """The line of a value, or of the innermost existing table around it; None if there is none."""
    found, deepest = None, 0
    for number, depth in _depths(source, keys):
        if depth > deepest:
            found, deepest = number, depth
        if deepest == len(keys):
            break
    return found


def _depths(source: str, keys: KeyPath) -> Iterator[tuple[int, int]]:
    """For each statement: its line, and how many keys of the path it matches."""
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for number, heading, content in _statements(source):
        if heading:
            table = _heading(content, counts)
            yield number, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(table, keys, strict=False)))
        elif keys[: len(table)] == table:
            yield number, len(table) + _matched(content, keys[len(table) :])


def _statements(source: str) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    import tomllib

    lines: list[str] = []
    read = 0
    for number, line in enumerate(source.replace("\r\n", "\n").split("\n"), start=1):
        lines.append(line)
        if len(lines) > 1 and not any(end in line for end in _ENDS):
            continue
        text = "\n".join(lines)
        read += len(text)
        if read > _MAX_PARSED:
            return
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError):
            # The value continues on the next line.
            continue
        if content:
            yield number - len(lines) + 1, text.lstrip().startswith("["), content
        lines = []


def _heading(content: dict[str, Any], counts: dict[KeyPath, int]) -> KeyPath:
    """The table that a header opens; in an array of tables, the current or a new element."""
    way: KeyPath = ()
    inner: Any = content
    while inner:
        name, inner = next(iter(inner.items()))
        way = (*way, name)
        if isinstance(inner, list):
            counts[way] = counts.get(way, -1) + 1
            inner = inner[0]
        if way in counts:
            way = (*way, counts[way])
    return way


def _matched(content: Any, keys: Sequence[str | int]) -> int:
    for depth, key in enumerate(keys):
        within = range(len(content)) if isinstance(content, list) else content if isinstance(content, dict) else ()
        if key not in within:
            return depth
        content = content[key]
    return len(keys)
