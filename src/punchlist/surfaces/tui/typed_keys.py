"""Keys that may be answers or the beginning of a text.

A person who types a sentence while a question has the focus must not answer it. `KeyReader` decides for each letter:
it is an answer if no other letter follows within `TEXT_SECONDS`, otherwise all of it is text. Pure; the caller has
the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TEXT_SECONDS: Final = 0.15
"""Two letters within this time are text. It is below what separates single keys, and an answer is not felt to wait."""


@dataclass(slots=True)
class KeyReader:
    held: str = ""
    """An answer key that may still become text."""
    held_at: float = 0.0
    answer: str = ""
    """What the held key answers."""
    confirming: bool = False
    """Whether the answer needs the same key or Enter again."""

    def hold(self, character: str, answer: str, at: float, *, confirm: bool) -> None:
        self.held, self.answer, self.held_at, self.confirming = character, answer, at, confirm

    def text_with(self, character: str) -> str:
        """The text that a letter makes of what is held."""
        text = self.held + character
        self.clear()
        return text

    def confirms(self, character: str | None, key: str) -> bool:
        return self.confirming and (key == "enter" or character == self.held)

    def clear(self) -> None:
        self.held, self.answer, self.confirming = "", "", False
