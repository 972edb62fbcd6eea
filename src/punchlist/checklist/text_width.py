"""The width of text in terminal cells.

ASCII takes one cell per character and needs no import of wcwidth's tables.
"""

from __future__ import annotations


def width(text: str) -> int:
    if text.isascii():
        return len(text)
    import wcwidth

    return wcwidth.width(text)


def clip(text: str, cells: int) -> str:
    """The longest prefix that fits, cut between graphemes."""
    if text.isascii():
        return text[:cells]
    import wcwidth

    taken, used = "", 0
    for grapheme in wcwidth.iter_graphemes(text):
        used += wcwidth.width(grapheme)
        if used > cells:
            break
        taken += grapheme
    return taken
