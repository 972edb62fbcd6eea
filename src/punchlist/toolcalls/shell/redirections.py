"""Parses redirections and here-documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from punchlist.toolcalls.shell.model import WrapperWord
from punchlist.toolcalls.shell.words import META, HereDocument, PartialWord, WordParser

BLANKS: Final = re.compile(r"(?:[ \t]|\\\n)*+")
_BLANK_OR_COMMENT: Final = frozenset(" \t\\#")
_COMMENT: Final = re.compile(r"#[^\n]*")
_DELIMITER: Final = re.compile(r"(['\"]?)(\\?)([A-Za-z0-9_.+-]+)\1(?=[ \t\n|&;()<>]|\Z)")
_CLOSES: Final = re.compile("-")
_DESCRIPTOR: Final = re.compile(r"[0-9]*-?\Z")
_NETWORK: Final = ("/dev/tcp/", "/dev/udp/")


@dataclass(slots=True)
class Redirections:
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    stdin: WrapperWord | HereDocument | None = None
    both: bool = False
    feed: bool = False  # one of them gives the command input
    texts: list[str] = field(default_factory=list)
    documents: list[HereDocument] = field(default_factory=list)

    def input(self, number: str | None, operator: str, source: WrapperWord | HereDocument) -> None:
        """Record a redirection of standard input: a shell runs what the last one provides."""
        if (number or ("0" if operator.startswith("<") else "1")).strip("0") == "":
            self.stdin = source if operator.startswith("<<") else None


def _may_connect(target: WrapperWord) -> bool:
    """Whether bash may open a network connection for a redirection: reading from one also sends."""
    text = re.sub("//+", "/", target.text)
    return text.startswith(_NETWORK) or (not target.known and any(name.startswith(text) for name in _NETWORK))


def _feeds(number: str | None, operator: str, target: WrapperWord) -> bool:
    """Whether a redirection gives the command input, by any descriptor: a program can read /dev/fd/3."""
    if operator == ">&":
        return number is not None and number.strip("0") == ""
    return operator.startswith("<") and not (target.known and target.text == "/dev/null")


class RedirectionParser(WordParser):
    """Parses redirections, here-documents and blanks."""

    def look_inside(self, words: Sequence[WrapperWord], stdin: WrapperWord | None, level: int) -> None:
        raise NotImplementedError

    def blanks(self) -> None:
        if self.text[self.at : self.at + 1] not in _BLANK_OR_COMMENT:
            return
        self.take(BLANKS)
        if self.text.startswith("#", self.at):
            self.take(_COMMENT)

    def newlines(self) -> None:
        self.blanks()
        while self.peek() == "\n":
            self.at += 1
            if self.pending:
                self.here_documents()
            self.blanks()

    def words(self) -> list[WrapperWord]:
        words: list[WrapperWord] = []
        self.blanks()
        while self.peek() not in {"", "\n", ";"}:
            words.append(self.word())
            self.blanks()
        return words

    def end_of_word(self) -> None:
        if self.peek() and self.peek() not in META:
            raise self.stop("a word is not plain")

    def redirection(self, match: re.Match[str], redirections: Redirections) -> None:
        operator = match[2] or match[3]
        if len(match[1] or "") > 1:
            self.found.doubt("Bash and sh do not agree what is in front of a redirection.")
        self.blanks()
        if operator in {"<<", "<<-"}:
            document = self.here_document(tabs=operator == "<<-")
            redirections.documents.append(document)
            redirections.feed = True
            redirections.input(match[1], operator, document)
            return
        if operator in {">&", "<&"} and self.take(_CLOSES):
            self.end_of_word()  # bash takes `>&-x` for `>&- x`
            redirections.input(match[1], operator, WrapperWord("-"))
            return
        target = self.word()
        redirections.input(match[1], operator, target._replace(text=target.text + "\n"))
        redirections.both = redirections.both or operator.startswith("&")
        redirections.feed = redirections.feed or _feeds(match[1], operator, target)
        if operator == "<<<":
            redirections.texts.append(target.text if target.known else target.raw)
        is_descriptor = operator in {"<&", ">&"} and target.known and _DESCRIPTOR.match(target.text)
        if operator in {"<", "<&", "<>"} and not is_descriptor:
            redirections.reads.append(target.text if target.known else "?")
        if operator in {"<<<", "<", "<&"}:
            if operator == "<" and _may_connect(target):
                redirections.writes.append(target.text if target.known else "?")
        elif not target.known:
            redirections.writes.append("?")
        elif target.text != "/dev/null" and not is_descriptor:
            redirections.writes.append(target.text)

    def here_document(self, *, tabs: bool) -> HereDocument:
        match = self.take(_DELIMITER)
        if match is None or (match[1] and match[2]):
            raise self.stop("the end of a here-document is not plain")
        self.pending.append(HereDocument(match[3], bool(match[1] or match[2]), tabs))
        return self.pending[-1]

    def here_documents(self) -> None:
        pending, self.pending = self.pending, []
        for document in pending:
            self.read_here_document(document)

    def read_here_document(self, document: HereDocument) -> None:
        lines: list[str] = []
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            line = line.lstrip("\t") if document.tabs else line
            if line == document.delimiter:
                break
            lines.append(line)
        else:
            self.found.doubt("A here-document does not end.")
        body = "".join(f"{line}\n" for line in lines)
        self.found.spend(body)
        known = document.quoted or not re.search(r"[$`\\]", body)
        if not known:
            inner = type(self)(body, self.found, "substitution", self.level + 1)
            inner.expansions()
            self.assigned += inner.assigned
        self.found.feed(document.commands, body)
        if document.reader:
            start = len(self.found.commands)
            self.look_inside(document.reader, WrapperWord(body, known), self.level)
            self.found.feed(range(start, len(self.found.commands)), body)

    def expansions(self) -> None:
        """Parse the substitutions in the body of a here-document."""
        ignored = PartialWord(0)
        while char := self.peek():
            if char == "$":
                self.dollar(ignored, quoted=True)
            elif char == "`":
                self.backticks(ignored, quoted=False)
            elif char == "\\":
                if self.peek(1) == "\n":
                    self.found.doubt("A line of a here-document ends with a backslash.")
                self.at += 2
            else:
                self.take(re.compile(r"[^$`\\]+"))
