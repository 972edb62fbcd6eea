"""An estimate of the tokens of a text, for texts that no provider has counted yet.

About four ASCII characters are a token, as in English and in code. Any other character counts as a token of its own,
which is about right for Chinese, Japanese and Korean and too much for other alphabets: an estimate that is too low
would exceed limits.
"""

from __future__ import annotations

from typing import Final

CHARACTERS_PER_TOKEN: Final = 4


def weighted_length(text: str) -> int:
    """The characters of a text, where each that is not ASCII counts as `CHARACTERS_PER_TOKEN`."""
    if text.isascii():
        return len(text)
    ascii_characters = len(text.encode("ascii", errors="ignore"))
    return ascii_characters + (len(text) - ascii_characters) * CHARACTERS_PER_TOKEN


def estimated_tokens(text: str) -> int:
    return weighted_length(text) // CHARACTERS_PER_TOKEN


def clipped(text: str, limit: int) -> str:
    """The longest beginning of a text whose weighted length is within the limit."""
    if weighted_length(text) <= limit:
        return text
    least, most = 0, min(len(text), max(limit, 0))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if weighted_length(text[:middle]) <= limit else (least, middle - 1)
    return text[:least]
