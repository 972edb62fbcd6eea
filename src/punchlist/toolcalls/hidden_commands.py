"""Commands that a program may run from its arguments or its input, for rules that deny or ask: `uv run rm -rf x`,
`fd -x rm`, `ssh h <<< 'rm -rf x'`.

The parser reads what wrappers such as `sudo` run. No table can name every other program that runs commands, so all
words of a program that is not known are tried: each tail of the words as a command, each word with blanks as a line,
and the denied program where it begins in a text. What is found is a doubt, since the words can also be plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from punchlist.toolcalls.shell import CommandLine, SimpleCommand, parse
from punchlist.toolcalls.shell.inputs import reads_prose, takes_data
from punchlist.toolcalls.shell.known_commands import is_known
from punchlist.toolcalls.shell.model import WrapperWord
from punchlist.toolcalls.shell.programs import only_names_things, runs_arguments, runs_script, takes_commands
from punchlist.toolcalls.shell.risky_arguments import is_sed, risky_argument, sed_scripts
from punchlist.toolcalls.shell.wrappers import is_wrapper, words_not_read

MAX_TEXT: Final = 20_000
"""The most characters of the arguments that are looked at; what is longer is a doubt."""
MAX_FOUND: Final = 8
"""The most texts, and places of a program, that are looked at in the arguments of a command; more are a doubt."""
_META: Final = re.compile(r"[\s;&|()<>$`'\"\\]")
_SPLITS: Final = re.compile(r"[\s;&|()<>`'\",\[\]{}\\]+")
_SEPARATOR: Final = re.compile(r"=|[:+](?![\s/\"'\[{])")
_QUOTES: Final = re.compile(r"\\\n|[\\'\"]")
_STANDS_FOR_OTHERS: Final = re.compile(r"[$`*?\[{~/]")
_EXPANSION: Final = re.compile(r"[$`]")
_REMOTE_COMMAND: Final = re.compile("^(?:ext|fd)::", re.MULTILINE)
_KNOWN_FOLDER: Final = re.compile(r"~/|\"?\$(?:(?:PWD|HOME)\b|\{(?:PWD|HOME)\}|\(pwd\))[^$`]*\Z")
_MAX_ASSIGNED: Final = 4


class InnerCommand(NamedTuple):
    command: SimpleCommand
    is_deep: bool
    """It is part of a script, so that its own arguments can be commands: `.shell rm -rf x`."""


class HiddenCommands:
    """What the arguments and the input of one command could run."""

    def __init__(self, command: SimpleCommand, *, arguments: bool, texts: Sequence[str]) -> None:
        words = self.words = command.all_words
        self._command = command
        if arguments and is_wrapper(words[0]):
            # The parser has read what it runs, but not the values of the variables that it sets.
            arguments = False
            self._words = (*(word for word in words[1:] if "=" in word), *command.values)
        else:
            self._words = (*(words_not_read(words) if arguments else ()), *command.values)
        self._texts = texts
        self.arguments = arguments
        """Whether its arguments are looked at."""
        self._has_own_language = command.fed and bool(words) and not runs_script(words)
        self._runs_arguments = arguments and bool(words) and runs_arguments(words)

        text = "\n".join((*self._words, *texts))
        unknown = self._runs_arguments and not all(word.known or _is_path(word) for word in command.rest)
        self.is_too_much = unknown or len(text) > MAX_TEXT or _REMOTE_COMMAND.search(text) is not None
        """Whether not all of it is known or can be looked at."""
        self._letters = None if _STANDS_FOR_OTHERS.search(text) else _without_quotes(text).lower()

    def may_name(self, program: str) -> bool:
        """False if no text has the letters of the program and none has a character that could stand for them."""
        return self._letters is None or program in self._letters

    @property
    def parsed(self) -> list[InnerCommand]:
        """The commands in the texts."""
        return self._parsed[0]

    @property
    def is_certain(self) -> bool:
        """False if there are too many texts, or if it is not known what a text runs."""
        return self._parsed[1]

    @cached_property
    def _parsed(self) -> tuple[list[InnerCommand], bool]:
        paths = {word.raw for word in self._command.rest if _is_path(word)}
        texts_in_words = (word for word in self._words if _META.search(word) and word not in paths)
        lines = dict.fromkeys(text for word in texts_in_words for text in _lines_in(word))
        if len(lines) > MAX_FOUND * (_MAX_ASSIGNED + 1):
            return [], False
        are_commands = bool(self.words) and takes_commands(self.words)
        found: dict[InnerCommand, None] = {}
        certain = True
        for texts, is_deep in ((lines, are_commands), (self._texts, are_commands or self._command.fed)):
            for text in texts:
                line = parse(text)
                commands = dict.fromkeys(line.commands)
                found.update((InnerCommand(each._replace(within=""), is_deep), None) for each in commands if each.words)
                certain = certain and not (self._runs_arguments and _is_unknown(text, line))
        return list(found), certain

    def mentions(self, program: str) -> Iterator[tuple[str, ...]]:
        """The words that follow the program in the texts, with it."""
        pattern = _mention(program)
        for at, word in enumerate(self._words, start=1):
            if program in word.lower():
                for found in pattern.finditer(word):
                    yield (program, *_split([word[found.end() :], *self._words[at:]]))
        in_text = _word(program) if self._has_own_language else pattern
        for text in self._texts:
            for found in in_text.finditer(text):
                yield (program, *_split([text[found.end() :]]))
        for script in self._sed_scripts:
            for found in _word(program, after="e").finditer(script):
                yield (program, *_split([script[found.end() :]]))

    @cached_property
    def _sed_scripts(self) -> list[str]:
        if not self.words or not is_sed(self.words):
            return []
        scripts = sed_scripts(self.words) if self.arguments else []
        return list(map(_without_quotes, (*scripts, *self._texts)))


def hidden_commands(command: SimpleCommand) -> HiddenCommands | None:
    """None for a command that runs nothing that its arguments or its input name."""
    words = command.all_words if command.words else ()
    only_names = bool(words) and only_names_things(words)
    arguments = len(words) > 1 and not only_names
    if arguments and is_known(words) and risky_argument(words, 1) is None:
        arguments = False
    texts = command.texts
    if texts and (takes_data(words) or reads_prose(command) or (only_names and not runs_script(words))):
        texts = ()
    if not (arguments or texts or command.values):
        return None
    return HiddenCommands(command, arguments=arguments, texts=texts)


def _is_path(word: WrapperWord) -> bool:
    """Whether an unknown word is one path, as in `docker run -v "$PWD:/app"`."""
    return word.single and _KNOWN_FOLDER.match(word.raw) is not None


def _is_unknown(text: str, line: CommandLine) -> bool:
    """Whether a text runs something that is not known before it runs."""
    unknown = any(not command.words and not command.complete for command in line.commands)
    return unknown or (line.unclear is not None and _EXPANSION.search(text) is not None)


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
def _word(program: str, after: str = "") -> re.Pattern[str]:
    """The program as a word: in a script of sed also after the command `e`, without a blank."""
    before = rf"(?:(?<![\w-])|(?<={after}))" if after else r"(?<![\w-])"
    return re.compile(rf"{before}-?{re.escape(program)}{_END}", re.IGNORECASE)
