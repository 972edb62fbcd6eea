"""Commands that a program may run from its arguments or its input, for rules that deny or ask: `uv run rm -rf x`,
`fd -x rm`, `ssh h <<< 'rm -rf x'`.

The parser reads what wrappers such as `sudo` run. No table can name every other program that runs commands, so all
words of a program that is not known are tried: each tail of the words as a command, each word with blanks as a line,
and the denied program where it begins in a text. What is found is a doubt, since the words can also be plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from punchlist.toolcalls.shell import SimpleCommand, parse
from punchlist.toolcalls.shell.inputs import reads_prose, takes_data
from punchlist.toolcalls.shell.known_commands import is_known
from punchlist.toolcalls.shell.programs import only_names_things, runs_arguments, runs_script, takes_commands
from punchlist.toolcalls.shell.risky_arguments import is_sed, risky_argument, sed_scripts

MAX_TEXT: Final = 20_000
"""The most characters of the arguments that are looked at; what is longer is a doubt."""
MAX_FOUND: Final = 8
"""The most texts, and places of a program, that are looked at in the arguments of a command; more are a doubt."""
_META: Final = re.compile(r"[\s;&|()<>$`'\"\\]")
_SPLITS: Final = re.compile(r"[\s;&|()<>`'\",\[\]{}\\]+")
_SEPARATOR: Final = re.compile("[=:+]")
_QUOTES: Final = re.compile(r"[\\'\"]")
_EXPANSION: Final = re.compile(r"[$`]")
_REMOTE_COMMAND: Final = re.compile("(?:ext|fd)::")
_MAX_ASSIGNED: Final = 4


class InnerCommand(NamedTuple):
    command: SimpleCommand
    is_deep: bool
    """It is part of a script, so that its own arguments can be commands: `.shell rm -rf x`."""


class HiddenCommands:
    """What the arguments and the input of one command could run."""

    def __init__(self, command: SimpleCommand, *, arguments: bool, texts: Sequence[str]) -> None:
        words = command.words
        self._words = (*(words[1:] if arguments else ()), *command.values)
        self._texts = texts
        self.arguments = arguments
        """Whether its arguments are looked at."""
        self._sed_scripts = sed_scripts(words) if arguments and words and is_sed(words) else []
        self._found: dict[InnerCommand, None] = {}
        self._runs_arguments = arguments and bool(words) and runs_arguments(words)
        self.is_clear = self._is_clear(command)
        """Whether all that surely runs is known."""
        if self.is_clear:
            self._parse_all(bool(words) and takes_commands(words), fed=command.fed)

    def _is_clear(self, command: SimpleCommand) -> bool:
        if sum(map(len, (*self._words, *self._texts))) > MAX_TEXT or (self._runs_arguments and not command.complete):
            return False
        return not any(map(_REMOTE_COMMAND.match, self._words))

    def _parse_all(self, are_commands: bool, *, fed: bool) -> None:
        lines = dict.fromkeys(text for word in self._words if _META.search(word) for text in _lines_in(word))
        if len(lines) > MAX_FOUND * (_MAX_ASSIGNED + 1):
            self.is_clear = False
            return
        for text in lines:
            self._parse(text, is_deep=are_commands)
        for text in self._texts:
            self._parse(text, is_deep=are_commands or fed)

    def _parse(self, text: str, *, is_deep: bool) -> None:
        found = parse(text)
        self._found.update((InnerCommand(command, is_deep), None) for command in found.commands if command.words)
        unknown = not all(command.words or command.complete for command in found.commands)
        if self._runs_arguments and (unknown or (found.unclear and _EXPANSION.search(text))):
            self.is_clear = False

    @property
    def parsed(self) -> Iterator[InnerCommand]:
        return iter(self._found)

    def mentions(self, program: str) -> Iterator[tuple[str, ...]]:
        """The words that follow the program in the texts, with it."""
        pattern = _mention(program)
        for at, word in enumerate(self._words, start=1):
            if program in word.lower():
                for found in pattern.finditer(word):
                    yield (program, *_split([word[found.end() :], *self._words[at:]]))
        for text in self._texts:
            for found in pattern.finditer(text):
                yield (program, *_split([text[found.end() :]]))
        for script in map(_without_quotes, (*self._sed_scripts, *(self._texts if self._sed_scripts else ()))):
            for found in _anywhere(program).finditer(script):
                yield (program, *_split([script[found.end() :]]))


def hidden_commands(command: SimpleCommand) -> HiddenCommands | None:
    """None for a command that runs nothing that its arguments or its input name."""
    words = command.words
    only_names = bool(words) and only_names_things(words)
    arguments = not only_names and (len(words) > 1 or not command.complete)
    if arguments and is_known(words) and risky_argument(words, 1) is None:
        arguments = False
    texts = command.texts
    if texts and (takes_data(words) or reads_prose(command) or (only_names and not runs_script(words))):
        texts = ()
    if not (arguments or texts or command.values):
        return None
    return HiddenCommands(command, arguments=arguments, texts=texts)


def _lines_in(word: str) -> Iterator[str]:
    """The texts in an argument that could be a command line: `-x'rm y'`, `alias.x='!rm y'`, `EXEC:'rm y'`."""
    yield word.lstrip("|! ")
    if word.startswith("-") and not word.startswith("--"):
        yield word[2:]
    for separator, _ in zip(_SEPARATOR.finditer(word), range(_MAX_ASSIGNED), strict=False):
        if text := word[separator.end() :].lstrip("! "):
            yield text


def _without_quotes(text: str) -> str:
    return _QUOTES.sub("", text)


def _split(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in _SPLITS.split(word) if part]


_END: Final = r"[0-9.]*(?:\.(?:exe|cmd|bat))?(?![\w/@-]|\.\w)"


@lru_cache(maxsize=256)
def _mention(program: str) -> re.Pattern[str]:
    """The program where a command can begin: first, or after a character that ends another one."""
    return re.compile(
        rf"(?:(?:\A|[;&|(!=\"'`\[{{,\n])\s*|[+:](?!//))(?:[\w.~-]*/)*{re.escape(program)}{_END}", re.IGNORECASE
    )


@lru_cache(maxsize=256)
def _anywhere(program: str) -> re.Pattern[str]:
    """The program in a script of sed, where it can follow the command `e` without a blank."""
    return re.compile(rf"{re.escape(program)}{_END}", re.IGNORECASE)
