"""What an agent said, as part of what the system says: every line is marked, so that none passes for another's."""

from __future__ import annotations

from typing import Final

from punchlist.kernel.text import ELLIPSIS, visible_block

MAX_LENGTH: Final = 20_000
MAX_STORED_LENGTH: Final = 200_000
"""In a chat, where it is kept."""


def block_quote(text: str, longest: int = MAX_LENGTH) -> str:
    said = text.strip().replace("\r\n", "\n")
    if not said:
        return ""
    cut = said if len(said) <= longest else said[: longest - 1] + ELLIPSIS
    return "\n".join(f"> {line}".rstrip() for line in visible_block(cut).split("\n"))


def quote_verbatim(text: str) -> str:
    """As it came, for a chat, where it is kept."""
    cut = text if len(text) <= MAX_STORED_LENGTH else text[: MAX_STORED_LENGTH - 1] + ELLIPSIS
    return "\n".join(f"> {line}" for line in cut.split("\n"))


def unquote(text: str) -> str:
    return "\n".join(line.removeprefix("> ") for line in text.split("\n"))
