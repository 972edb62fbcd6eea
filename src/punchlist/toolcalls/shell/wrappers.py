"""What a command runs besides itself: `sudo rm x`, `bash -c '…'`, `xargs rm`, `find -exec …`, `trap '…' EXIT`.

`runs` is pure: words in, findings out. It reads only the options it knows. An option it does not know could take the
next word as its value, and then the program would be another word; so that is a `Doubt`, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_ASSIGNMENT: Final = re.compile(rf"({NAME}|BASH_FUNC_[^=]*)\+?=")
_PLAIN_NAME: Final = re.compile(rf"{NAME}\Z")
_COUNTING: Final = re.compile(rf"({NAME})(\+\+|--|[-+*/%]?=-?[0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class WrapperWord:
    text: str  # its value, up to the first part that is not known
    known: bool = True
    single: bool = True  # it is one word, whatever its value turns out to be
    raw: str = ""


UNKNOWN: Final = WrapperWord("", known=False, single=False)


@dataclass(frozen=True, slots=True)
class RunsCommand:
    words: tuple[WrapperWord, ...]
    within: str
    assignments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunsScript:
    text: str
    within: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    reason: str


@dataclass(frozen=True, slots=True)
class SetsVariable:
    """A variable gets a value by a builtin; `counter` when that can only be a number."""

    name: str
    counter: bool = False


@dataclass(frozen=True, slots=True)
class EvaluatesArithmetic:
    """This may be used as a number, and bash runs commands in what is used as a number."""

    raw: str


Finding = RunsCommand | RunsScript | Uncertain | SetsVariable | EvaluatesArithmetic
Words = Sequence[WrapperWord]


@dataclass(frozen=True, slots=True)
class WrapperCall:
    name: str
    words: Words  # without the program
    stdin: WrapperWord | None


Reader = Callable[[WrapperCall], Iterator[Finding]]


def program_name(word: WrapperWord) -> str:
    """The name to look up: without folder, and in small letters since some file systems do not tell them apart."""
    return word.text.rsplit("/", 1)[-1].lower().removesuffix(".exe")


def find_invocations(words: Words, stdin: WrapperWord | None) -> Iterator[Finding]:
    """What `words`, a command whose first word is known, runs or may run. `stdin` is its here-document, if any."""
    name = program_name(words[0])
    if words[0].text.startswith(("-", "=")):
        yield Uncertain(f"A program named {words[0].text!r} is read differently by different shells.")
    interpreter = re.match(r"(python|perl|ruby|node|php|lua)[0-9.]*\Z", name)
    try:
        if interpreter:
            yield from _interpreter(WrapperCall(interpreter[1], words[1:], stdin))
        elif reader := _READERS.get(name):
            yield from reader(WrapperCall(name, words[1:], stdin))
    except _Unread:
        yield Uncertain(f"The options of {name} leave open which program it runs.")


class _Unread(Exception):
    """These options cannot be read."""


@dataclass(frozen=True, slots=True)
class WrapperOptions:
    flags: str = ""
    valued: str = ""
    long: str = ""
    long_valued: str = ""
    operands: int = 0  # words between the options and the program, as the seconds of `timeout 5 ls`
    assignments: bool = False
    silent: str = ""  # with one of these nothing is run


@dataclass(slots=True)
class _Read:
    at: int = 0
    assignments: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


def _read_options(options: WrapperOptions, words: Words) -> _Read:
    read = _Read()
    ended = False
    while read.at < len(words):
        word = words[read.at]
        if options.assignments and "=" in word.text and (ended or not word.text.startswith("-")):
            read.assignments.append(_assigned(word))
            read.at += 1
        elif ended or (word.known and not word.text.startswith("-")):
            break
        elif not word.known:
            raise _Unread
        elif word.text == "--":
            ended = True
            read.at += 1
        else:
            _read_option(options, words, read)
    for operand in words[read.at : read.at + options.operands]:
        if not operand.single:
            raise _Unread
    read.at += options.operands
    return read


def _assigned(word: WrapperWord) -> str:
    assignment = _ASSIGNMENT.match(word.text)
    if assignment is None or not word.single:
        raise _Unread
    return assignment[1]


def _read_option(options: WrapperOptions, words: Words, read: _Read) -> None:
    text = words[read.at].text
    read.at += 1
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        if name in options.long_valued.split():
            read.values[name] = value if equals else _value(words, read)
        elif name not in options.long.split():
            raise _Unread
        read.seen.add(name)
        return
    if text == "-":
        raise _Unread
    for place, letter in enumerate(text[1:], start=2):
        read.seen.add(letter)
        if letter in options.valued:
            read.values[letter] = text[place:] or _value(words, read)
            return
        if letter not in options.flags + options.silent:
            raise _Unread


def _value(words: Words, read: _Read) -> str:
    if read.at >= len(words) or not words[read.at].single:
        raise _Unread
    read.at += 1
    return words[read.at - 1].text


_WRAPPERS: dict[str, WrapperOptions] = {
    "sudo": WrapperOptions(
        "ABbEHKklNnPSsiVv",
        "CDgpRrTtUu",
        "askpass background bell list login non-interactive preserve-env set-home shell stdin validate version",
        "chdir chroot close-from command-timeout group other-user prompt role type user",
        assignments=True,
    ),
    "doas": WrapperOptions("n", "Cu"),
    "env": WrapperOptions("i0v", "uC", "ignore-environment null debug", "unset chdir", assignments=True),
    "nice": WrapperOptions("0123456789", "n", "", "adjustment"),
    "ionice": WrapperOptions("t", "cn"),
    "nohup": WrapperOptions(),
    "timeout": WrapperOptions("fpv", "ks", "foreground preserve-status verbose", "kill-after signal", operands=1),
    "time": WrapperOptions("apvq", "fo", "append portability quiet verbose", "format output"),
    "stdbuf": WrapperOptions("", "ioe", "", "input output error"),
    "setsid": WrapperOptions("cfw", "", "ctty fork wait"),
    "exec": WrapperOptions("cl", "a"),
    "command": WrapperOptions("p", silent="vV"),
    "builtin": WrapperOptions(),
    "busybox": WrapperOptions(),
    "toybox": WrapperOptions(),
}
_WRAPPERS |= {f"g{name}": _WRAPPERS[name] for name in ("env", "nice", "nohup", "timeout", "time", "stdbuf")}

_XARGS: Final = WrapperOptions(
    "0oprtx",
    "aEdILnPs",
    "exit interactive no-run-if-empty null open-tty show-limits verbose",
    "arg-file delimiter max-args max-chars max-procs process-slot-var",
)
_WATCH: Final = WrapperOptions("bcegtwx", "n", "beep color errexit chgexit no-title no-wrap exec", "interval")
_PARALLEL: Final = WrapperOptions(
    "0ktuvX", "jnN", "bar dry-run halt-on-error keep-order line-buffer ungroup verbose", "jobs"
)
_ASKS_SUDO: Final = {*"lvkKV", "list", "validate", "version"}


def _wrapper(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    options = _WRAPPERS[name]
    read = _read_options(options, words)
    rest = tuple(words[read.at :])
    if rest and not read.seen & set(options.silent):
        yield RunsCommand(rest, name, tuple(read.assignments))
    elif name == "sudo" and not read.seen & _ASKS_SUDO:
        yield Uncertain("sudo without a command starts a shell that reads its commands from its input.")


def _replaced(words: Words, mark: str) -> tuple[WrapperWord, ...]:
    """The words in which `mark` is replaced by something that is not known before it runs."""
    return tuple(replace(w, text=w.text.partition(mark)[0], known=False) if mark in w.text else w for w in words)


def _xargs(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    read = _read_options(_XARGS, words)
    if rest := tuple(words[read.at :]):
        mark = read.values.get("I")
        yield RunsCommand((*(_replaced(rest, mark) if mark else rest), UNKNOWN), name)


def _could_be_an_action(word: WrapperWord) -> bool:
    return not word.known and not (word.single and word.text and word.text[0] not in "-(!,);+")


def _find(call: WrapperCall) -> Iterator[Finding]:
    words = call.words
    if any(map(_could_be_an_action, words)):
        yield Uncertain("A word of find is not known before it runs; it could be -exec.")
    at = 0
    while at < len(words):
        action = words[at].text
        at += 1
        if action not in {"-exec", "-execdir", "-ok", "-okdir"}:
            continue
        start = at
        while at < len(words) and not _ends_action(words, at):
            at += 1
        if inner := words[start:at]:
            yield RunsCommand(_replaced(inner, "{}"), f"find {action}")


def _ends_action(words: Words, at: int) -> bool:
    return words[at].text == ";" or (words[at].text == "+" and words[at - 1].text == "{}")


def _joined(name: str, words: Words) -> Iterator[Finding]:
    if all(word.known for word in words):
        yield RunsScript(" ".join(word.text for word in words), name)
    else:
        yield Uncertain(f"What {name} runs is not known before it runs.")


def _eval(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    yield from _joined(name, words[1:] if words and words[0].text == "--" else words)


def _watch(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    read = _read_options(_WATCH, words)
    yield from _joined(name, words[read.at :])
    if read.seen & {"x", "exec"} and words[read.at :]:
        yield RunsCommand(tuple(words[read.at :]), name)


def _parallel(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    yield Uncertain("parallel makes its commands from its arguments and its input.")
    read = _read_options(_PARALLEL, words)
    rest = list(words[read.at :])
    ends = [at for at, word in enumerate(rest) if word.text.startswith(":::")]
    template = rest[: ends[0]] if ends else rest
    if template and all(word.known for word in template):
        yield RunsScript(" ".join(word.text for word in template), name)


_SHELLS: Final = ["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"]
_SHELL_FLAGS: Final = frozenset("abefhiklmnprtuvxBCEHPTcs")
_SHELL_LONG: Final = {"--login", "--norc", "--noprofile", "--posix", "--verbose", "--restricted", "--noediting"}
# Bash takes them with one dash as well, and `-rcfile x` is not `-c` with a text.
_SHELL_NAMES: Final = re.compile(r"-(login|norc|noprofile|posix|verbose|restricted|noediting|rcfile|debug|help)")
_INPUT: Final = re.compile(r"(/dev/stdin|/dev/fd/.*|/proc/.*/fd/.*)\Z")


def _shell(call: WrapperCall) -> Iterator[Finding]:
    name, words, stdin = call.name, call.words, call.stdin
    if any(word.text in {"--version", "--help"} for word in words[:1]):
        return
    letters, at = _shell_options(words)
    if "i" in letters:
        yield Uncertain(f"{name} -i reads aliases and functions from files.")
    first = words[at] if at < len(words) else None
    if "c" in letters:
        if first is None or not first.known:
            yield Uncertain(f"What {name} -c runs is not known before it runs.")
        else:
            yield RunsScript(first.text, f"{name} -c")
    elif first is None or "s" in letters or _INPUT.match(first.text):
        if stdin is not None and stdin.known:
            yield RunsScript(stdin.text, f"{name} <<")
        else:
            yield Uncertain(f"{name} reads its commands from its input.")
    elif not first.known:
        yield Uncertain(f"Which script {name} runs is not known before it runs.")


def _shell_options(words: Words) -> tuple[set[str], int]:
    letters: set[str] = set()
    at = 0
    while at < len(words) and words[at].text[:1] in {"-", "+"}:
        text = words[at].text
        at += 1
        if not words[at - 1].known:
            raise _Unread
        if text in {"-", "--"}:
            break
        if text in _SHELL_LONG:
            continue
        if _SHELL_NAMES.match(text):
            raise _Unread
        named = sum(letter in "oO" for letter in text)
        if set(text[1:]) - _SHELL_FLAGS - {"o", "O"} or any(not word.known for word in words[at : at + named]):
            raise _Unread
        if text[0] == "+" and "c" in text:
            raise _Unread
        letters |= set(text[1:])
        at += named
    return letters, at


_TELLS: Final = {"--version", "--help", "-h", "-V", "--eval", "--print"}
_CODE_OPTIONS: Final = {"python": "cm", "perl": "eE", "ruby": "e", "node": "ep", "php": "r", "lua": "e"}


def _interpreter(call: WrapperCall) -> Iterator[Finding]:
    """Code in another language is not taken apart; but code that is not even in the line is said to be unknown."""
    name, words, stdin = call.name, call.words, call.stdin
    script = None
    for word in words:
        if not word.text.startswith("-") or word.text == "-":
            script = word
            break
        short = "" if word.text.startswith("--") else word.text[1:]
        if word.text in _TELLS or (word.text == "-v" and name != "python") or set(short) & set(_CODE_OPTIONS[name]):
            return
    if script is None or script.text == "-" or _INPUT.match(script.text):
        if stdin is None or not stdin.known:
            yield Uncertain(f"{name} reads its program from its input.")
    elif not script.known and not script.text:
        yield Uncertain(f"Which program {name} runs is not known before it runs.")


def _source(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    if any(not word.known or _INPUT.match(word.text) for word in words[:2]):
        yield Uncertain(f"What {name} reads is not known before it runs.")


def _trap(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    words = words[1:] if words and words[0].text == "--" else words
    if any(not word.known for word in words):
        yield Uncertain("What trap runs is not known before it runs.")
    elif len(words) > 1 and words[0].text not in {"-", "-l", "-p"}:
        yield RunsScript(words[0].text, name)


def _opaque(call: WrapperCall) -> Iterator[Finding]:
    if call.words:
        yield Uncertain(f"{call.name} can run or redefine commands in ways that are not taken apart.")


def _always_opaque(call: WrapperCall) -> Iterator[Finding]:
    yield Uncertain(f"{call.name} can run commands in ways that are not taken apart.")


def _set(call: WrapperCall) -> Iterator[Finding]:
    for word in call.words:
        if word.text == "--":
            return
        letters = word.text[1:] if word.text[:1] in {"-", "+"} else ""
        if not word.known or word.text in {"history", "histexpand", "keyword"} or set(letters) & {"H", "k"}:
            yield Uncertain("set changes how the rest of the line is read.")


# Bash computes the subscript in a name that a builtin is given, and a subscript may hold a command:
# `read 'a[$(rm x)]'`. So a name must be known and plain.
def _names(call: WrapperCall) -> Iterator[Finding]:
    name, words = call.name, call.words
    for word in words:
        variable = word.text.partition("=")[0].removesuffix("+")
        assigned = _ASSIGNMENT.match(word.text) is not None
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
DECLARATION_BUILTINS: Final = {"declare", "typeset", "local", "export", "readonly"}


def _printf(call: WrapperCall) -> Iterator[Finding]:
    words = call.words
    if not words:
        return
    format = words[0]
    if not format.known and format.text in {"", "-"} and (len(words) > 1 or not format.single):
        yield Uncertain("The format of printf is not known before it runs.")
    elif format.text.startswith("-v"):
        named = words[1:2] if format.text == "-v" else [replace(format, text=format.text[2:])]
        yield from _names(replace(call, words=named))


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
    name, words = call.name, call.words
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


_OPAQUE: Final = [
    *("alias", "hash", "enable", "complete", "compgen", "bind", "fc"),
    *("repeat", "noglob", "nocorrect", "foreach", "emulate", "sched"),
]
_ALWAYS_OPAQUE: Final = [
    *("su", "runuser", "pkexec", "sg", "newgrp", "chroot", "unshare", "nsenter", "systemd-run", "fakeroot", "ld.so"),
    *(
        "script",
        "flock",
        "strace",
        "ltrace",
        "taskset",
        "chrt",
        "setarch",
        "unbuffer",
        "at",
        "batch",
        "crontab",
        "entr",
    ),
    *("fish", "csh", "tcsh", "pwsh", "powershell", "cmd", "nu", "elvish", "xonsh"),
]

_READERS: Final[dict[str, Reader]] = {
    **dict.fromkeys(_WRAPPERS, _wrapper),
    **dict.fromkeys(_SHELLS, _shell),
    **dict.fromkeys(_OPAQUE, _opaque),
    **dict.fromkeys(_ALWAYS_OPAQUE, _always_opaque),
    **dict.fromkeys([*DECLARATION_BUILTINS, "read", "mapfile", "readarray", "getopts", "unset"], _names),
    **dict.fromkeys(["test", "["], _test),
    **dict.fromkeys(["source", "."], _source),
    **dict.fromkeys(["xargs", "gxargs"], _xargs),
    **dict.fromkeys(["find", "gfind"], _find),
    "eval": _eval,
    "watch": _watch,
    "parallel": _parallel,
    "trap": _trap,
    "set": _set,
    "printf": _printf,
    "let": _let,
    "wait": _wait,
}
