"""The parts of a command's arguments that can be paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell.programs import FREE_TEXT_OPTIONS, PATTERN_FIRST, has_subcommands, program_of

_URL: Final = re.compile(r"(?<![A-Za-z0-9+.-])(?!(?i:file):)[A-Za-z][A-Za-z0-9+.-]*://\S*")
_SEPARATORS: Final = re.compile(r"[=:,@]")
_PATH: Final = re.compile(r"[/~.]")
_MAX_LETTERS: Final = 64
"""The most letters of options in one word that are looked at for a value."""
_GIT_MESSAGES: Final = frozenset(("commit", "merge", "notes", "stash", "tag"))
_GREP: Final = re.compile(r"-[FHILPUhilnoqsvwxzrREGac]*e\Z")
# Clusters of letters after which the next word is the pattern or the script.
_PATTERN_FOLLOWS: Final = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "git"), _GREP),
    "rg": re.compile(r"-[FHILPUhilnoqsvwxz]*e\Z"),
    **dict.fromkeys(("sed", "gsed"), re.compile(r"-[nErsuz]*e\Z")),
}
_LONG_PATTERN_FOLLOWS: Final = frozenset(("--regexp", "--expression"))
_LONG_GIVE_PATTERN: Final = ("regexp", "file", "files", "expression", "from-file")
_STOP_AT_OPERAND: Final = frozenset(("awk", "gawk", "mawk", "nawk"))
"""An option after another argument is the name of a file."""
_ONLY_FILTER_FILES: Final = frozenset(("jq", "yq"))
"""Their option `-e` has no value."""


@lru_cache(maxsize=64)
def paths_in(words: tuple[str, ...], covered: int) -> tuple[str, ...]:
    """The parts of the arguments after the `covered` words that can be paths."""
    return tuple(_paths_in(words, covered))


def _paths_in(words: Sequence[str], covered: int) -> Iterator[str]:
    program = program_of(words[0])
    pattern = program in PATTERN_FIRST or words[1:2] == ("grep",)
    skip = pattern and not any(word[:1] == "-" and _gives_pattern(program, word) for word in words[1:])
    first = max(covered, 1)
    before = words[first - 1]
    for word in words[first:]:
        option, before = before, word
        if option[:1] == "-" and (_text_follows(words, option) or (pattern and _pattern_follows(program, option))):
            continue
        if skip and word[:1] != "-":
            skip = words[0] == "git" and word == "grep"
            continue
        if word[:2] != "--" or _SEPARATORS.search(word):
            yield from path_pieces(word)
        if word[:1] == "-" and (option[:1] == "-" or program in _STOP_AT_OPERAND):
            # It can be the value of the option, or the name of a file after `--`.
            yield word


def _text_follows(words: Sequence[str], option: str) -> bool:
    """Whether an option has free text as its value. `ls -m` and `sort -m` have none."""
    if option not in FREE_TEXT_OPTIONS:
        return False
    if option.startswith("--"):
        return True
    program = program_of(words[0])
    return has_subcommands(program) and (program != "git" or not _GIT_MESSAGES.isdisjoint(words))


def _gives_pattern(program: str, word: str) -> bool:
    """Whether an option gives the pattern or a file with patterns, so that no argument is the pattern."""
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return bool(name) and any(full.startswith(name) for full in _LONG_GIVE_PATTERN)
    return "f" in word or ("e" in word and program not in _ONLY_FILTER_FILES)


def _pattern_follows(program: str, option: str) -> bool:
    if option in _LONG_PATTERN_FOLLOWS:
        return True
    known = _PATTERN_FOLLOWS.get(program)
    return known is not None and known.match(option) is not None


def path_pieces(word: str) -> Iterator[str]:
    """The parts of an argument that can be paths. A plain name can be a link, or a protected one."""
    if word[:1] == "-" and len(word) < 3:
        return
    text = _URL.sub("", word) if "://" in word else word
    pieces = {text, *_SEPARATORS.split(text)} if _SEPARATORS.search(text) else (text,)
    for piece in pieces:
        if piece.startswith("-"):
            yield from _attached(piece)
        if piece and not (piece is text and piece.startswith("-")):
            yield piece


def _attached(option: str) -> Iterator[str]:
    """The values that can be attached to letters: `-C.git` has `.git`, and so can `-rC.git`."""
    if option.startswith("--"):
        return
    for at in range(2, min(len(option), _MAX_LETTERS)):
        yield option[at:]
    if (path := _PATH.search(option, _MAX_LETTERS)) is not None:
        yield option[path.start() :]
