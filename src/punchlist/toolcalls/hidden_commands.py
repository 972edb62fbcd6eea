"""Commands that a program may run from its arguments, for rules that deny or ask: `uv run rm -rf x`, `fd -x rm`.

The parser reads what wrappers such as `sudo` run. No table can name every other program that runs commands, so all
words of a program that is not known are tried: each tail of the words as a command, each word with blanks as a line,
and the denied program where it begins in a text. What is found is a doubt, since the words can also be plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell import SimpleCommand, parse
from punchlist.toolcalls.shell.known_commands import is_known
from punchlist.toolcalls.shell.programs import only_names_things, runs_arguments, runs_script

MAX_TEXT: Final = 20_000
"""The most characters of the arguments that are looked at; what is longer is a doubt."""
_META: Final = re.compile(r"[\s;&|()<>$`'\"\\]")
_SPLITS: Final = re.compile(r"[\s;&|()<>`'\",\[\]{}\\]+")
_EXPANSION: Final = re.compile(r"[$`]")
_MAX_ASSIGNED: Final = 4


class HiddenCommands:
    """What the arguments of one command could run."""

    def __init__(self, command: SimpleCommand) -> None:
        self._words = (*command.words, *command.values)
        self.parsed: list[SimpleCommand] = []
        self.is_clear = True
        """Whether all that surely runs is known."""
        self._runs_arguments = bool(command.words) and runs_arguments(command.words)
        self.are_commands = self._runs_arguments or (bool(command.words) and runs_script(command.words))
        """Whether a text among the arguments is a command rather than prose."""
        if sum(map(len, command.words)) > MAX_TEXT or (self._runs_arguments and not command.complete):
            self.is_clear = False
            return
        for word in command.words[1:]:
            for text in _lines_in(word):
                self._parse(text)
        for value in command.values:
            self._parse(value.lstrip("|! "))

    def _parse(self, text: str) -> None:
        found = parse(text)
        self.parsed += (command for command in found.commands if command.words)
        unknown = not all(command.words or command.complete for command in found.commands)
        if self._runs_arguments and (unknown or (found.unclear and _EXPANSION.search(text))):
            self.is_clear = False

    def mentions(self, program: str) -> Iterator[tuple[str, ...]]:
        """The words that follow the program in the texts of arguments, with it."""
        for at, word in enumerate(self._words[1:], start=2):
            if program in word.lower():
                for found in _mention(program).finditer(word):
                    yield (program, *_split([word[found.end() :], *self._words[at:]]))


def hidden_commands(command: SimpleCommand) -> HiddenCommands | None:
    """None for a command that runs nothing that its arguments name."""
    words = command.words
    if not command.values and ((len(words) < 2 and command.complete) or is_known(words) or only_names_things(words)):
        return None
    return HiddenCommands(command)


def _lines_in(word: str) -> Iterator[str]:
    """The texts in an argument that could be a command line: `-x'rm y'`, `alias.x='!rm y'`, `--to-command='rm y'`."""
    if not _META.search(word):
        return
    yield word
    if word.startswith("-") and not word.startswith("--"):
        yield word[2:]
    text = word
    for _ in range(_MAX_ASSIGNED):
        _, equals, text = text.partition("=")
        if not equals:
            return
        yield text.lstrip("! ")


def _split(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in _SPLITS.split(word) if part]


@lru_cache(maxsize=256)
def _mention(program: str) -> re.Pattern[str]:
    """The program where a command can begin: first, or after a character that ends another one."""
    return re.compile(
        rf"(?:\A|[;&|(!=\"'`\[{{,\n])\s*(?:[\w.~-]*/)*{re.escape(program)}[0-9.]*(?![\w-])", re.IGNORECASE
    )
