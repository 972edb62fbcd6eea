"""Checklists in Markdown: `- [ ]`, `- [x]`, nested, and the marks that people use for more states.

A text under an item, indented, is its details. What is in it that Markdown would take for a list, a
heading, code or a comment is written with a backslash before it, and read back without. In code and in
comments there are no items.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.import_export.format_limits import FormatLimits, nesting_levels
from punchlist.import_export.item import ExchangeItem, Loss, ParsedFile
from punchlist.import_export.reader import Reader
from punchlist.kernel.text import excerpt
from punchlist.missions.todos.lifecycle import TodoStatus

WRITTEN: Final = {
    TodoStatus.PENDING: " ",
    TodoStatus.IN_PROGRESS: ">",
    TodoStatus.COMPLETED: "x",
    TodoStatus.CANCELLED: "-",
}
MARKS: Final = {
    **{mark: status for status, mark in WRITTEN.items()},
    **dict.fromkeys("~/.", TodoStatus.IN_PROGRESS),
    **dict.fromkeys("X✓✔", TodoStatus.COMPLETED),
    "": TodoStatus.PENDING,
}
STEP: Final = 2
"""Blanks that a part is indented by, and what is said of an item."""

DEEPEST: Final = 20

_ITEM: Final = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<mark>[^\]\n]?)\](?:[ \t]+(?P<title>.*))?"
)
# Not code between backticks that ends on its line.
_FENCE: Final = re.compile(r"[ \t]*(```+(?=[^`]*$)|~~~+)(?P<info>.*)")
_COMMENT: Final = re.compile(r"[ \t]*<!--")
_HEADING: Final = re.compile(r" {0,3}#{1,6}([ \t]|$)")
_ACTS: Final = re.compile(r"(\s*)(\\*(?:[-*+#>`~|<]|\d{1,9}[.)]))")
_ESCAPED: Final = re.compile(r"(\s*)\\(\\*(?:[-*+#>`~|<]|\d{1,9}[.)]))")


def _trim(entries: list[ExchangeItem]) -> tuple[list[ExchangeItem], list[Loss]]:
    return [replace(entry, details=_plain(entry.details)) for entry in entries], []


def _plain(details: str) -> str:
    """With line ends as we write them, and nothing on lines that are blank."""
    lines = details.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line if line.strip() else "" for line in lines).strip()


SHAPE: Final = FormatLimits(
    "markdown",
    frozenset({"id", "title", "details", "status", "parent"}),
    states={TodoStatus.BACKLOG: TodoStatus.PENDING},
    tree=True,
    # Where an item stands is all there is to tell it from others.
    id_form=lambda _id, _parent: False,
    numbered=lambda number, parent: f"{parent}.{number}" if parent else str(number),
    id_lost="id",
    trim=_trim,
)


def write(entries: list[ExchangeItem]) -> str:
    levels = nesting_levels(entries)
    lines = []
    for entry in entries:
        indent = " " * STEP * levels[entry.id]
        lines.append(f"{indent}- [{WRITTEN[entry.status]}] {entry.title}")
        if entry.details:
            within = indent + " " * STEP
            lines += [within + _kept(line) if line else "" for line in entry.details.split("\n")]
    return "\n".join(lines) + "\n"


def _kept(line: str) -> str:
    found = _ACTS.match(line)
    return f"{found[1]}\\{line[found.end(1) :]}" if found else line


def _told(line: str) -> str:
    found = _ESCAPED.match(line)
    return f"{found[1]}{line[found.end(1) + 1 :]}" if found else line


def read(written: str) -> ParsedFile:
    reader = _Reading()
    for number, line in enumerate(written.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        reader.line(number, line)
    return reader.found()


class _Reading:
    """One line after the other; the items that are open at a line are those that it is indented under."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._items: list[_Item] = []
        self._open: list[_Item] = []
        self._counts: dict[str, int] = {}
        self._block: _Block | None = None

    def line(self, number: int, line: str) -> None:
        item = _ITEM.fullmatch(line)
        if self._block and item and _width(line) <= self._block.within:
            # What is in an item ends with it.
            self._block = None
        if self._block:
            if self._block.ends(line):
                self._block = None
            self._text(line, as_is=True)
        elif item:
            self._item(number, item)
        else:
            self._text(line)
            if _HEADING.match(line) and not self._open:
                self._reader.remark("a heading is left out")
            self._block = _block(number, line, self._open[-1].indent if self._open else -1)

    def _item(self, number: int, found: re.Match[str]) -> None:
        indent = _width(found[0])
        while self._open and self._open[-1].indent >= indent:
            self._open.pop()
        if len(self._open) == DEEPEST:
            raise InvalidInput(f"line {number}: is more than {DEEPEST} levels deep.")
        parent = self._open[-1].id if self._open else ""
        self._counts[parent] = self._counts.get(parent, 0) + 1
        id = SHAPE.numbered(self._counts[parent], parent)
        item = _Item(number, indent, id, parent, found["mark"], (found["title"] or "").replace("\t", " ").strip())
        self._items.append(item)
        self._open.append(item)

    def _text(self, line: str, *, as_is: bool = False) -> None:
        """What is indented under an item belongs to it; other text ends the list, or has nothing to do with it."""
        if not line.strip():
            if self._open:
                self._open[-1].details.append("")
            return
        while self._open and self._open[-1].indent >= _width(line):
            self._open.pop()
        if self._open:
            told = _outdented(line, self._open[-1].indent + STEP)
            self._open[-1].details.append(told if as_is else _told(told))

    def found(self) -> ParsedFile:
        if not self._items:
            raise InvalidInput("There is no checklist in it: no line begins with `- [ ]` or `- [x]`.")
        for item in self._items:
            where = f"line {item.number}"
            if item.title:
                self._reader.add(where, item.entry(self._reader, where))
            else:
                self._reader.remark(f"{where} says nothing and is left out")
        if self._block:
            self._reader.remark(f"what begins at line {self._block.number} has no end; no items are read after it")
        return self._reader.done()


@dataclass(frozen=True, slots=True)
class _Block:
    """Code between fences, or a comment."""

    number: int
    fence: str
    """Empty for a comment."""
    within: int
    """How far the item is indented that it is a part of; -1 without one."""

    def ends(self, line: str) -> bool:
        if not self.fence:
            return "-->" in line
        found = _FENCE.match(line)
        return found is not None and found[1].startswith(self.fence) and not found["info"].strip()


def _block(number: int, line: str, within: int) -> _Block | None:
    """What begins with a line and goes on after it."""
    if fence := _FENCE.match(line):
        return _Block(number, fence[1], within)
    return _Block(number, "", within) if _COMMENT.match(line) and "-->" not in line else None


def _width(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


class _Item:
    def __init__(self, number: int, indent: int, id: str, parent: str, mark: str, title: str) -> None:
        self.number = number
        self.indent = indent
        self.id = id
        self.details: list[str] = []
        self._parent = parent
        self._mark = mark
        self.title = title

    def entry(self, reader: Reader, where: str) -> ExchangeItem:
        if self._mark not in MARKS:
            reader.remark(f"the mark [{excerpt(self._mark)}] is taken as pending")
        return ExchangeItem(
            title=reader.title(where, self.title),
            id=reader.id(where, self.id),
            details=reader.block(f"{where}, what is said under it", "\n".join(self.details)),
            status=MARKS.get(self._mark, TodoStatus.PENDING),
            parent=self._parent,
        )


def _outdented(line: str, indent: int) -> str:
    """Without the blanks that put it under its item."""
    if line[:indent].isspace() and "\t" not in line[:indent]:
        return line[indent:]
    return line.lstrip()
