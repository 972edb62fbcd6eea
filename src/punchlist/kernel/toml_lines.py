"""On which line of a TOML text a key stands; the standard library's reader does not say.

The text is cut into its statements: a heading, or a key with its value. Each is read by itself, and so
costs its own length and not that of all before it. This is done only when there is a mistake to tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

KeyPath = tuple[str | int, ...]
"""The way to a value: names of tables, and places in lists, from 0."""

_MOST_READ: Final = 2_000_000
"""Characters, after which nothing is found: somebody has written a file to keep us busy."""
_ENDS: Final = ('"""', "'''", "]", "}")
"""What is in the last line of a value that goes over several."""


def find_line(source: str, keys: KeyPath) -> int | None:
    """Where a value begins, or else the innermost table around it that is there; None if nothing is."""
    found, deepest = None, 0
    for number, depth in _depths(source, keys):
        if depth > deepest:
            found, deepest = number, depth
        if deepest == len(keys):
            break
    return found


def _depths(source: str, keys: KeyPath) -> Iterator[tuple[int, int]]:
    """For each statement: its line, and how much of the way it goes."""
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for number, heading, content in _statements(source):
        if heading:
            table = _heading(content, counts)
            yield number, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(table, keys, strict=False)))
        elif keys[: len(table)] == table:
            yield number, len(table) + _reached(content, keys[len(table) :])


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
        if read > _MOST_READ:
            return
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError):
            # The value goes on in the next line.
            continue
        if content:
            yield number - len(lines) + 1, text.lstrip().startswith("["), content
        lines = []


def _heading(content: dict[str, Any], counts: dict[KeyPath, int]) -> KeyPath:
    """The table that a heading opens. In a list of tables, the last one so far is meant, or one more is begun."""
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


def _reached(content: Any, keys: Sequence[str | int]) -> int:
    for depth, key in enumerate(keys):
        within = range(len(content)) if isinstance(content, list) else content if isinstance(content, dict) else ()
        if key not in within:
            return depth
        content = content[key]
    return len(keys)
