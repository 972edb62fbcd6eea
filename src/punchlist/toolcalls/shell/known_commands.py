"""Looks up a command in the table of harmless options: what "always" may cover, and what surely changes nothing."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from punchlist.toolcalls.shell.harmless_options import MAX_OPERANDS, PREFIXES, READ_ONLY, SAME_OPTIONS
from punchlist.toolcalls.shell.programs import (
    LETTERS_ARE_NAMES,
    has_subcommands,
    only_reads,
    program_of,
    same_subcommand,
    subcommand_at,
)

_MAX_WORDS: Final = max(len(row.split()) for row in PREFIXES)
_NUMBER: Final = re.compile(r"-[0-9]+\Z")
_SCRIPT: Final = re.compile(r"[A-Za-z][A-Za-z0-9:_.-]*\Z")
_HARMLESS_GLOBALS: Final = {
    "git": {"-C", "-p", "-P", "--paginate", "--no-pager", "--literal-pathspecs"},
    "cargo": {"-v", "-q", "--verbose", "--quiet", "--offline", "--locked", "--frozen", "--color"},
    "npm": {"-s", "--silent"},
    "kubectl": {"-n", "--namespace", "--context"},
    "helm": {"-n", "--namespace", "--kube-context"},
    "aws": {"--profile", "--region", "--output"},
    "docker": {"-c", "--context"},
}
"""Options before the subcommand. `git -c`, `--git-dir` and `cargo --config` name settings that run programs."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table."""

    name: str
    letters: frozenset[str]
    valued_letters: frozenset[str]
    """The rest of the word is their value."""
    names: frozenset[str]
    numbers: bool
    every: bool
    max_operands: int | None
    one_dash: bool

    def is_harmless(self, option: str) -> bool:
        if self.every or (self.numbers and _NUMBER.match(option)):
            return True
        if option.startswith("--") or self.one_dash:
            name = option.lstrip("-")
            return name in self.names or f"{name.partition('=')[0]}=" in self.names
        for letter in option[1:]:
            if letter in self.valued_letters:
                return True
            if letter not in self.letters:
                return False
        return True


class KnownCommand(NamedTuple):
    row: Row
    words: int
    """The words up to the last subcommand: "always" covers them as a prefix."""


@lru_cache(maxsize=64)
def known_command(words: tuple[str, ...]) -> KnownCommand | None:
    """The row of the table for a command; None for one that is not in it."""
    if not words or "/" in words[0]:
        return None
    program = program_of(words[0])
    if not has_subcommands(program):
        return None if (row := _row(program)) is None else KnownCommand(row, 1)
    at = subcommand_at(words)
    harmless: Set[str] = _HARMLESS_GLOBALS.get(program, frozenset())
    if at is None or any(word[0] == "-" and word.partition("=")[0] not in harmless for word in words[1:at] if word):
        return None
    names = [SAME_OPTIONS.get(program, program), *words[at : at + _MAX_WORDS - 1]]
    if len(names) > 1:
        names[1] = same_subcommand(program, names[1])
    for count in range(len(names), 1, -1):
        row = _row(" ".join(names[:count]))
        if row is None and count > 2 and _SCRIPT.match(names[count - 1]):
            row = _row(" ".join([*names[: count - 1], "*"]))
        if row is not None:
            return KnownCommand(row, at + count - 1)
    return None


@lru_cache(maxsize=1024)
def _row(name: str) -> Row | None:
    text = PREFIXES.get(name, READ_ONLY.get(name))
    if text is None:
        return None
    options = text.split()
    one_dash = name.partition(" ")[0] in LETTERS_ARE_NAMES
    letters = [option for option in options if len(option.rstrip(":?")) == 1 and not one_dash]
    names = [option.rstrip(":") for option in options if option not in letters]
    return Row(
        name,
        letters=frozenset(option for option in letters if len(option) == 1),
        valued_letters=frozenset(option[0] for option in letters if len(option) == 2),
        # `--color` and `--color=always`; `cov-report=term` is that value only.
        names=frozenset([*names, *(f"{option}=" for option in names if "=" not in option)]),
        numbers="#" in options,
        every="*" in options,
        max_operands=MAX_OPERANDS.get(name),
        one_dash=one_dash,
    )


@lru_cache(maxsize=64)
def unknown_argument(words: tuple[str, ...], after: int, *, more: bool = False) -> str | None:
    """The first argument from place `after` that is not known to be harmless; None if all are.

    `more`: other words follow, which are not known before the command runs.
    """
    known = known_command(words)
    if known is None:
        return words[after] if after < len(words) else "its last argument" if more else None
    operands = 0
    for word in words[max(after, known.words) :]:
        if len(word) > 1 and word.startswith("-"):
            # What follows `--` counts as well: it can be the value of an option.
            if word != "--" and not known.row.is_harmless(word):
                return word
        else:
            # So does the value of an option: whether it takes one is not always certain.
            operands += 1
            if known.row.max_operands is not None and operands > known.row.max_operands:
                return word
    return "its last argument" if more and known.row.max_operands is not None else None


def covered_words(words: tuple[str, ...]) -> int | None:
    """How many words "always" covers as a prefix: program and subcommands. None: only the exact line."""
    known = known_command(words)
    return None if known is None or known.row.name in READ_ONLY else known.words


def is_known(words: tuple[str, ...]) -> bool:
    """Whether all arguments of a command are known to be harmless: none names a program to run or a file to write."""
    known = known_command(words)
    return known is not None and unknown_argument(words, known.words) is None


def reads_only(words: tuple[str, ...]) -> bool:
    """Whether the command opens the files that its arguments name only to read them."""
    return only_reads(words) and is_known(words)


def may_take_option(words: tuple[str, ...]) -> bool:
    """Whether a further option could write a file or run a program."""
    known = known_command(words)
    return known is None or not known.row.every
