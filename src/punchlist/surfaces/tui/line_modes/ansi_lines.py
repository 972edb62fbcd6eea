"""Content of the full screen as text with ANSI styles, in the terminal's own 16 colours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from textual.content import Content

_CODES: Final = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "strike": "9",
    "reverse": "7",
    "$needs-you": "33",
    "$working": "34",
    "$done": "32",
    "$failed": "31",
    "$quiet": "2",
    "$code": "35",
    "$added": "32",
    "$removed": "31",
    "$rule": "2",
    "$primary": "34",
    "$accent": "34",
    "$warning": "33",
    "$error": "31",
    "$success": "32",
}


def ansi(content: Content, *, color: bool) -> str:
    """One line. Without `color`, the text alone."""
    if not color:
        return content.plain.rstrip()
    plain, edges = content.plain, {0, len(content.plain)}
    for span in content.spans:
        edges |= {span.start, span.end}
    places = sorted(edge for edge in edges if edge <= len(plain))
    return "".join(_piece(content, start, end) for start, end in pairwise(places)).rstrip()


def _piece(content: Content, start: int, end: int) -> str:
    styles = [str(span.style) for span in content.spans if span.start <= start and end <= span.end]
    codes = list(_codes(styles))
    text = content.plain[start:end]
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text


def _codes(styles: list[str]) -> Iterator[str]:
    for style in styles:
        # Backgrounds are left out: the terminal's own is used.
        foreground = style.partition(" on ")[0]
        yield from (code for word in foreground.split() if (code := _CODES.get(word)))
