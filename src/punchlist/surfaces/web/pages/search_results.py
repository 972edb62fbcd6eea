"""A result of the search page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    text: str
    matches: bool = False


class Result(NamedTuple):
    icon: str
    title: Sequence[Part]
    place: str
    url: str
    detail: Sequence[Part] = ()
    at: str | None = None
    posts: bool = False
    """Whether choosing it sends a form to its address."""

    def has(self, text: str) -> bool:
        """Whether each word is in the title or the place."""
        name = f"{''.join(part.text for part in self.title)} {self.place}".lower()
        return all(word in name for word in text.split())


def plain(text: str) -> Sequence[Part]:
    return (Part(text),)
