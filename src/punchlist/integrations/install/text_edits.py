"""Editing a text by places: what is not named stays, to the byte."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_AROUND: Final = 40


class TextEdit(NamedTuple):
    """Put `text` in the place of what is from `start` to `end`."""

    start: int
    end: int
    text: str


class InsertedText(NamedTuple):
    """Something that was put into a text, and what it is between."""

    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text with our entries in it.

    `inserted` are the pieces that were put in, if nothing was replaced: whoever takes them out again has every other
    byte as it is by then. `made` are the ways to the tables that were not there before.
    """

    text: str
    inserted: tuple[InsertedText, ...] = ()
    made: tuple[tuple[str, ...], ...] = ()


class UneditableFile(Exception):
    """A file's text cannot be worked with; where in it, and why."""

    def __init__(self, why: str, line: int | None = None) -> None:
        self.why = why
        self.line = line
        super().__init__(why)


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """All at once: places are those of `text`. Edits do not overlap; at one place they go in as they come."""
    parts, at = list[str](), 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += (text[at:start], new)
        at = end
    return "".join((*parts, text[at:]))


def insertions(text: str, edits: Iterable[TextEdit]) -> tuple[InsertedText, ...]:
    """What edits put into a text, neighbours as one piece; nothing if they also take something away."""
    put = dict[int, str]()
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        if start != end:
            return ()
        put[start] = put.get(start, "") + new
    after = apply(text, (TextEdit(place, place, new) for place, new in put.items()))
    pieces, moved = list[InsertedText](), 0
    for place, new in put.items():
        start = place + moved
        moved += len(new)
        end = place + moved
        pieces.append(InsertedText(after[max(0, start - _AROUND) : start], new, after[end : end + _AROUND]))
    return tuple(pieces)


def without_pieces(text: str, pieces: Iterable[InsertedText]) -> str | None:
    """`text` less the pieces, as far as each is to be found in one place only; else None."""
    cuts = list[TextEdit]()
    for piece in pieces:
        start = _only_place(text, piece)
        if start is None:
            return None
        cuts.append(TextEdit(start, start + len(piece.text), ""))
    cuts.sort()
    if any(one.end > after.start for one, after in pairwise(cuts)):
        return None
    return apply(text, cuts)


def _only_place(text: str, piece: InsertedText) -> int | None:
    """Where a piece is. Somebody may have edited what is around it."""
    before, new, after = piece
    for left, right in ((before, after), (before, ""), ("", after), ("", "")):
        start = text.find(left + new + right)
        if start >= 0 and text.find(left + new + right, start + 1) < 0:
            return start + len(left)
    return None


def newline(text: str) -> str:
    """How the text ends its lines."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
