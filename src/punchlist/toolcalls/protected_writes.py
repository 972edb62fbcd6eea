"""Finds commands that may write files that define what agents and tools do, such as `.git/hooks`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.copied_files import copied_name, derived_names
from punchlist.toolcalls.expanded_command import ExpandedCommand
from punchlist.toolcalls.folders import Folders
from punchlist.toolcalls.path_arguments import path_pieces
from punchlist.toolcalls.paths import PROTECTED_FILES, PROTECTED_FOLDERS, protected_part
from punchlist.toolcalls.shell import SimpleCommand
from punchlist.toolcalls.shell.file_access import (
    names_output,
    writes_arguments,
    writes_from_content,
)
from punchlist.toolcalls.shell.known_commands import is_known, reads_only
from punchlist.toolcalls.shell.model import WrapperWord
from punchlist.toolcalls.shell.options import option_scope
from punchlist.toolcalls.shell.patterns import has_name, has_wildcard, name_pattern
from punchlist.toolcalls.shell.programs import program_of

_PROTECTED: Final = PROTECTED_FOLDERS | PROTECTED_FILES
_PROTECTED_NAME: Final = re.compile(
    rf"(?:\A|[^\w.-])({'|'.join(map(re.escape, sorted(_PROTECTED)))})(?![\w.-])", re.IGNORECASE
)
_CHANGES_REMOTE: Final = frozenset(("add", "rename", "set-url"))
"""A push to a folder runs the hooks in it."""
_LEAVES_OUT: Final = re.compile(r"--(?:exclude|ignore)(?:-dir|-glob|-pattern|-vcs)?=")
_ONLY_READ: Final = re.compile(r"if=|<\(|>\(")
"""The beginning of an argument that is not written: `dd if=x`, `tee >(y)`."""


def protected_write(command: SimpleCommand, expanded: ExpandedCommand, covered: int, folders: Folders) -> str | None:
    """Why a command may write a file that defines what agents do; None if it does not.

    `covered` is the number of words that a rule names; 0 for a rule about the whole tool.
    """
    if "?" in command.writes:
        return "it writes a file that is not known before it runs"
    words = expanded.words
    changes = bool(words) and not reads_only(words)
    if not changes and command.complete and not (command.writes or command.values):
        return None
    if changes and _changes_git_settings(words, complete=not expanded.unknown):
        return "it changes the settings of git, which define what its commands run"
    if changes and writes_from_content(words):
        return "a file's content says which files it writes"
    if changes and (copied := copied_name(words, folders)):
        return f"the copied folder has {excerpt(copied, 60)}, which may define what agents and tools do"
    arguments = [word for word in words[max(covered, 1) :] if not _LEAVES_OUT.match(word)] if changes else []
    if named := _protected_name(command, expanded, arguments, changes=changes):
        return f"{excerpt(named, 60)} may be a file that defines what agents and tools do"
    if changes:
        arguments += [*expanded.other_paths, *derived_names(words)]
    return _protected_target(command, arguments, folders) or _unknown_target(command, expanded, arguments, folders)


def connects(path: str) -> bool:
    return re.match(r"/+dev/+(?:tcp|udp)/", path) is not None


def _protected_target(command: SimpleCommand, arguments: Sequence[str], folders: Folders) -> str | None:
    """Why a path that is known is protected."""
    words = dict.fromkeys(arguments)
    pieces = (piece for word in words for piece in (*path_pieces(word), *([word] if word[:1] == "-" else ())))
    for path in dict.fromkeys((*command.writes, *pieces)):
        if connects(path):
            return f"{excerpt(path, 60)} is a network connection"
        for real in folders.resolve(path):
            if part := protected_part(real):
                return f"{part} defines what agents and tools do"
    return None


def _unknown_target(
    command: SimpleCommand, expanded: ExpandedCommand, arguments: Sequence[str], folders: Folders
) -> str | None:
    """Why a file that the command writes is not known."""
    if command.complete and folders.certain:
        return None
    for word in _targets(command, expanded):
        shown = excerpt(word.raw, 60) or "its last argument"
        return f"{shown} is not known before it runs, and may be a file that defines what agents do"
    writes = bool(expanded.words) and writes_arguments(expanded.words)
    if not folders.certain:
        written = [*command.writes, *(arguments if writes else ())]
        for path in written:
            if not path.startswith(("/", "-", "~")):
                return f"the folder of {excerpt(path, 60)} is not known before it runs"
    for pattern in expanded.patterns if writes else ():
        if _may_name_protected(pattern):
            return f"{excerpt(pattern, 60)} may be a file that defines what agents and tools do"
    return None


def _targets(command: SimpleCommand, expanded: ExpandedCommand) -> Iterator[WrapperWord]:
    """The unknown words that can be files that the command writes."""
    if not expanded.words:
        return
    unknown = (*expanded.unknown, *expanded.unlisted)
    if writes_arguments(expanded.words):
        yield from (word for word in unknown if not _ONLY_READ.match(word.raw))
        return
    before = [*(WrapperWord(text) for text in command.words[-1:]), *command.rest]
    for option, word in itertools.pairwise(before):
        if word in unknown and (names_output(option.text) or names_output(word.text)):
            yield word


def _protected_name(
    command: SimpleCommand, expanded: ExpandedCommand, arguments: Sequence[str], *, changes: bool
) -> str | None:
    """A protected name anywhere in the arguments, or in the values of variables that later ones can use."""
    for text in (*arguments, *command.values):
        if found := _PROTECTED_NAME.search(text):
            return found[1]
    unknown = expanded.unknown if changes or not command.words else ()
    return next((word.raw for word in unknown if _may_be_protected(word)), None)


def _changes_git_settings(words: tuple[str, ...], *, complete: bool) -> bool:
    if program_of(words[0]) != "git":
        return False
    scope = option_scope(words)
    if scope == "git remote":
        return not _CHANGES_REMOTE.isdisjoint(words)
    return scope == "git config" and not (complete and is_known(words))


def _may_be_protected(word: WrapperWord) -> bool:
    """Whether an unknown argument such as `"$HOME/.git/x"` can have a protected name."""
    raw = word.raw.casefold()
    if any(name in raw for name in _PROTECTED):
        return True
    ends = (piece.rpartition("/")[2].casefold() for piece in path_pieces(word.text))
    return any(name.startswith(".") and any(one.startswith(name) for one in _PROTECTED) for name in ends)


def _may_name_protected(pattern: str) -> bool:
    """Whether a pattern matches a protected name that need not exist yet: `p*.toml`. `src/*.json` is not one."""
    *folders, last = pattern.casefold().split("/")
    parts = [part for part in (*folders, last) if has_wildcard(part) and has_name(part)]
    in_root = not [part for part in folders if part != "."]
    named = [part for part in parts if not part.startswith("*") or (part is last and in_root)]
    return any(name_pattern(part).match(name) for part in named for name in _PROTECTED)
