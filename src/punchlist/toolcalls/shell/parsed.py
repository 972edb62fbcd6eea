"""What was found in a command line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from punchlist.kernel.text import excerpt

MAX_LINE_LENGTH: Final = 100_000
MAX_COMMANDS: Final = 2_000
MAX_WORDS: Final = 20_000
MAX_DEPTH: Final = 25
# Shells run what these hold or name: with `set -x`, or before the script.
_RUN_AS_CODE: Final = re.compile(r"PS4\Z|BASH_ENV\Z|BASH_FUNC_|ZDOTDIR\Z")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    words: tuple[str, ...]  # program and arguments without quotes, up to the first that is not known
    complete: bool  # every word is known before it runs
    assignments: tuple[str, ...]  # names of the variables set for it, or by it
    writes: tuple[str, ...]  # files its redirections may write; "?" is one that is not known
    within: str  # "" at top level, else what it was found inside of: "substitution", "sudo", "bash -c"


class Unparsable(Exception):
    """From here on this text cannot be read."""


@dataclass(slots=True)
class ParseResult:
    """What was found in the line, by all readers of its parts together."""

    commands: list[SimpleCommand] = field(default_factory=list)
    unclear: str | None = None
    words: int = 0
    budget: int = 2 * MAX_LINE_LENGTH
    functions: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    counters: set[str] = field(default_factory=set)  # variables that were given a number
    variables: set[str] = field(default_factory=set)  # variables that were given anything else
    computed: set[str] = field(default_factory=set)  # variables whose value is used in arithmetic

    def doubt(self, reason: str) -> None:
        self.unclear = self.unclear or reason

    def add(self, command: SimpleCommand) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            raise Unparsable(f"It has more than {MAX_COMMANDS} commands.")
        self.commands.append(command)

    def spend(self, text: str) -> None:
        self.budget -= len(text)
        if self.budget < 0:
            raise Unparsable("It has too many commands inside of commands.")

    def count_word(self) -> None:
        self.words += 1
        if self.words > MAX_WORDS:
            raise Unparsable(f"It has more than {MAX_WORDS} words.")

    def conclude(self) -> None:
        for name in sorted(self.functions & self.programs):
            self.doubt(f"It defines a command of its own and uses it: {excerpt(name)}")
        for name in filter(_RUN_AS_CODE.match, sorted(self.variables | self.counters)):
            self.doubt(f"A shell runs what {excerpt(name)} holds or names.")
        # Bash computes values as it computes expressions: with x='a[$(rm y)]', `$((x))` runs rm.
        for name in sorted(self.computed - (self.counters - self.variables)):
            self.doubt(f"The value of {name} is used as a number, and bash runs commands in such a value.")
