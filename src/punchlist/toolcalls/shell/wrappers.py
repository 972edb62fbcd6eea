"""Finds what a command runs besides itself: `sudo rm x`, `bash -c '…'`, `xargs rm`, `find -exec …`.

`find_invocations` is a pure function from words to findings. It reads only known options: an unknown option could take
the next word as its value, and the program would be another word. So an unknown option is `Uncertain`, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from punchlist.toolcalls.shell.builtins import BUILTINS, STANDARD_INPUT
from punchlist.toolcalls.shell.model import (
    ASSIGNMENT,
    UNKNOWN,
    Finding,
    Reader,
    RunsCommand,
    RunsScript,
    Uncertain,
    UnreadableOptions,
    Words,
    WrapperCall,
    WrapperWord,
)


def program_name(word: WrapperWord) -> str:
    """The name to look up: without folder, and in lower case since some file systems ignore case."""
    return word.text.rsplit("/", 1)[-1].lower().removesuffix(".exe")


_INTERPRETER: Final = re.compile(r"(python|perl|ruby|node|php|lua)[0-9.]*\Z")


def find_invocations(words: Words, stdin: WrapperWord | None) -> Iterator[Finding]:
    """What a command whose first word is known runs or may run. `stdin` is its here-document, if any."""
    name = program_name(words[0])
    if words[0].text.startswith(("-", "=")):
        yield Uncertain(f"A program named {words[0].text!r} is parsed differently by different shells.")
    interpreter = _INTERPRETER.match(name)
    try:
        if interpreter:
            yield from _interpreter(WrapperCall(interpreter[1], words[1:], stdin))
        elif reader := _READERS.get(name):
            yield from reader(WrapperCall(name, words[1:], stdin))
    except UnreadableOptions:
        yield Uncertain(f"The options of {name} do not determine which program it runs.")


def is_wrapper(program: str) -> bool:
    """Whether a command of this program is read in full: what it runs is listed, or the line is unclear."""
    return program_name(WrapperWord(program)) in _READ_IN_FULL


def words_not_read(words: Sequence[str]) -> Sequence[str]:
    """The arguments that the parser has not read: it has read the script of `bash -c SCRIPT`."""
    if program_name(WrapperWord(words[0])) in _SHELLS:
        try:
            letters, at = _shell_options([WrapperWord(word) for word in words[1:]])
        except UnreadableOptions:
            return words[1:]
        if "c" in letters:
            return (*words[1 : at + 1], *words[at + 2 :])
    return words[1:]


@lru_cache(maxsize=1_024)
def may_run_or_set(program: str) -> bool:
    """Whether a program of this name may run something besides itself, or set variables."""
    name = program_name(WrapperWord(program))
    return program.startswith(("-", "=")) or name in _READERS or _INTERPRETER.match(name) is not None


@dataclass(frozen=True, slots=True)
class WrapperOptions:
    flags: str = ""
    valued: str = ""
    long: str = ""
    long_valued: str = ""
    operands: int = 0  # words between the options and the program, as the seconds of `timeout 5 ls`
    assignments: bool = False
    silent: str = ""  # with one of these it runs nothing


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
            raise UnreadableOptions
        elif word.text == "--":
            ended = True
            read.at += 1
        else:
            _read_option(options, words, read)
    for operand in words[read.at : read.at + options.operands]:
        if not operand.single:
            raise UnreadableOptions
    read.at += options.operands
    return read


def _assigned(word: WrapperWord) -> str:
    assignment = ASSIGNMENT.match(word.text)
    if assignment is None or not word.single:
        raise UnreadableOptions
    return assignment[1]


def _read_option(options: WrapperOptions, words: Words, read: _Read) -> None:
    text = words[read.at].text
    read.at += 1
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        if name in options.long_valued.split():
            read.values[name] = value if equals else _value(words, read)
        elif name not in options.long.split():
            raise UnreadableOptions
        read.seen.add(name)
        return
    if text == "-":
        raise UnreadableOptions
    for place, letter in enumerate(text[1:], start=2):
        read.seen.add(letter)
        if letter in options.valued:
            read.values[letter] = text[place:] or _value(words, read)
            return
        if letter not in options.flags + options.silent:
            raise UnreadableOptions


def _value(words: Words, read: _Read) -> str:
    if read.at >= len(words) or not words[read.at].single:
        raise UnreadableOptions
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
    name, words, _ = call
    options = _WRAPPERS[name]
    read = _read_options(options, words)
    rest = tuple(words[read.at :])
    if rest and not read.seen & set(options.silent):
        yield RunsCommand(rest, name, tuple(read.assignments))
    elif name == "sudo" and not read.seen & _ASKS_SUDO:
        yield Uncertain("sudo without a command starts a shell that reads its commands from its input.")


def _replaced(words: Words, mark: str) -> tuple[WrapperWord, ...]:
    """The words with `mark` replaced by an unknown value."""
    return tuple(
        w._replace(text=w.text.partition(mark)[0], known=False, pattern=None)
        if mark in w.text or (not w.known and mark in w.raw)
        else w
        for w in words
    )


def _xargs(call: WrapperCall) -> Iterator[Finding]:
    name, words, _ = call
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
    name, words, _ = call
    yield from _joined(name, words[1:] if words and words[0].text == "--" else words)


def _watch(call: WrapperCall) -> Iterator[Finding]:
    name, words, _ = call
    read = _read_options(_WATCH, words)
    yield from _joined(name, words[read.at :])
    if read.seen & {"x", "exec"} and words[read.at :]:
        yield RunsCommand(tuple(words[read.at :]), name)


def _parallel(call: WrapperCall) -> Iterator[Finding]:
    name, words, _ = call
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


def _shell(call: WrapperCall) -> Iterator[Finding]:
    name, words, stdin = call
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
    elif first is None or "s" in letters or STANDARD_INPUT.match(first.text):
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
            raise UnreadableOptions
        if text in {"-", "--"}:
            break
        if text in _SHELL_LONG:
            continue
        if _SHELL_NAMES.match(text):
            raise UnreadableOptions
        named = sum(letter in "oO" for letter in text)
        if set(text[1:]) - _SHELL_FLAGS - {"o", "O"} or any(not word.known for word in words[at : at + named]):
            raise UnreadableOptions
        if text[0] == "+" and "c" in text:
            raise UnreadableOptions
        letters |= set(text[1:])
        at += named
    return letters, at


_TELLS: Final = {"--version", "--help", "-h", "-V", "--eval", "--print"}
_CODE_OPTIONS: Final = {"python": "cm", "perl": "eE", "ruby": "e", "node": "ep", "php": "r", "lua": "e"}


def _interpreter(call: WrapperCall) -> Iterator[Finding]:
    """Code in another language is not parsed; code that is not in the line is reported as unknown."""
    name, words, stdin = call
    script = None
    for word in words:
        if not word.text.startswith("-") or word.text == "-":
            script = word
            break
        short = "" if word.text.startswith("--") else word.text[1:]
        if word.text in _TELLS or (word.text == "-v" and name != "python") or set(short) & set(_CODE_OPTIONS[name]):
            return
    if script is None or script.text == "-" or STANDARD_INPUT.match(script.text):
        if stdin is None or not stdin.known:
            yield Uncertain(f"{name} reads its program from its input.")
    elif not script.known and not script.text:
        yield Uncertain(f"Which program {name} runs is not known before it runs.")


def _opaque(call: WrapperCall) -> Iterator[Finding]:
    if call.words or call.name in _ALWAYS_OPAQUE:
        yield Uncertain(f"{call.name} can run or redefine commands in ways that are not parsed.")


_OPAQUE: Final = [
    *("alias", "hash", "enable", "complete", "compgen", "bind", "fc"),
    *("repeat", "noglob", "nocorrect", "foreach", "emulate", "sched"),
]
_ALWAYS_OPAQUE: Final = {
    *("su", "runuser", "pkexec", "sg", "newgrp", "chroot", "unshare", "nsenter", "systemd-run", "fakeroot", "ld.so"),
    *("script", "flock", "strace", "ltrace", "taskset", "chrt", "setarch", "unbuffer"),
    *("at", "batch", "crontab", "entr"),
    *("fish", "csh", "tcsh", "pwsh", "powershell", "cmd", "nu", "elvish", "xonsh"),
}

_READ_IN_FULL: Final = frozenset((*_WRAPPERS, "xargs", "gxargs", "find", "gfind", "eval"))
_READERS: Final[dict[str, Reader]] = {
    **BUILTINS,
    **dict.fromkeys(_WRAPPERS, _wrapper),
    **dict.fromkeys(_SHELLS, _shell),
    **dict.fromkeys([*_OPAQUE, *_ALWAYS_OPAQUE], _opaque),
    **dict.fromkeys(["xargs", "gxargs"], _xargs),
    **dict.fromkeys(["find", "gfind"], _find),
    "eval": _eval,
    "watch": _watch,
    "parallel": _parallel,
}


def may_run_anything(program: str) -> bool:
    """Whether a program runs what its arguments say in a way that is not parsed: `script -c`, `su -c`."""
    return program in _ALWAYS_OPAQUE or program == "parallel"
