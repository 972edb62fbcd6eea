"""How many terminal cells text takes.

ASCII takes one cell a character, and most lists are ASCII; only others pay for loading the tables.
"""

from __future__ import annotations


def width(text: str) -> int:
    if text.isascii():
        return len(text)
    import wcwidth

    return wcwidth.width(text)


def clip(text: str, cells: int) -> str:
    """The longest beginning that fits, without cutting a character people see as one."""
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
