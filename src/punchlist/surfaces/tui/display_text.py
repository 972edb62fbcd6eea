"""Stored text as content for the screen. All text is data: control characters are escaped, markup is never parsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from punchlist.kernel.text import visible, visible_block

TAB: Final = 4
MAX_CHARACTERS: Final = 20_000
"""Of one text on the screen. More would take longer to wrap than a person can read."""
ELLIPSIS: Final = "…"


def block(text: str) -> str:
    """Text of several lines, safe to show."""
    cut = text[: MAX_CHARACTERS + 1]
    shown = visible_block(cut[:MAX_CHARACTERS].replace("\r\n", "\n").expandtabs(TAB))
    more = len(text) - MAX_CHARACTERS
    return shown if more <= 0 else f"{shown}\n{ELLIPSIS} {more:,} more characters; /export writes them all"


def line(text: object, limit: int = 1_000) -> str:
    """Text on one line, safe to show."""
    shown = visible(str(text)[:limit].strip().expandtabs(TAB).replace("\n", " "))
    return shown if len(str(text)) <= limit else shown + ELLIPSIS


def plain(text: str, style: str = "") -> Content:
    return Content.styled(text, style) if style else Content(text)


def assemble(*parts: str | tuple[str, str] | Content) -> Content:
    return Content.assemble(*parts)


def hang(content: Content, width: int, first: Content | str = "", rest: str | None = None) -> list[Content]:
    """Wrap at `width` columns; the first line begins with `first`, the others with `rest` or as many blanks."""
    head = first if isinstance(first, Content) else Content(first)
    indent = Content(" " * head.cell_length if rest is None else rest)
    lines = content.wrap(max(width - head.cell_length, 4)) or [Content("")]
    return [Content("").join([head if number == 0 else indent, part]) for number, part in enumerate(lines)]


def cells(content: Content) -> int:
    """The columns of one line. Textual counts separators of joined content twice."""
    return Content(content.plain).cell_length


def pack(parts: Sequence[Content], width: int, separator: Content) -> list[Content]:
    """As many parts on each line as fit. A part is not broken; one that is longer than a line is cut."""
    rows: list[list[Content]] = []
    used = 0
    for part in parts:
        if rows and used + separator.cell_length + part.cell_length <= width:
            rows[-1].append(part)
            used += separator.cell_length + part.cell_length
        else:
            rows.append([cut(part, width)])
            used = part.cell_length
    return [separator.join(row) for row in rows]


def fold(content: Content, width: int, prefix: str = "") -> list[Content]:
    """Cut into lines of `width` columns without looking for words: code and output keep their blanks."""
    head = Content(prefix)
    pieces = content.fold(max(width - head.cell_length, 4)) if content.cell_length else [content]
    return [Content("").join([head, piece]) for piece in pieces]


def cut(content: Content, width: int) -> Content:
    return content.truncate(max(width, 1), ellipsis=True)


def justified(left: Content, right: Content, width: int) -> Content:
    """Two texts at the ends of one line. The left one is cut; the right one is left out where there is no room."""
    if right.cell_length + 8 > width:
        return cut(left, width)
    room = width - right.cell_length - 2
    return Content("").join([cut(left, room).pad_right(max(room - cut(left, room).cell_length, 0) + 2), right])
