"""Parses words: quotes, expansions, and the commands in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.shell.model import MAX_DEPTH, NAME, ParseResult, Unparsable, WrapperWord
from punchlist.toolcalls.shell.patterns import escape

META: Final = frozenset(" \t\n|&;()<>")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:,=@%+\-\]^!}#]++")
_PLAIN_WORD: Final = re.compile(rf"{_PLAIN.pattern}(?=[ \t\n|&;()]|\Z)")
"""A whole word of plain characters: most words are."""
_EMPTY_BRACES: Final = re.compile(r"\{\}(?=[A-Za-z0-9_./:=@%+-]*(?:[ \t\n|&;()<>]|\Z))")
"""They stand for themselves, as in `xargs -I{}`; bash takes `a{},b}` for `a} ab`."""
_QUOTED_PLAIN: Final = re.compile(r'[^"\\$`]+')
_BACKTICKS: Final = re.compile(r"`((?:[^`\\]++|\\.)*+)`", re.DOTALL)
_VARIABLE: Final = re.compile(rf"\$(?:{NAME}|[0-9@*#?$!-])")
_PARAMETER: Final = re.compile(rf"\$\{{(!?)(#?)({NAME}|[0-9]+|[@*#?$!-])(\[(?:[@*]|-?[0-9]+)\])?")
_MODIFIER: Final = re.compile(r"@[UuLQEAaKk]\}|:(?![-=?+])|:?[-=?+]|[#%/^,]|(?=\})")
_COUNT: Final = re.compile(r"\"?\$(?:[#?]|\{#[^}]*\})\"?\Z")
_VALUE: Final = re.compile(rf"\"?\$\{{?({NAME})\}}?\"?\Z")
NUMBER: Final = re.compile(r"-?[0-9]+\Z")
_ARITHMETIC_NAME: Final = re.compile(rf"({NAME})(\+\+|--|[ \t]*(?:[-+*/%&|^]|<<|>>)?=(?!=))?")
_ARITHMETIC_PLAIN: Final = re.compile(r"(?:0[xX][0-9A-Fa-f]+|[0-9]+(?:#[0-9A-Za-z]+)?|[ \t+\-*/%<>=!&|^~?:,])+")
_SEMICOLON: Final = re.compile(";")
_ANSI: Final = re.compile(r"\$'((?:[^'\\]++|\\.)*+)'", re.DOTALL)
_ANSI_LETTERS: Final = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


@dataclass(slots=True)
class PartialWord:
    """A word while it is parsed."""

    start: int
    parts: list[str] = field(default_factory=list)
    known: bool = True
    single: bool = True
    pattern: list[str] | None = field(default_factory=list)

    def add(self, text: str, *, quoted: bool = True) -> None:
        if self.known:
            self.parts.append(text)
        if self.pattern is not None:
            self.pattern.append(escape(text) if quoted else text)

    def add_wildcard(self, char: str) -> None:
        """`*`, `?`, `[`, `{` or `~` without quotes: the shell replaces the word."""
        self.known = False
        self.single = self.single and char == "~"
        if self.pattern is not None:
            self.pattern.append(char)

    def lose(self, *, single: bool) -> None:
        self.known = False
        self.single = self.single and single
        self.pattern = None

    def end(self, raw: str) -> WrapperWord:
        pattern = None if self.known or self.pattern is None else "".join(self.pattern)
        return WrapperWord("".join(self.parts), self.known, self.single, raw, pattern)


@dataclass(slots=True)
class HereDocument:
    delimiter: str
    quoted: bool
    tabs: bool  # `<<-`: tabs in front of its lines do not count
    reader: tuple[WrapperWord, ...] = ()  # the command that reads it
    commands: range = range(0)  # the places of all commands that can read it


class WordParser:
    """Parses words, and the commands in their substitutions."""

    def __init__(self, text: str, found: ParseResult, within: str = "", level: int = 0) -> None:
        self.text = text
        self.at = 0
        self.found = found
        self.within = within
        self.level = level
        self.pending: list[HereDocument] = []
        self.assigned: list[str] = []  # variables that expansions such as `${x:=y}` have set

    def commands_until(self, *closers: str) -> str:
        raise NotImplementedError

    def script(self, text: str, within: str, level: int) -> None:
        raise NotImplementedError

    def peek(self, offset: int = 0) -> str:
        return self.text[self.at + offset : self.at + offset + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        if match := pattern.match(self.text, self.at):
            self.at = match.end()
        return match

    def stop(self, problem: str) -> Unparsable:
        return Unparsable(
            f"It cannot be parsed as a shell command: {problem} near {excerpt(self.text[self.at :], 20)!r}."
        )

    def descend(self, within: str) -> str:
        if self.level >= MAX_DEPTH:
            raise Unparsable("It is nested too deeply.")
        self.level += 1
        outer, self.within = self.within, within
        return outer

    def ascend(self, outer: str) -> None:
        self.level -= 1
        self.within = outer

    def word(self) -> WrapperWord:
        self.found.count_words()
        if whole := self.take(_PLAIN_WORD):
            return WrapperWord(whole[0], True, True, whole[0])
        making = PartialWord(self.at)
        while self.at < len(self.text):
            if plain := self.take(_PLAIN):
                making.add(plain[0], quoted=False)
                continue
            char = self.text[self.at]
            if char in META:
                if char not in "<>" or self.peek(1) != "(":
                    break
                self.at += 2
                self.process_substitution(written=char == ">")
                making.lose(single=True)
            else:
                self.unquoted(char, making)
        if self.at == making.start:
            raise self.stop("a word is missing")
        return making.end(self.text[making.start : self.at])

    def unquoted(self, char: str, making: PartialWord) -> None:
        match char:
            case "'":
                self.single_quotes(making)
            case '"':
                self.double_quotes(making)
            case "$":
                self.dollar(making, quoted=False)
            case "`":
                self.backticks(making, quoted=False)
            case "\\":
                self.backslash(making)
            case "*" | "?" | "[" | "{" | "~":
                self.pattern(char, making)
            case _:
                if not char.isprintable() or char.isspace():
                    self.found.doubt(f"It contains a character that may separate words: {excerpt(char)}")
                making.add(char)
                self.at += 1

    def pattern(self, char: str, making: PartialWord) -> None:
        alone = self.at == making.start
        before, after = self.text[self.at - 1 : self.at], self.peek(1)
        if char == "{" and self.take(_EMPTY_BRACES):
            making.add("{}")
            return
        self.at += 1
        plain = {
            "~": not alone and before not in {":", "="},
            "[": alone and (after in META or not after),
        }
        if plain.get(char):
            making.add(char)
        else:
            making.add_wildcard(char)

    def backslash(self, making: PartialWord) -> None:
        following = self.peek(1)
        self.at += 2 if following else 1
        if following == "\n":
            if self.peek() not in {"", " ", "\t", "\n"}:
                self.found.doubt("A line ends with a backslash in the middle of a word.")
        elif following:
            making.add(following)
        else:
            raise self.stop("a backslash is the last character")

    def single_quotes(self, making: PartialWord) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise self.stop("a quote is not closed")
        making.add(self.text[self.at + 1 : end])
        self.skip_to(end + 1)

    def skip_to(self, end: int) -> None:
        if self.pending and "\n" in self.text[self.at : end]:
            self.found.doubt("A here-document begins in the middle of something else.")
        self.at = end

    def double_quotes(self, making: PartialWord) -> None:
        start = self.at
        self.at += 1
        while (char := self.peek()) != '"':
            if plain := self.take(_QUOTED_PLAIN):
                making.add(plain[0])
            elif char == "\\":
                self.quoted_backslash(making)
            elif char == "$":
                self.dollar(making, quoted=True)
            elif char == "`":
                self.backticks(making, quoted=True)
            else:
                raise self.stop("a quote is not closed")
        end, self.at = self.at + 1, start
        self.skip_to(end)

    def quoted_backslash(self, making: PartialWord) -> None:
        following = self.peek(1)
        if following != "\n":
            making.add(following if following in {"$", "`", '"', "\\"} else "\\" + following)
        self.at += 2

    def backticks(self, making: PartialWord, *, quoted: bool) -> None:
        match = _BACKTICKS.match(self.text, self.at)
        if match is None:
            raise self.stop("a backtick is not closed")
        self.skip_to(match.end())
        if '\\"' in match[1]:
            self.found.doubt("Shells do not agree about escaped quotes in backticks.")
        start = len(self.found.commands)
        self.script(re.sub(r"\\([$`\\])", r"\1", match[1]), "substitution", self.level)
        self.found.use_output(start)
        making.lose(single=quoted)

    def substitution(self) -> None:
        """Parse from after `$(` to after `)`. A here-document must not begin inside and end outside, or the reverse."""
        start, pending = self.at, self.pending
        self.pending = []
        outer = self.descend("substitution")
        first = len(self.found.commands)
        self.commands_until(")")
        self.found.use_output(first)
        self.ascend(outer)
        if self.pending:
            raise self.stop("a here-document is missing")
        end, self.at, self.pending = self.at, start, pending
        self.skip_to(end)

    def process_substitution(self, *, written: bool) -> None:
        outer = self.found.fed
        self.found.fed = outer or written
        self.substitution()
        self.found.fed = outer

    def dollar(self, making: PartialWord, *, quoted: bool) -> None:
        following = self.peek(1)
        if following == "(":
            if self.peek(2) == "(":
                self.at += 3
                self.arithmetic()
            else:
                self.at += 2
                self.substitution()
            making.lose(single=quoted)
        elif following == "{":
            self.parameter(making, quoted=quoted)
        elif variable := self.take(_VARIABLE):
            making.lose(single=variable[0][1] in "#?$!-" or (quoted and variable[0] != "$@"))
        elif following == "'" and not quoted:
            self.ansi_quotes(making)
        elif following == '"' and not quoted:
            self.at += 1
            making.lose(single=True)
            self.double_quotes(making)
        else:
            if following in {"[", "\\"}:
                self.found.doubt("A dollar sign is followed by something that shells read differently.")
            making.add("$")
            self.at += 1

    def ansi_quotes(self, making: PartialWord) -> None:
        match = _ANSI.match(self.text, self.at)
        if match is None:
            raise self.stop("a quote is not closed")
        self.skip_to(match.end())
        if "\\'" in match[1]:
            self.found.doubt("Bash and sh do not agree where a $'…' ends.")
        for part in re.split(r"(\\(?:x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{1,4}|.))", match[1], flags=re.DOTALL):
            char = _ansi_char(part) if part.startswith("\\") else part
            if char is None:
                making.lose(single=True)
            else:
                making.add(char)

    def parameter(self, making: PartialWord, *, quoted: bool) -> None:
        match = self.take(_PARAMETER)
        if match is None:
            raise self.stop("an expansion is not plain")
        indirect, _, name, subscript = match.groups()
        making.lose(single=quoted and name != "@" and subscript != "[@]" and not indirect)
        if indirect and subscript not in {"[@]", "[*]"}:
            self.found.doubt(f"Which variable is used is not known before it runs: {excerpt(match[0])}}}")
        modifier = self.take(_MODIFIER)
        if modifier is None:
            raise self.stop("an expansion is not plain")
        if modifier[0] in {"=", ":="}:
            self.found.variables.add(name)
            self.assigned.append(name)
        if modifier[0] == ":":
            self.slice()
        elif not modifier[0].endswith("}"):
            self.parameter_word(quoted=quoted)

    def slice(self) -> None:
        """`${x:1:2}`: both are arithmetic."""
        if not self.take(re.compile(r"[ ]*-?[0-9]+(:-?[0-9]+)?\}")):
            raise self.stop("an expansion is not plain")

    def parameter_word(self, *, quoted: bool) -> None:
        outer = self.descend(self.within)
        ignored = PartialWord(self.at)
        while (char := self.peek()) != "}":
            if not char:
                raise self.stop("an expansion is not closed")
            if char == "'" and not quoted:
                self.single_quotes(ignored)
            elif char == '"':
                self.double_quotes(ignored)
            elif char == "$":
                self.dollar(ignored, quoted=quoted)
            elif char == "`":
                self.backticks(ignored, quoted=quoted)
            elif char == "\\":
                self.at += 2
            else:
                if char in "'{<>":
                    self.found.doubt("Shells do not agree where an expansion ends.")
                self.at += 1
        self.at += 1
        self.ascend(outer)

    def arithmetic(self, *, loop: bool = False) -> None:
        """Parse from after `((` to after `))`."""
        outer = self.descend(self.within)
        parens = 0
        while parens or self.text[self.at : self.at + 2] != "))":
            char = self.peek()
            if name := self.take(_ARITHMETIC_NAME):
                self.found.computed.add(name[1])
                if name[2] or self.text[self.at - len(name[1]) - 2 : self.at - len(name[1])] in {"++", "--"}:
                    self.found.counters.add(name[1])
            elif char in {"$", "`"}:
                self.arithmetic_value()
            elif char in {"(", ")"}:
                parens += 1 if char == "(" else -1
                self.at += 1
            elif not self.take(_ARITHMETIC_PLAIN) and not (loop and self.take(_SEMICOLON)):
                raise self.stop("arithmetic is not plain")
            if parens < 0:
                raise self.stop("it may be arithmetic or commands,")
        self.at += 2
        self.ascend(outer)

    def arithmetic_value(self) -> None:
        start = self.at
        if self.peek() == "$":
            self.dollar(PartialWord(start), quoted=True)
        else:
            self.backticks(PartialWord(start), quoted=True)
        self.compute(self.text[start : self.at])

    def compute(self, raw: str) -> None:
        """Record that `raw` is evaluated as a number, where bash can run commands."""
        if value := _VALUE.match(raw):
            self.found.computed.add(value[1])
        elif not (_COUNT.match(raw) or NUMBER.match(raw)):
            self.found.doubt(f"A value used as a number is not known before it runs: {excerpt(raw)}")


def _ansi_char(escape: str) -> str | None:
    """The character of an escape in $'…', or None when that is not certain."""
    code = escape[1:]
    if code in _ANSI_LETTERS:
        return _ANSI_LETTERS[code]
    if code[0] in "01234567":
        value = int(code, 8)
    elif code[0] in "xu" and len(code) > 1:
        value = int(code[1:], 16)
    else:
        return None
    return chr(value) if 0 < value < 0x80 else None
