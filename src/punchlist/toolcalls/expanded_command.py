"""The words of a command after the shell has replaced its patterns: `cat sr?/*.py` as `cat src/app.py src/b.py`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from punchlist.toolcalls.folders import Folders
from punchlist.toolcalls.glob_expansion import UnknownMatches
from punchlist.toolcalls.shell import SimpleCommand
from punchlist.toolcalls.shell.model import WrapperWord
from punchlist.toolcalls.shell.patterns import alternatives, escape, has_wildcard, literal

_OTHER_HOME: Final = re.compile(r"(?:\A|[:=])~(?![/+]|\Z)")


class ExpandedCommand(NamedTuple):
    words: tuple[str, ...]
    """The known words, with what the patterns among them match."""
    other_paths: tuple[str, ...] = ()
    """What the patterns stand for in other cases: without a match, or in another folder of the line."""
    unknown: tuple[WrapperWord, ...] = ()
    """Words that can be anything."""
    unlisted: tuple[WrapperWord, ...] = ()
    """Patterns whose matches are not known."""
    patterns: tuple[str, ...] = ()
    """The patterns without braces."""


def expand(command: SimpleCommand, folders: Folders) -> ExpandedCommand:
    if command.complete:
        return ExpandedCommand(command.words)
    words, others, unknown, unlisted, patterns = (
        list(command.words),
        list[str](),
        list[WrapperWord](),
        list[WrapperWord](),
        list[str](),
    )
    for word in command.rest:
        if word.known:
            words.append(word.text)
            continue
        texts = None if word.pattern is None else alternatives(word.pattern)
        if texts is None:
            unknown.append(word)
            continue
        # Not every shell knows braces.
        others.append(literal(word.pattern or ""))
        try:
            for text in texts:
                matches = list(_matches(text, folders))
                words += matches[0]
                others += (path for each in matches[1:] for path in each)
                others.append(literal(text))
                patterns.append(text)
        except UnknownMatches:
            unlisted.append(word)
    return ExpandedCommand(tuple(words), tuple(others), tuple(unknown), tuple(unlisted), tuple(patterns))


def _matches(pattern: str, folders: Folders) -> Iterator[list[str]]:
    """What a pattern means in each folder in which the command can run."""
    if _OTHER_HOME.search(pattern):
        raise UnknownMatches
    if not has_wildcard(pattern):
        yield [literal(pattern)]
        return
    if pattern.startswith("~/"):
        pattern = escape(os.path.expanduser("~")) + pattern[1:]
    pattern = pattern.removeprefix("~+/")
    absolute = pattern.startswith("/")
    if not (folders.globs_are_plain and (folders.certain or absolute)):
        raise UnknownMatches
    for folder in folders.known[:1] if absolute else folders.known:
        yield folders.globs.matches(pattern, folder) or [literal(pattern)]
