"""What a command runs besides itself: the types that the readers of wrappers and builtins yield."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
ASSIGNMENT: Final = re.compile(rf"({NAME}|BASH_FUNC_[^=]*)\+?=")


class WrapperWord(NamedTuple):
    text: str  # its value, up to the first unknown part
    known: bool = True
    single: bool = True  # it is one word, whatever its value is
    raw: str = ""


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
