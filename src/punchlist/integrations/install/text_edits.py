"""Edits of a text by position; everything else stays byte-identical."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_CONTEXT: Final = 40

Path = tuple[str, ...]
"""The keys that lead to a table in a settings file."""


class TextEdit(NamedTuple):
    """Replace `start:end` with `text`."""

    start: int
    end: int
    text: str


class InsertedText(NamedTuple):
    """An inserted text and its context."""

    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class EditedText:
    """A text with our entries.

    `inserted` has all insertions if nothing was replaced: removing them restores every other byte. `created` has the
    paths of tables that did not exist before.
    """

    text: str
    inserted: tuple[InsertedText, ...] = ()
    created: tuple[Path, ...] = ()


class UneditableFile(Exception):
    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason)


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Apply all edits at once. They must not overlap; insertions at one position keep their order."""
    parts, position = list[str](), 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += (text[position:start], new)
        position = end
    return "".join((*parts, text[position:]))


def inserted_texts(text: str, edits: Iterable[TextEdit]) -> tuple[InsertedText, ...]:
    """The insertions of edits, joined per position; empty if an edit removes something."""
    by_position = dict[int, str]()
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        if start != end:
            return ()
        by_position[start] = by_position.get(start, "") + new
    edited = apply_edits(text, (TextEdit(position, position, new) for position, new in by_position.items()))
    found, shift = list[InsertedText](), 0
    for position, new in by_position.items():
        start = position + shift
        shift += len(new)
        end = position + shift
        found.append(InsertedText(edited[max(0, start - _CONTEXT) : start], new, edited[end : end + _CONTEXT]))
    return tuple(found)


def remove_inserted(text: str, inserted: Iterable[InsertedText]) -> str | None:
    """Remove insertions; None if one cannot be located without ambiguity."""
    cuts = list[TextEdit]()
    for piece in inserted:
        start = _locate(text, piece)
        if start is None:
            return None
        cuts.append(TextEdit(start, start + len(piece.text), ""))
    cuts.sort()
    if any(cut.end > following.start for cut, following in pairwise(cuts)):
        return None
    return apply_edits(text, cuts)


def _locate(text: str, piece: InsertedText) -> int | None:
    """The only position of an insertion. Its context may have been edited."""
    before, new, after = piece
    for left, right in ((before, after), (before, ""), ("", after), ("", "")):
        start = text.find(left + new + right)
        if start >= 0 and text.find(left + new + right, start + 1) < 0:
            return start + len(left)
    return None


def line_ending(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
