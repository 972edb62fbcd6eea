"""Bytes of a terminal as keys, for inline mode. Pure."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

PASTE_START: Final = b"\x1b[200~"
PASTE_END: Final = b"\x1b[201~"
_SEQUENCES: Final = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1bOH": "home",
    b"\x1bOF": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[3~": "delete",
    b"\x1b[1;5C": "word_right",
    b"\x1b[1;5D": "word_left",
    b"\x1b[1;3C": "word_right",
    b"\x1b[1;3D": "word_left",
    b"\x1bf": "word_right",
    b"\x1bb": "word_left",
    b"\x1b[Z": "shift_tab",
    b"\x1b\r": "newline",
    b"\x1b\n": "newline",
    b"\x1b[13;2u": "newline",
    b"\x1b\x7f": "kill_word",
}
_CONTROLS: Final = {
    0x01: "home",
    0x03: "interrupt",
    0x04: "end_of_input",
    0x05: "end",
    0x08: "backspace",
    0x09: "tab",
    0x0A: "newline",
    0x0B: "kill_end",
    0x0C: "redraw",
    0x0D: "enter",
    0x12: "search",
    0x15: "kill_start",
    0x17: "kill_word",
    0x07: "editor",
    0x7F: "backspace",
}
_SEQUENCE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z]|[^\[O])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TypedKey:
    name: str
    """`text`, `paste`, or the name of a key."""
    text: str = ""


class KeyDecoder:
    """Collects bytes. A sequence may arrive in several reads."""

    def __init__(self) -> None:
        self._left = b""
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def is_incomplete(self) -> bool:
        """Whether an escape sequence or the Escape key was begun."""
        return bool(self._left) and not self._left.startswith(PASTE_START)

    def feed(self, data: bytes) -> list[TypedKey]:
        self._left += data
        keys: list[TypedKey] = []
        while self._left:
            key = self._next()
            if key is None:
                break
            keys.append(key)
        return _merged(keys)

    def flush(self) -> list[TypedKey]:
        """No more bytes follow soon: a lone Escape is the key."""
        left, self._left = self._left, b""
        return [TypedKey("escape")] if left.startswith(b"\x1b") else []

    def _next(self) -> TypedKey | None:
        left = self._left
        if left.startswith(PASTE_START):
            text, end, rest = left[len(PASTE_START) :].partition(PASTE_END)
            if not end:
                return None
            self._left = rest
            return TypedKey("paste", text.decode(errors="replace"))
        if left[0] == 0x1B:
            found = _SEQUENCE.match(left)
            if found is None:
                return None
            self._left = left[found.end() :]
            return TypedKey(_SEQUENCES.get(found.group(), "unknown"))
        if left[0] in _CONTROLS or left[0] < 0x20:
            self._left = left[1:]
            return TypedKey(_CONTROLS.get(left[0], "unknown"))
        self._left = left[1:]
        return TypedKey("text", self._utf8.decode(left[:1]))


def _merged(keys: list[TypedKey]) -> list[TypedKey]:
    """Neighbouring pieces of text as one."""
    merged: list[TypedKey] = []
    for key in keys:
        if key.name == "text" and merged and merged[-1].name == "text":
            merged[-1] = TypedKey("text", merged[-1].text + key.text)
        elif key.name != "text" or key.text:
            merged.append(key)
    return merged
