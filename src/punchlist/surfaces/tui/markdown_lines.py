"""Markdown as lines of a given width, with hanging indents.

One message is drawn by one widget line by line, so a long conversation costs no widgets. HTML is shown as text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from textual.content import Content

from punchlist.surfaces.tui.display_text import block, fold, hang

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BULLETS: Final = "•◦▪"
_HEADINGS: Final = {"h1": "bold underline $primary", "h2": "bold $primary", "h3": "bold"}
_EMPHASIS: Final = {"strong": "bold", "em": "italic", "s": "strike", "link": "underline $primary"}
_MAX_HIGHLIGHTED: Final = 8_000
"""Characters of code; longer code is shown without colours."""


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def markdown_lines(text: str, width: int) -> list[Content]:
    """The lines of a text; at least one."""
    lines: list[Content] = []
    _Renderer(max(width, 8), lines).render(_parser().parse(block(text)))
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return lines or [Content("")]


class _Renderer:
    def __init__(self, width: int, lines: list[Content]) -> None:
        self._width = width
        self._lines = lines
        self._indents: list[str] = []
        """What every line of the current block begins with."""
        self._marker: str | None = None
        """The bullet or number of a list item, until its first line is written."""
        self._lists: list[int | None] = []
        """The next number of each open list; None for bullets."""

    def render(self, tokens: list[Token]) -> None:
        position = 0
        while position < len(tokens):
            token = tokens[position]
            match token.type:
                case "heading_open":
                    style = _HEADINGS.get(token.tag, "bold $quiet")
                    self._write(inline(tokens[position + 1]).stylize_before(style))
                    self._gap()
                case "paragraph_open":
                    self._write(inline(tokens[position + 1]))
                    if not token.hidden:
                        self._gap()
                case "fence" | "code_block":
                    self._code(token.content, token.info.split()[0] if token.info.split() else "")
                case "blockquote_open":
                    self._indents.append("▎ ")
                case "blockquote_close":
                    self._indents.pop()
                    if self._lines and not self._lines[-1].plain.strip("▎ "):
                        self._lines.pop()
                    self._gap()
                case "bullet_list_open":
                    self._lists.append(None)
                case "ordered_list_open":
                    self._lists.append(int(token.attrGet("start") or 1))
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                    if not self._lists:
                        self._gap()
                case "list_item_open":
                    self._begin_item()
                case "list_item_close":
                    self._indents.pop()
                    self._marker = None
                case "hr":
                    self._put(Content.styled("─" * (self._width - self._indent_width), "$rule"))
                    self._gap()
                case "table_open":
                    position = self._table(tokens, position)
                case "html_block":
                    self._write(Content(token.content.rstrip()))
                    self._gap()
            position += 1

    @property
    def _indent_width(self) -> int:
        return sum(map(len, self._indents))

    def _begin_item(self) -> None:
        number = self._lists[-1]
        if number is None:
            marker = f"{BULLETS[min(len(self._lists), len(BULLETS)) - 1]} "
        else:
            marker, self._lists[-1] = f"{number}. ", number + 1
        self._marker = marker
        self._indents.append(" " * len(marker))

    def _head(self) -> Content:
        """The beginning of the next line: indents, and the marker of an item that has none yet."""
        marker, self._marker = self._marker, None
        indents = self._indents[:-1] if marker is not None else self._indents
        parts: list[Content] = [Content.styled(indent, "$quiet") for indent in indents]
        if marker is not None:
            parts.append(Content.styled(marker, "$quiet"))
        return Content("").join(parts)

    def _put(self, content: Content) -> None:
        self._lines.append(Content("").join([self._head(), content]))

    def _write(self, content: Content) -> None:
        for part in content.split("\n", allow_blank=True):
            for wrapped in part.wrap(max(self._width - self._indent_width, 4)) or [Content("")]:
                self._put(wrapped)

    def _gap(self) -> None:
        if self._lines and self._lines[-1].plain.strip("▎ "):
            self._lines.append(Content.styled("".join(self._indents), "$quiet") if self._indents else Content(""))

    def _code(self, code: str, language: str) -> None:
        for part in highlighted(code.rstrip("\n"), language).split("\n", allow_blank=True):
            for piece in fold(part, self._width - self._indent_width - 2):
                self._put(Content("").join([Content.styled("│ ", "$rule"), piece]))
        self._gap()

    def _table(self, tokens: list[Token], start: int) -> int:
        """Write a table; returns the position of its end."""
        rows: list[list[Content]] = []
        position = start
        while tokens[position].type != "table_close":
            match tokens[position].type:
                case "tr_open":
                    rows.append([])
                case "inline":
                    rows[-1].append(inline(tokens[position]))
            position += 1
        columns = max(map(len, rows))
        room = max((self._width - self._indent_width - 3 * (columns - 1)) // columns, 4)
        widths = [
            min(max((row[at].cell_length for row in rows if at < len(row)), default=1), room) for at in range(columns)
        ]
        for number, row in enumerate(rows):
            cells = [row[at].wrap(widths[at]) if at < len(row) else [Content("")] for at in range(columns)]
            for height in range(max(map(len, cells))):
                parts = [
                    (cell[height] if height < len(cell) else Content("")) for cell in cells
                ]
                padded = [part.pad_right(max(widths[at] - part.cell_length, 0)) for at, part in enumerate(parts)]
                line = Content.styled(" │ ", "$rule").join(padded)
                self._put(line.stylize_before("bold") if number == 0 else line)
            if number == 0:
                self._put(Content.styled("─┼─".join("─" * size for size in widths), "$rule"))
        self._gap()
        return position


def inline(token: Token) -> Content:
    """The content of one inline token: emphasis, code, links and breaks."""
    parts: list[Content] = []
    styles: list[str] = []
    links: list[str] = []
    for child in token.children or ():
        match child.type:
            case "text" | "html_inline":
                parts.append(Content.styled(child.content, " ".join(styles)))
            case "code_inline":
                parts.append(Content.styled(child.content, "$code"))
            case "softbreak":
                parts.append(Content(" "))
            case "hardbreak":
                parts.append(Content("\n"))
            case "image":
                parts.append(Content.styled(f"[image: {child.content or child.attrGet('src')}]", "$quiet"))
            case "link_open":
                styles.append(_EMPHASIS["link"])
                links.append(str(child.attrGet("href") or ""))
            case "link_close":
                styles.pop()
                address = links.pop()
                # The address is always on the screen: a text cannot pretend to lead elsewhere.
                if address and (not parts or parts[-1].plain != address):
                    parts.append(Content.styled(f" ({address})", "$quiet"))
            case _ if child.nesting == 1:
                styles.append(_EMPHASIS.get(child.tag, ""))
            case _ if child.nesting == -1:
                styles.pop()
    return Content("").join(parts)


def highlighted(code: str, language: str) -> Content:
    if not language or len(code) > _MAX_HIGHLIGHTED:
        return Content(code)
    from textual.highlight import highlight

    return highlight(code, language=language)


def text_lines(text: str, width: int, style: str = "") -> list[Content]:
    """A text without Markdown, wrapped."""
    return [
        wrapped
        for part in block(text).split("\n")
        for wrapped in hang(Content.styled(part, style) if style else Content(part), width)
    ]
