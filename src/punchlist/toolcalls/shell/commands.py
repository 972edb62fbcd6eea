"""Parses commands: lists, pipelines, compound commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from punchlist.kernel.text import excerpt
from punchlist.toolcalls.shell.builtins import DECLARATION_BUILTINS, variables_set_by
from punchlist.toolcalls.shell.conditions import ConditionParser
from punchlist.toolcalls.shell.model import (
    MAX_DEPTH,
    NAME,
    EvaluatesArithmetic,
    RunsCommand,
    RunsScript,
    SetsVariable,
    SimpleCommand,
    Uncertain,
    Unparsable,
    WrapperWord,
)
from punchlist.toolcalls.shell.redirections import Redirections
from punchlist.toolcalls.shell.words import META, NUMBER, HereDocument
from punchlist.toolcalls.shell.wrappers import find_invocations, may_run_or_set

_PLAIN_COMMAND: Final = re.compile(
    # Words of plain characters up to the end of the command, without an assignment, a comment or a redirection.
    r"(?![^ \t\n;|&)=]*=)[A-Za-z0-9_./:,@%+\-\]^}][A-Za-z0-9_./:,@%+\-\]^!}#]*+"
    r"(?:[ \t]++[A-Za-z0-9_./:,=@%+\-\]^!}][A-Za-z0-9_./:,=@%+\-\]^!}#]*+)*+(?=[ \t]*+(?:[\n;|)]|&(?!>)|\Z))"
)
_COUNTER: Final = re.compile(rf"\(\([ \t]*({NAME})(?:\+\+|--|[-+*/%]?=-?[0-9]+)[ \t]*\)\)")
_ARRAY_ITEM: Final = re.compile(r"\[(?![0-9]+\]=)")
_ASSIGNMENT: Final = re.compile(rf"({NAME})(\[[0-9]*\])?\+?=")
_SUBSCRIPT: Final = re.compile(rf"{NAME}\[")
_REDIRECTION: Final = re.compile(
    rf"([0-9]+|\{{{NAME}\}})?(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|(&>>?)",
)
_RESERVED: Final = re.compile(
    r"(?:if|then|elif|else|fi|for|select|while|until|do|done|case|esac|function|coproc|time|!|\{|\}|\[\[)"
    r"(?=(?:\\\n)*+(?:[ \t\n|&;()<>]|\Z))"
)
_LEVELS_OF_WRAPPER: Final = 3
"""A command in nine wrappers is unclear: each is judged with all words of the inner ones."""
_CLOSERS: Final = {"then", "elif", "else", "fi", "do", "done", "esac", "}"}
_CASE_END: Final = re.compile(r";;&|;;|;&")
_FUNCTION: Final = re.compile(r"\([ \t]*\)")
_NAMED_COPROC: Final = re.compile(rf"{NAME}[ \t]+(?=[({{]|(?:if|for|while|until|case|select)\b)")


class CommandParser(ConditionParser):
    """Parses commands and their parts."""

    def read_all(self) -> None:
        try:
            self.commands_until("")
            self.expansions_end()
            if self.pending:
                raise self.stop("a here-document is missing")
        except Unparsable as stop:
            self.found.is_whole = False
            self.found.doubt(str(stop))

    def script(self, text: str, within: str, level: int) -> None:
        """Parse a nested script. A syntax error in it does not end the parsing of the text around it."""
        if level >= MAX_DEPTH:
            raise Unparsable("It is nested too deeply.")
        self.found.spend(text)
        self.found.count_words()
        CommandParser(text, self.found, within, level + 1).read_all()

    def commands_until(self, *closers: str) -> str:
        """Parse commands up to and including one of `closers`; returns that one."""
        while True:
            self.newlines()
            if (closer := self.closer()) in closers:
                self.at += len(closer)
                return closer
            self.pipeline()
            self.blanks()
            if self.text.startswith(("&&", "||"), self.at):
                self.at += 2
                self.newlines()
                if self.closer() is not None:
                    raise self.stop("a command is missing")
            elif not _CASE_END.match(self.text, self.at) and self.peek() in {";", "&"}:
                self.at += 1
            elif self.peek() != "\n" and self.closer() is None:
                raise self.stop("a command does not end")

    def closer(self) -> str | None:
        char = self.peek()
        if char in {"", ")"}:
            return char
        if char == ";":
            end = _CASE_END.match(self.text, self.at)
            return end[0] if end else None
        word = _RESERVED.match(self.text, self.at)
        return word[0] if word and word[0] in _CLOSERS else None

    def pipeline(self) -> None:
        start, outer = len(self.found.commands), self.found.fed
        self.command()
        self.blanks()
        while self.peek() == "|" and self.peek(1) != "|":
            self.at += 2 if self.peek(1) == "&" else 1
            self.found.use_output(start)
            start, self.found.fed = len(self.found.commands), True
            self.newlines()
            self.command()
            self.blanks()
        self.found.fed = outer

    def command(self) -> None:
        start = len(self.found.commands)
        if self.peek() == "(":
            self.subshell()
            self.redirections_after(start)
        elif word := _RESERVED.match(self.text, self.at):
            if word[0] in _CLOSERS:
                raise self.stop("a word is out of place")
            self.at = word.end()
            outer = self.descend(self.within)
            if self.reserved(word[0]):
                self.redirections_after(start)
            self.ascend(outer)
        else:
            self.simple_command()

    def subshell(self) -> None:
        if counter := self.take(_COUNTER):
            self.found.counters.add(counter[1])
            self.found.computed.add(counter[1])
        else:
            if self.peek(1) == "(":
                self.found.doubt("Bash and sh do not agree what ((…)) is.")
            self.at += 1
            outer = self.descend(self.within)
            self.commands_until(")")
            self.ascend(outer)

    def reserved(self, word: str) -> bool:
        """Parse what follows a reserved word; False if it ends with a command that has its own redirections."""
        match word:
            case "!" | "time" | "coproc":
                self.prefix(word)
                return False
            case "function":
                self.blanks()
                self.function(self.word())
                return False
            case "{":
                self.commands_until("}")
            case "if":
                self.if_()
            case "while" | "until":
                self.commands_until("do")
                self.commands_until("done")
            case "for" | "select":
                self.for_()
            case "case":
                self.case()
            case _:
                self.condition()
        return True

    def prefix(self, word: str) -> None:
        self.blanks()
        if word != "!":
            self.emit([WrapperWord(word)])
            self.within = word
        if word == "time":
            self.take(re.compile(r"(?:-p(?=[ \t\n;|&)]|\Z)[ \t]*)?(?:--[ \t]+)?"))
        outer, start = self.found.fed, len(self.found.commands)
        if word == "coproc":
            self.take(_NAMED_COPROC)
            self.found.fed = True
        if self.peek() not in {"", "\n", ";", "&", "|", ")"}:
            self.command()
        if word == "coproc":
            self.found.use_output(start)
        self.found.fed = outer

    def if_(self) -> None:
        self.commands_until("then")
        while (closer := self.commands_until("elif", "else", "fi")) == "elif":
            self.commands_until("then")
        if closer == "else":
            self.commands_until("fi")

    def for_(self) -> None:
        self.blanks()
        if self.text.startswith("((", self.at):
            self.at += 2
            self.arithmetic(loop=True)
        else:
            self.for_words()
        self.blanks()
        if self.peek() == ";":
            self.at += 1
        self.newlines()
        opening = _RESERVED.match(self.text, self.at)
        if opening is None or opening[0] not in {"do", "{"}:
            raise self.stop("a loop is not plain")
        self.at = opening.end()
        self.commands_until("done" if opening[0] == "do" else "}")

    def for_words(self) -> None:
        name = self.take(re.compile(rf"{NAME}(?=[ \t\n;])"))
        if name is None:
            raise self.stop("a loop is not plain")
        numbers = False
        self.newlines()
        if self.take(re.compile(r"in(?=[ \t\n;])")):
            words = self.words()
            numbers = all(word.known and NUMBER.match(word.text) for word in words)
        (self.found.counters if numbers else self.found.variables).add(name[0])
        self.emit([], (name[0],))

    def case(self) -> None:
        self.blanks()
        self.word()
        self.newlines()
        if not self.take(re.compile(r"in(?=[ \t\n])")):
            raise self.stop("a case is not plain")
        while True:
            self.newlines()
            if self.closer() == "esac":
                self.at += 4
                return
            self.case_patterns()
            if self.commands_until(";;", ";&", ";;&", "esac") == "esac":
                return

    def case_patterns(self) -> None:
        if self.peek() == "(":
            self.at += 1
        while True:
            self.blanks()
            self.word()
            self.blanks()
            char = self.peek()
            self.at += 1
            if char == ")":
                return
            if char != "|":
                raise self.stop("a case is not plain")

    def function(self, name: WrapperWord) -> None:
        if not name.known:
            raise self.stop("a function's name is not known")
        self.found.functions.add(name.text)
        self.blanks()
        self.take(_FUNCTION)
        self.newlines()
        outer = self.descend("function")
        self.command()
        self.ascend(outer)

    def simple_command(self) -> None:
        words: list[WrapperWord] = []
        names: list[str] = []
        values: list[str] = []
        if plain := self.take(_PLAIN_COMMAND):
            self.plain_command(plain[0].split())
            return
        redirections = Redirections()
        start, first = self.at, len(self.found.commands)
        while self.peek() not in {"", "\n", ";", "|", ")"}:
            if redirection := self.take(_REDIRECTION):
                self.redirection(redirection, redirections)
            elif self.peek() == "&":
                break
            elif self.peek() == "(":
                self.definition(words, plain=not (names or redirections.writes))
                return
            else:
                self.command_word(words, names, values, redirections)
            self.blanks()
        if self.at == start:
            raise self.stop("a command is missing")
        self.finish(words, names, values, redirections)
        self.feed(first, redirections)

    def plain_command(self, texts: list[str]) -> None:
        """Record a command of plain words only; most are."""
        self.found.count_words(len(texts))
        if self.assigned or self.level >= MAX_DEPTH or may_run_or_set(texts[0]):
            self.finish([WrapperWord(text, True, True, text) for text in texts], (), (), None)
            return
        self.found.programs.add(texts[0])
        self.found.add(SimpleCommand(tuple(texts), True, (), (), self.within, (), (), (), self.found.fed))

    def command_word(
        self, words: list[WrapperWord], names: list[str], values: list[str], redirections: Redirections
    ) -> None:
        if redirections.both:
            self.found.doubt("Words follow &>, and a plain sh takes them for a command of their own.")
        if not words and (assignment := _ASSIGNMENT.match(self.text, self.at)):
            names.append(assignment[1])
            values += self.assignment(assignment)
            return
        if not words and _SUBSCRIPT.match(self.text, self.at):
            self.found.doubt("Bash computes a subscript, and runs commands in what it computes.")
        declared = _ASSIGNMENT.match(self.text, self.at) if words else None
        if declared and self.text.startswith("(", declared.end()):
            self.assignment(declared)
            words.append(WrapperWord(declared[0], known=False))
        else:
            words.append(self.word())

    def definition(self, words: Sequence[WrapperWord], *, plain: bool) -> None:
        if len(words) != 1 or not plain or not _FUNCTION.match(self.text, self.at):
            raise self.stop("a parenthesis is out of place")
        self.function(words[0])

    def assignment(self, match: re.Match[str]) -> list[str]:
        """Parse the value; it is returned if it is known."""
        self.at = match.end()
        name = match[1]
        if self.peek() == "(":
            self.at += 1
            self.array()
            self.found.variables.add(name)
            return []
        substitution = self.text.startswith(("<(", ">("), self.at)
        value = self.word() if substitution or (self.peek() and self.peek() not in META) else WrapperWord("")
        computed = value.raw.startswith("$((") and value.raw.endswith("))") and value.raw.count("$((") == 1
        number = (value.known and NUMBER.match(value.text)) or (computed and value.raw.count("))") == 1)
        (self.found.counters if number else self.found.variables).add(name)
        return [value.text] if value.known else []

    def array(self) -> None:
        self.newlines()
        while self.peek() != ")":
            if _ARRAY_ITEM.match(self.text, self.at):
                self.found.doubt("Bash computes a subscript, and runs commands in what it computes.")
            self.word()
            self.newlines()
        self.at += 1
        self.end_of_word()

    def finish(
        self,
        words: Sequence[WrapperWord],
        names: Sequence[str],
        values: Sequence[str],
        redirections: Redirections | None,
    ) -> None:
        self.emit(words, [*names, *variables_set_by(words)], redirections, values=values)
        self.expansions_end()
        stdin = redirections.stdin if redirections else None
        if isinstance(stdin, HereDocument):
            stdin.reader = tuple(words)
        elif words:
            self.look_inside(words, stdin, self.level)

    def expansions_end(self) -> None:
        """Record the variables that expansions have set, as a command of their own."""
        if self.assigned:
            names, self.assigned = self.assigned, []
            self.emit([], names)

    def feed(self, first: int, redirections: Redirections) -> None:
        """Record what gives the commands from `first` on their input."""
        if redirections.feed:
            commands = range(first, len(self.found.commands))
            self.found.feed(commands, *redirections.texts)
            for document in redirections.documents:
                document.commands = commands

    def redirections_after(self, start: int) -> None:
        """Parse the redirections of a compound command, such as `{ …; } > file`; it begins with command `start`."""
        redirections = Redirections()
        self.blanks()
        while redirection := self.take(_REDIRECTION):
            self.redirection(redirection, redirections)
            self.blanks()
        if redirections.writes or redirections.reads:
            self.emit([], [], redirections)
        self.feed(start, redirections)

    def emit(
        self,
        words: Sequence[WrapperWord],
        names: Sequence[str] = (),
        redirections: Redirections | None = None,
        within: str | None = None,
        values: Sequence[str] = (),
    ) -> None:
        known: list[str] = []
        for word in words:
            if not word.known:
                break
            known.append(word.text)
        writes, reads = (redirections.writes, redirections.reads) if redirections else ((), ())
        if words and words[0].text in DECLARATION_BUILTINS:
            names = [*names, *(match[1] for word in words if (match := _ASSIGNMENT.match(word.text)))]
        within = self.within if within is None else within
        rest = tuple(words[len(known) :])
        lists = tuple(names), tuple(writes), within, rest, tuple(reads), tuple(values)
        self.found.add(SimpleCommand(tuple(known), not rest, *lists, fed=self.found.fed))

    def look_inside(self, words: Sequence[WrapperWord], stdin: WrapperWord | None, level: int) -> None:
        """Record what a command runs itself."""
        if level >= MAX_DEPTH:
            raise Unparsable("It is nested too deeply.")
        if not words[0].known:
            self.found.doubt(f"The program's name is not known before it runs: {excerpt(words[0].raw, 40)}")
            return
        self.found.programs.add(words[0].text)
        for finding in find_invocations(words, stdin):
            match finding:
                case RunsCommand():
                    self.found.variables.update(finding.assignments)
                    names = [*finding.assignments, *variables_set_by(finding.words)]
                    self.emit(finding.words, names, within=finding.within)
                    self.look_inside(finding.words, stdin, level + _LEVELS_OF_WRAPPER)
                case RunsScript():
                    self.script(finding.text, finding.within, level)
                case SetsVariable():
                    (self.found.counters if finding.counter else self.found.variables).add(finding.name)
                case EvaluatesArithmetic():
                    self.compute(finding.raw)
                case Uncertain():
                    self.found.doubt(finding.reason)
