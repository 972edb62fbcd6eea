"""Reads bash builtins: what they run, which variables they set, and where they evaluate arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.toolcalls.shell.model import (
    ASSIGNMENT,
    NAME,
    EvaluatesArithmetic,
    Finding,
    Reader,
    RunsScript,
    SetsVariable,
    Uncertain,
    WrapperCall,
    WrapperWord,
)

DECLARATION_BUILTINS: Final = {"declare", "typeset", "local", "export", "readonly"}
STANDARD_INPUT: Final = re.compile(r"(/dev/stdin|/dev/fd/.*|/proc/.*/fd/.*)\Z")
_PLAIN_NAME: Final = re.compile(rf"{NAME}\Z")
_COUNTING: Final = re.compile(rf"({NAME})(\+\+|--|[-+*/%]?=-?[0-9]+)\Z")


def _source(call: WrapperCall) -> Iterator[Finding]:
    name, words, _ = call
    if any(not word.known or STANDARD_INPUT.match(word.text) for word in words[:2]):
        yield Uncertain(f"What {name} reads is not known before it runs.")


def _trap(call: WrapperCall) -> Iterator[Finding]:
    name, words, _ = call
    words = words[1:] if words and words[0].text == "--" else words
    if any(not word.known for word in words):
        yield Uncertain("What trap runs is not known before it runs.")
    elif len(words) > 1 and words[0].text not in {"-", "-l", "-p"}:
        yield RunsScript(words[0].text, name)


def _set(call: WrapperCall) -> Iterator[Finding]:
    for word in call.words:
        if word.text == "--":
            return
        letters = word.text[1:] if word.text[:1] in {"-", "+"} else ""
        if not word.known or word.text in {"history", "histexpand", "keyword"} or set(letters) & {"H", "k"}:
            yield Uncertain("set changes how the rest of the line is read.")


# Bash evaluates the subscript of a name that a builtin receives, and a subscript can contain a command:
# `read 'a[$(rm x)]'`. So a name must be known and plain.
def _names(call: WrapperCall) -> Iterator[Finding]:
    name, words, _ = call
    for word in words:
        variable = word.text.partition("=")[0].removesuffix("+")
        assigned = ASSIGNMENT.match(word.text) is not None
        option = word.text[:1] == "-"
        if not (word.known or (assigned and name != "unset")) or not (option or _NAME_OR_NUMBER.match(variable)):
            yield Uncertain(f"A name given to {name} is not plain; bash could run a command in it.")
        elif option and name in DECLARATION_BUILTINS and set(word.text) & {"i", "n"}:
            yield Uncertain(f"{name} {word.text} makes bash compute the values of a variable.")
        elif option and name in {"mapfile", "readarray"} and "C" in word.text:
            yield Uncertain(f"{name} -C runs a command for every line it reads.")
        elif not option:
            yield SetsVariable(variable)


_NAME_OR_NUMBER: Final = re.compile(r"[^\[\]$`]*\Z")


def _printf(call: WrapperCall) -> Iterator[Finding]:
    words = call.words
    if not words:
        return
    format = words[0]
    if not format.known and format.text in {"", "-"} and (len(words) > 1 or not format.single):
        yield Uncertain("The format of printf is not known before it runs.")
    elif format.text.startswith("-v"):
        named = words[1:2] if format.text == "-v" else [format._replace(text=format.text[2:])]
        yield from _names(call._replace(words=named))


def _let(call: WrapperCall) -> Iterator[Finding]:
    for word in call.words:
        if word.known and (counting := _COUNTING.match(word.text)):
            yield SetsVariable(counting[1], counter=True)
        else:
            yield Uncertain("let computes a value that is not plain; bash could run a command in it.")


_COMPARES: Final = {
    *("=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "-o", "]", ")")
}


def _test(call: WrapperCall) -> Iterator[Finding]:
    name, words, _ = call
    for word, following in zip(words, [*words[1:], WrapperWord("]")], strict=False):
        operator = not word.known and word.text in {"", "-"} and following.text not in _COMPARES
        looks_up = word.text in {"-v", "-R"} and not (following.known and _PLAIN_NAME.match(following.text))
        if not word.single:
            yield EvaluatesArithmetic(word.raw)  # `$x` may be several words, and one of them -v
        elif operator or (looks_up and following.text not in _COMPARES):
            yield Uncertain(f"A word of {name} could be -v with a name in which bash runs a command.")


def _wait(call: WrapperCall) -> Iterator[Finding]:
    if any(not word.single or word.text.startswith("-p") for word in call.words):
        yield Uncertain("A word of wait could be -p with a name in which bash runs a command.")


_SETS_VARIABLES: Final = {"read": "REPLY", "mapfile": "MAPFILE", "readarray": "MAPFILE", "getopts": "OPTARG"}


def variables_set_by(words: Sequence[WrapperWord]) -> list[str]:
    """The variables that `printf -v`, `read`, `mapfile` and `getopts` set; "?" is one that is not known."""
    if not words or not words[0].known:
        return []
    name, rest = words[0].text, words[1:]
    if name in {"command", "builtin"}:
        return variables_set_by(rest)
    if name == "printf":
        return ["?"] if rest and (rest[0].text.startswith("-v") or (not rest[0].known and not rest[0].text)) else []
    if name not in _SETS_VARIABLES:
        return []
    names = [word.text if word.known else "?" for word in rest if not word.text.startswith("-")]
    return names or [_SETS_VARIABLES[name]]


BUILTINS: Final[dict[str, Reader]] = {
    **dict.fromkeys([*DECLARATION_BUILTINS, "read", "mapfile", "readarray", "getopts", "unset"], _names),
    **dict.fromkeys(["test", "["], _test),
    **dict.fromkeys(["source", "."], _source),
    "trap": _trap,
    "set": _set,
    "printf": _printf,
    "let": _let,
    "wait": _wait,
}
