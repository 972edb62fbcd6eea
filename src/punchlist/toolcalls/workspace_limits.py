"""Limits of an allowed command: its paths stay in the workspace, and it does not write protected files. Pure except
for the links and folders that it reads.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.expanded_command import ExpandedCommand
from punchlist.toolcalls.folders import Folders
from punchlist.toolcalls.path_arguments import path_pieces, paths_in
from punchlist.toolcalls.paths import PathResolver
from punchlist.toolcalls.protected_writes import protected_write
from punchlist.toolcalls.shell import SimpleCommand
from punchlist.toolcalls.shell.file_access import follows_links
from punchlist.toolcalls.shell.known_commands import may_take_option
from punchlist.toolcalls.shell.model import WrapperWord
from punchlist.toolcalls.shell.patterns import has_wildcard
from punchlist.toolcalls.shell.programs import WITHOUT_FILES, program_of

_STREAMS: Final = re.compile(r"/dev/(?:null|stdin|stdout|stderr|tty|zero|fd/[0-9]+)\Z")


def limit_exceeded(
    command: SimpleCommand, expanded: ExpandedCommand, covered: int, paths: PathResolver, folders: Folders
) -> str | None:
    """Why a person is asked about a command that a rule allows; None if it stays within the limits.

    `covered` is the number of words that the rule names: those are what the person allowed.
    """
    if outside := _outside(command, expanded, covered, paths, folders):
        return outside
    if repository := _other_repository(expanded.words, paths, folders):
        return f"{excerpt(repository, 60)} is a repository of its own, whose settings can run programs"
    return protected_write(command, expanded, covered, folders)


def _outside(
    command: SimpleCommand, expanded: ExpandedCommand, covered: int, paths: PathResolver, folders: Folders
) -> str | None:
    for path in command.reads:
        if path == "?" or not _all_inside(path, paths, folders):
            return f"it reads {excerpt(path, 60)}, which may be outside the workspace"
    words = expanded.words
    if program_of(words[0]) in WITHOUT_FILES:
        return None
    for piece in paths_in(words, covered):
        if not _all_inside(piece, paths, folders):
            return f"{excerpt(piece, 60)} is outside the workspace"
    if option := follows_links(words, covered):
        return f"{excerpt(option, 60)} follows links, which may lead out of the workspace"
    return None if command.complete else _unknown_path(command, expanded, paths, folders)


def _unknown_path(
    command: SimpleCommand, expanded: ExpandedCommand, paths: PathResolver, folders: Folders
) -> str | None:
    """Why a word that is not known before the command runs may be outside the workspace."""
    for word in (*expanded.unknown, *expanded.unlisted):
        if word.raw or may_take_option(command.words):
            return f"{excerpt(word.raw, 60) or 'its last argument'} is not known before it runs"
    for path in expanded.other_paths:
        for piece in path_pieces(path):
            if not _all_inside(piece, paths, folders):
                return f"{excerpt(piece, 60)} is outside the workspace"
    for pattern in expanded.patterns:
        if _may_be_option(pattern, command):
            return f"{excerpt(pattern, 60)} is not known before it runs"
    words = [*(WrapperWord(text) for text in command.words), *command.rest]
    if program_of(command.words[0]) == "git" and any(
        option.text == "-C" and not word.known for option, word in itertools.pairwise(words)
    ):
        return "the folder of git is not known before it runs"
    return None


def _may_be_option(pattern: str, command: SimpleCommand) -> bool:
    """Whether a pattern can match a file named like an option: `*` matches `--output=x`."""
    if not has_wildcard(pattern) or "/" in pattern:
        return False
    return pattern.startswith("-") or (pattern[0] in "*?[" and may_take_option(command.words))


def _other_repository(words: Sequence[str], paths: PathResolver, folders: Folders) -> str | None:
    """The folder below the root that git would take for a repository: a cloned one can contain it as plain files."""
    if (folders.are_only_root and "-C" not in words) or program_of(words[0]) != "git":
        return None
    named = [real for at, word in enumerate(words) if words[at - 1] == "-C" for real in folders.resolve(word)]
    above = (f"{paths.root}/{part}" for real in [*folders.known[1:], *named] for part in _above(paths.relative(real)))
    found = (folder for folder in above if os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/refs"))
    return next(map(paths.relative, found), None)


def _above(relative: str) -> Iterator[str]:
    """A folder and those that contain it, up to the root of the workspace."""
    parts = [] if relative.startswith("/") else relative.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join(parts[:count])


def _all_inside(path: str, paths: PathResolver, folders: Folders) -> bool:
    if _STREAMS.match(path):
        return True
    if path.startswith("~") or (not folders.certain and not path.startswith("/") and ("/" in path or path == "..")):
        return False
    return all(map(paths.is_inside, folders.resolve(path)))
