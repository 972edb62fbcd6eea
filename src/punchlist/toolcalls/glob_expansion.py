"""Finds the files that a pattern on a command line matches now, so that their real paths can be checked.

A shell expands the pattern when the command runs. What an earlier command of the same line creates is not seen; such a
command is judged by itself.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from punchlist.toolcalls.shell.patterns import has_wildcard, literal, matches_hidden, name_pattern

MAX_ENTRIES: Final = 5_000
"""Of folders that are read for the patterns of one line."""
MAX_MATCHES: Final = 500


MAX_PARTS: Final = 64
"""Of the path of a pattern."""


class UnknownMatches(Exception):
    """A pattern matches too many files to look at each, or files of the process that will run."""


class _Place(NamedTuple):
    written: str
    """The beginning of the path as the shell writes it."""
    real: str
    """The folder that it names."""


class GlobExpansion:
    """The patterns of one command line."""

    def __init__(self) -> None:
        self._entries = MAX_ENTRIES
        self._matches = MAX_MATCHES
        self._listed: dict[str, list[os.DirEntry[str]]] = {}
        self._found: dict[tuple[str, str], list[str]] = {}

    def matches(self, pattern: str, folder: str) -> list[str]:
        """The paths that a pattern without braces matches from a folder, as the shell writes them."""
        if (known := self._found.get((pattern, folder))) is not None:
            return known
        parts = pattern.split("/")
        start = _Place("", folder)
        if len(parts) > MAX_PARTS or pattern.startswith(("/proc", "//")):
            raise UnknownMatches
        if not parts[0]:
            start = _Place("/", "/")
            parts = parts[1:]
        found = []
        for path in self._walk(parts, start):
            self._matches -= 1
            if self._matches < 0:
                raise UnknownMatches
            found.append(path)
        self._found[pattern, folder] = found
        return found

    def _walk(self, parts: list[str], place: _Place) -> Iterator[str]:
        part, rest = parts[0], parts[1:]
        for name, real in self._named(part, place.real):
            written = place.written + name
            if rest:
                yield from self._walk(rest, _Place(f"{written}/", real))
            else:
                yield written
        if part == "**" and rest:
            yield from self._walk(rest, place)
        if part == "**":
            for entry in self._entries_of(place.real):
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    yield from self._walk(parts, _Place(f"{place.written}{entry.name}/", entry.path))

    def _named(self, part: str, folder: str) -> Iterator[tuple[str, str]]:
        """The entries of a folder that one part of a pattern means, with what they really name."""
        if not has_wildcard(part):
            name = literal(part)
            if name in {"", "."}:
                yield name, folder
            elif name == "..":
                yield name, posixpath.dirname(folder)
            else:
                # A file that does not exist can be one that the command creates.
                path = os.path.join(folder, name)
                yield name, os.path.realpath(path) if os.path.islink(path) else path
            return
        wanted, hidden = name_pattern(part), matches_hidden(part)
        for entry in self._entries_of(folder):
            if wanted.match(entry.name) and (hidden or not entry.name.startswith(".")):
                yield entry.name, os.path.realpath(entry.path) if entry.is_symlink() else entry.path
        # Some shells list them.
        if hidden and wanted.match(".."):
            yield "..", posixpath.dirname(folder)

    def _entries_of(self, folder: str) -> list[os.DirEntry[str]]:
        if (listed := self._listed.get(folder)) is not None:
            return listed
        try:
            with os.scandir(folder) as entries:
                found = list(islice(entries, max(0, self._entries) + 1))
        except OSError:
            return []
        self._entries -= max(1, len(found))
        if self._entries < 0:
            raise UnknownMatches
        self._listed[folder] = found = sorted(found, key=lambda entry: entry.name)
        return found
