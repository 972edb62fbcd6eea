"""Markdown as lines of a given width, with hanging indents.

One message is drawn by one widget line by line, so a long conversation costs no widgets. HTML is shown as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from textual.content import Content

from punchlist.surfaces.tui.display_text import block, fold, hang
from punchlist.surfaces.tui.theme import SIGNS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BULLETS: Final = "•◦▪"
_TASKS: Final = {"[ ] ": SIGNS["pending"], "[x] ": SIGNS["completed"]}
_QUOTE: Final = "▎ "
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

        self._handlers: dict[str, Callable[[Sequence[Token]], None]] = {
            "heading_open": self._heading,
            "paragraph_open": self._paragraph,
            "fence": self._code,
            "code_block": self._code,
            "blockquote_open": lambda _: self._indents.append(_QUOTE),
            "blockquote_close": self._end_quote,
            "bullet_list_open": lambda _: self._lists.append(None),
            "ordered_list_open": lambda tokens: self._lists.append(int(tokens[0].attrGet("start") or 1)),
            "bullet_list_close": self._end_list,
            "ordered_list_close": self._end_list,
            "list_item_open": self._begin_item,
            "list_item_close": self._end_item,
            "hr": self._rule,
            "table_open": self._table,
        }

    def render(self, tokens: Sequence[Token]) -> None:
        for position, token in enumerate(tokens):
            if handler := self._handlers.get(token.type):
                handler(tokens[position:] if token.nesting == 1 else [token])

    def _heading(self, tokens: Sequence[Token]) -> None:
        self._write(inline(tokens[1]).stylize_before(_HEADINGS.get(tokens[0].tag, "bold $quiet")))
        self._gap()

    def _paragraph(self, tokens: Sequence[Token]) -> None:
        content = inline(tokens[1])
        if self._marker is not None and (sign := _TASKS.get(content.plain[:4].lower())):
            # The sign takes the place of the bullet.
            self._marker = f"{sign} ".ljust(len(self._marker))
            content = content[4:]
        self._write(content)
        if not tokens[0].hidden:
            self._gap()

    def _end_quote(self, _: Sequence[Token]) -> None:
        self._indents.pop()
        if self._lines and not self._lines[-1].plain.strip(_QUOTE):
            self._lines.pop()
        self._gap()

    def _end_list(self, _: Sequence[Token]) -> None:
        self._lists.pop()
        if not self._lists:
            self._gap()

    def _end_item(self, _: Sequence[Token]) -> None:
        self._indents.pop()
        self._marker = None

    def _rule(self, _: Sequence[Token]) -> None:
        self._put(Content.styled("─" * (self._width - self._indent_width), "$rule"))
        self._gap()

    @property
    def _indent_width(self) -> int:
        return sum(map(len, self._indents))

    def _begin_item(self, _: Sequence[Token]) -> None:
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
        if self._lines and self._lines[-1].plain.strip(_QUOTE):
            self._lines.append(Content.styled("".join(self._indents), "$quiet") if self._indents else Content(""))

    def _code(self, tokens: Sequence[Token]) -> None:
        language = next(iter(tokens[0].info.split()), "")
        for part in highlighted(tokens[0].content.rstrip("\n"), language).split("\n", allow_blank=True):
            for piece in fold(part, self._width - self._indent_width - 2):
                self._put(Content("").join([Content.styled("│ ", "$rule"), piece]))
        self._gap()

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[Content]] = []
        for token in takewhile(lambda token: token.type != "table_close", tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(inline(token))
        columns = max(map(len, rows))
        room = max((self._width - self._indent_width - 3 * (columns - 1)) // columns, 4)
        widths = [
            min(max((row[at].cell_length for row in rows if at < len(row)), default=1), room) for at in range(columns)
        ]
        for number, row in enumerate(rows):
            cells = [row[at].wrap(widths[at]) if at < len(row) else [Content("")] for at in range(columns)]
            for height in range(max(map(len, cells))):
                parts = [(cell[height] if height < len(cell) else Content("")) for cell in cells]
                padded = [part.pad_right(max(widths[at] - part.cell_length, 0)) for at, part in enumerate(parts)]
                line = Content.styled(" │ ", "$rule").join(padded)
                self._put(line.stylize_before("bold") if number == 0 else line)
            if number == 0:
                self._put(Content.styled("─┼─".join("─" * size for size in widths), "$rule"))
        self._gap()


def inline(token: Token) -> Content:
    """The content of one inline token: emphasis, code, links and breaks."""
    parts: list[Content] = []
    styles: list[str] = []
    links: list[str] = []
    for child in token.children or ():
        if child.nesting == 1:
            styles.append(_EMPHASIS.get("link" if child.type == "link_open" else child.tag, ""))
            links.append(str(child.attrGet("href") or ""))
        elif child.nesting == -1:
            styles.pop()
            address = links.pop()
            # The address is always on the screen: a text cannot pretend to lead elsewhere.
            if address and (not parts or parts[-1].plain != address):
                parts.append(Content.styled(f" ({address})", "$quiet"))
        else:
            parts.append(_inline_part(child, " ".join(styles)))
    return Content("").join(parts)


def _inline_part(token: Token, style: str) -> Content:
    match token.type:
        case "code_inline":
            return Content.styled(token.content, "$code")
        case "softbreak":
            return Content(" ")
        case "hardbreak":
            return Content("\n")
        case "image":
            return Content.styled(f"[image: {token.content or token.attrGet('src')}]", "$quiet")
    return Content.styled(token.content, style)


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
