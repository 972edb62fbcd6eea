"""Long pastes: the prompt shows `[pasted 214 lines]`, the agent gets the text."""

from __future__ import annotations

import re
from typing import Final

from punchlist.kernel.text import visible_block

MAX_INLINE_LINES: Final = 8
MAX_INLINE_CHARACTERS: Final = 1_000
_MARKER: Final = re.compile(r"\[pasted [0-9,]+ (?:lines|characters)(?: #[0-9]+)?\]")


def clean_paste(text: str) -> str:
    """Pasted text with uniform line ends. Control and invisible characters become visible; tabs stay."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\t")
    return "\t".join(visible_block(part) for part in lines)


class Pastes:
    """The pastes of one prompt."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def hold(self, text: str) -> str:
        """What to insert into the prompt: the text, or the marker of a long one."""
        text = clean_paste(text)
        lines = len(text.removesuffix("\n").split("\n"))
        if lines <= MAX_INLINE_LINES and len(text) <= MAX_INLINE_CHARACTERS:
            return text
        size = f"{lines:,} lines" if lines > MAX_INLINE_LINES else f"{len(text):,} characters"
        marker = f"[pasted {size}]"
        number = 1
        while marker in self._texts and self._texts[marker] != text:
            number += 1
            marker = f"[pasted {size} #{number}]"
        self._texts[marker] = text
        return marker

    def expand(self, prompt: str) -> str:
        """The prompt with the pasted texts in place of their markers."""
        return _MARKER.sub(lambda match: self._texts.get(match.group(), match.group()), prompt)

    def marker_before(self, line: str) -> str | None:
        """The marker that ends a line, so that one key press deletes all of it."""
        return next((marker for marker in self._texts if line.endswith(marker)), None)

    def clear(self) -> None:
        self._texts.clear()
