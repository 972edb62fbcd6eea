"""Checklists in Markdown: `- [ ]`, `- [x]`, nested, with common marks for other states.

Indented text under an item is its details. On export, text in it that Markdown would read as a list, a
heading, code or a comment is escaped with a backslash, which the import removes. Code blocks and comments
contain no items.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits
from punchlist.import_export.item import ExchangeItem, ParsedFile
from punchlist.import_export.reader import Reader
from punchlist.kernel.text import excerpt
from punchlist.missions.todos.lifecycle import TodoStatus

MARKS: Final = {
    TodoStatus.PENDING: " ",
    TodoStatus.IN_PROGRESS: ">",
    TodoStatus.COMPLETED: "x",
    TodoStatus.CANCELLED: "-",
}
STATES: Final = {
    **{mark: status for status, mark in MARKS.items()},
    **dict.fromkeys("~/.", TodoStatus.IN_PROGRESS),
    **dict.fromkeys("X✓✔", TodoStatus.COMPLETED),
    "": TodoStatus.PENDING,
}
INDENT: Final = 2
MAX_DEPTH: Final = 20

_ITEM: Final = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<mark>[^\]\n]?)\](?:[ \t]+(?P<title>.*))?"
)
# Excludes inline code that ends on the same line.
_FENCE: Final = re.compile(r"[ \t]*(```+(?=[^`]*$)|~~~+)(?P<info>.*)")
_COMMENT: Final = re.compile(r"[ \t]*<!--")
_HEADING: Final = re.compile(r" {0,3}#{1,6}([ \t]|$)")
_MARKUP: Final = re.compile(r"(\s*)(\\*(?:[-*+#>`~|<]|\d{1,9}[.)]))")
_ESCAPED_MARKUP: Final = re.compile(r"(\s*)\\(\\*(?:[-*+#>`~|<]|\d{1,9}[.)]))")


def _trim(item: ExchangeItem) -> ExchangeItem:
    lines = _unix_lines(item.details)
    return replace(item, details="\n".join(line if line.strip() else "" for line in lines).strip())


def _unix_lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


LIMITS: Final = FormatLimits(
    "markdown",
    frozenset({"id", "title", "details", "status"}),
    states={TodoStatus.BACKLOG: TodoStatus.PENDING},
    # The position is the only identity of an item: no id matches.
    id_form="",
    id_lost="id",
    trims={"": _trim},
)


def write(items: list[ExchangeItem]) -> str:
    lines = []
    for item in items:
        lines.append(f"- [{MARKS[item.status]}] {item.title}")
        if item.details:
            lines += [" " * INDENT + _escape(line) if line else "" for line in item.details.split("\n")]
    return "\n".join(lines) + "\n"


def _escape(line: str) -> str:
    found = _MARKUP.match(line)
    return f"{found[1]}\\{line[found.end(1) :]}" if found else line


def _unescape(line: str) -> str:
    found = _ESCAPED_MARKUP.match(line)
    return f"{found[1]}{line[found.end(1) + 1 :]}" if found else line


def read(written: str) -> ParsedFile:
    parser = _Parser()
    for number, line in enumerate(_unix_lines(written), start=1):
        parser.feed(number, line)
    return parser.result()


@dataclass(slots=True)
class _Item:
    number: int
    indent: int
    id: str
    parent: str
    mark: str
    title: str
    details: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _MarkdownBlock:
    """A fenced code block, or a comment."""

    number: int
    fence: str
    """Empty for a comment."""
    item_indent: int
    """The indent of the item that contains it; -1 without one."""

    def ends_with(self, line: str) -> bool:
        if not self.fence:
            return "-->" in line
        found = _FENCE.match(line)
        return found is not None and found[1].startswith(self.fence) and not found["info"].strip()


class _Parser:
    """Parses line by line. The open items are those under which the current line is indented."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._items: list[_Item] = []
        self._open: list[_Item] = []
        self._counts: dict[str, int] = {}
        self._block: _MarkdownBlock | None = None

    def feed(self, number: int, line: str) -> None:
        item = _ITEM.fullmatch(line)
        if self._block and item and _indent_width(line) <= self._block.item_indent:
            # A block ends with the item that contains it.
            self._block = None
        if self._block:
            if self._block.ends_with(line):
                self._block = None
            self._add_text(line, raw=True)
        elif item:
            self._add_item(number, item)
        else:
            self._add_text(line)
            if _HEADING.match(line) and not self._open:
                self._reader.remark("a heading is left out")
            self._block = _start_block(number, line, self._open[-1].indent if self._open else -1)

    def _add_item(self, number: int, found: re.Match[str]) -> None:
        indent = _indent_width(found[0])
        while self._open and self._open[-1].indent >= indent:
            self._open.pop()
        if len(self._open) == MAX_DEPTH:
            raise InvalidInput(f"line {number}: is more than {MAX_DEPTH} levels deep.")
        parent = self._open[-1].id if self._open else ""
        self._counts[parent] = self._counts.get(parent, 0) + 1
        id = f"{parent}.{self._counts[parent]}" if parent else str(self._counts[parent])
        item = _Item(number, indent, id, parent, found["mark"], (found["title"] or "").replace("\t", " ").strip())
        self._items.append(item)
        self._open.append(item)

    def _add_text(self, line: str, *, raw: bool = False) -> None:
        """Indented text belongs to its item; other text ends the list."""
        if not line.strip():
            if self._open:
                self._open[-1].details.append("")
            return
        while self._open and self._open[-1].indent >= _indent_width(line):
            self._open.pop()
        if self._open:
            line = _dedent(line, self._open[-1].indent + INDENT)
            self._open[-1].details.append(line if raw else _unescape(line))

    def result(self) -> ParsedFile:
        if not self._items:
            raise InvalidInput("It contains no checklist: no line begins with `- [ ]` or `- [x]`.")
        for item in self._items:
            where = f"line {item.number}"
            if not item.title:
                self._reader.remark(f"{where} has no text and is left out")
                continue
            if item.mark not in STATES:
                self._reader.remark(f"the mark [{excerpt(item.mark)}] becomes pending")
            self._reader.add(
                where,
                ExchangeItem(
                    title=self._reader.title(where, item.title),
                    id=self._reader.id(where, item.id),
                    details=self._reader.block(f"{where}, details", "\n".join(item.details)),
                    status=STATES.get(item.mark, TodoStatus.PENDING),
                    parent=item.parent,
                ),
            )
        if self._block:
            start = self._block.number
            self._reader.remark(f"the block that begins at line {start} has no end; no items are read after it")
        return self._reader.result()


def _start_block(number: int, line: str, item_indent: int) -> _MarkdownBlock | None:
    if fence := _FENCE.match(line):
        return _MarkdownBlock(number, fence[1], item_indent)
    return _MarkdownBlock(number, "", item_indent) if _COMMENT.match(line) and "-->" not in line else None


def _indent_width(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def _dedent(line: str, indent: int) -> str:
    if line[:indent].isspace() and "\t" not in line[:indent]:
        return line[indent:]
    return line.lstrip()
