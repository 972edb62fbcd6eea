"""Quotes an agent's text inside a system message: every line is marked, so that none can pass for the system's."""

from __future__ import annotations

from typing import Final

from punchlist.kernel.text import ELLIPSIS, visible_block

MAX_LENGTH: Final = 20_000
MAX_STORED_LENGTH: Final = 200_000
"""For messages stored in a chat."""


def block_quote(text: str, max_length: int = MAX_LENGTH) -> str:
    stripped = text.strip().replace("\r\n", "\n")
    if not stripped:
        return ""
    cut = stripped if len(stripped) <= max_length else stripped[: max_length - 1] + ELLIPSIS
    return "\n".join(f"> {line}".rstrip() for line in visible_block(cut).split("\n"))


def quote_verbatim(text: str) -> str:
    """Unescaped, for a message stored in a chat."""
    cut = text if len(text) <= MAX_STORED_LENGTH else text[: MAX_STORED_LENGTH - 1] + ELLIPSIS
    return "\n".join(f"> {line}" for line in cut.split("\n"))


def unquote(text: str) -> str:
    return "\n".join(line.removeprefix("> ") for line in text.split("\n"))
