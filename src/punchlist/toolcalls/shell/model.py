"""The result of parsing a command line, and what the readers of wrappers and builtins find in one command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from punchlist.kernel.text import excerpt

MAX_LINE_LENGTH: Final = 100_000
MAX_COMMANDS: Final = 2_000
MAX_WORDS: Final = 20_000
MAX_DEPTH: Final = 25
NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
ASSIGNMENT: Final = re.compile(rf"({NAME}|BASH_FUNC_[^=]*)\+?=")
# Shells execute the values of these, or the files they name: with `set -x`, or before the script.
_RUN_AS_CODE: Final = re.compile(r"PS4\Z|BASH_ENV\Z|BASH_FUNC_|ZDOTDIR\Z")


class WrapperWord(NamedTuple):
    text: str  # its value, up to the first unknown part
    known: bool = True
    single: bool = True  # it is one word, whatever its value is
    raw: str = ""
    pattern: str | None = None  # of an unknown word that has only text and patterns; quoted characters are escaped


class SimpleCommand(NamedTuple):
    words: tuple[str, ...]  # program and arguments without quotes, up to the first unknown one
    complete: bool  # every word is known before the command runs
    assignments: tuple[str, ...]  # names of the variables that are set for it or by it
    writes: tuple[str, ...]  # files that its redirections write; "?" is an unknown one
    within: str  # "" at top level, else its context: "substitution", "sudo", "bash -c"
    rest: tuple[WrapperWord, ...] = ()  # the words from the first unknown one on
    reads: tuple[str, ...] = ()  # files that its redirections read; "?" is an unknown one
    values: tuple[str, ...] = ()  # the known values of its assignments: git runs that of PAGER
    fed: bool = False  # the line gives it input: from a pipe, a file, a here-document or a here-string
    feeds: bool = False  # its output goes to a pipe or a substitution
    texts: tuple[str, ...] = ()  # the here-documents and here-strings that it can read

    @property
    def all_words(self) -> tuple[str, ...]:
        """The words, with unknown ones as they are written; of a substitution only what comes before it."""
        return (*self.words, *map(_as_written, self.rest)) if self.rest else self.words


def _as_written(word: WrapperWord) -> str:
    return word.text if word.known or "$(" in word.raw or "`" in word.raw else word.raw


_FEEDS: Final = SimpleCommand._fields.index("feeds")


class Unparsable(Exception):
    """The rest of the text cannot be parsed."""


@dataclass(slots=True)
class ParseResult:
    """What all parsers of a line and its nested scripts have found."""

    commands: list[SimpleCommand] = field(default_factory=list)
    unclear: str | None = None
    is_whole: bool = True  # False: parsing has ended early, and there can be other commands
    words: int = 0
    budget: int = 2 * MAX_LINE_LENGTH
    functions: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    counters: set[str] = field(default_factory=set)  # variables that are assigned a number
    variables: set[str] = field(default_factory=set)  # variables that are assigned anything else
    computed: set[str] = field(default_factory=set)  # variables whose value is used in arithmetic
    fed: bool = False  # what is parsed now gets its input from the line

    def doubt(self, reason: str) -> None:
        self.unclear = self.unclear or reason

    def add(self, command: SimpleCommand) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            raise Unparsable(f"It has more than {MAX_COMMANDS} commands.")
        self.commands.append(command)

    def feed(self, commands: range, *texts: str) -> None:
        """Record that these commands get their input from the line, and the texts in it."""
        for at in commands:
            command = self.commands[at]
            self.commands[at] = command._replace(fed=True, texts=(*command.texts, *texts))

    def use_output(self, start: int) -> None:
        """Record that the output of the commands from `start` on goes to another command."""
        for at in range(start, len(self.commands)):
            command = self.commands[at]
            if not command.feeds:
                # Most lines with a pipe come here for every command, and `_replace` is slow.
                self.commands[at] = SimpleCommand._make((*command[:_FEEDS], True, *command[_FEEDS + 1 :]))

    def spend(self, text: str) -> None:
        self.budget -= len(text)
        if self.budget < 0:
            raise Unparsable("It has too many nested commands.")

    def count_words(self, number: int = 1) -> None:
        self.words += number
        if self.words > MAX_WORDS:
            raise Unparsable(f"It has more than {MAX_WORDS} words.")

    def conclude(self) -> None:
        if any(command.fed and command.words[:1] == ("exec",) for command in self.commands):
            # `exec < file` is the input of all later commands, and in a loop of all.
            self.feed(range(len(self.commands)))
        for name in sorted(self.functions & self.programs):
            self.doubt(f"It defines a function and calls it: {excerpt(name)}")
        for name in filter(_RUN_AS_CODE.match, sorted(self.variables | self.counters)):
            self.doubt(f"A shell executes the value of {excerpt(name)}.")
        # Bash evaluates the value of a variable in arithmetic: with x='a[$(rm y)]', `$((x))` runs rm.
        for name in sorted(self.computed - (self.counters - self.variables)):
            self.doubt(f"The value of {name} is used in arithmetic, where bash can run commands.")


# --- one command ------------------------------------------------------------------------------------------


UNKNOWN: Final = WrapperWord("", known=False, single=False)


class RunsCommand(NamedTuple):
    words: tuple[WrapperWord, ...]
    within: str
    assignments: tuple[str, ...] = ()


class RunsScript(NamedTuple):
    text: str
    within: str


class Uncertain(NamedTuple):
    reason: str


class SetsVariable(NamedTuple):
    """A builtin sets a variable; `counter`: always to a number."""

    name: str
    counter: bool = False


class EvaluatesArithmetic(NamedTuple):
    """The text can be evaluated as a number, where bash can run commands."""

    raw: str


Finding = RunsCommand | RunsScript | Uncertain | SetsVariable | EvaluatesArithmetic
Words = Sequence[WrapperWord]


class WrapperCall(NamedTuple):
    name: str
    words: Words  # without the program
    stdin: WrapperWord | None


Reader = Callable[[WrapperCall], Iterator[Finding]]


class UnreadableOptions(Exception):
    """The options of a command cannot be read."""
