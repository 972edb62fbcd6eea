"""Streamed text that is not stored yet: what a model is writing and what running calls print.

A piece says how many characters came before it. A piece that does not fit is shown after a gap sign; the stored message
replaces all of it as soon as it is there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from punchlist.models.model import REPLY_BROKEN
from punchlist.surfaces.tui.entries import ReplyEntry

if TYPE_CHECKING:
    from punchlist.views.live_text import LiveText

GAP: Final = "…"
MAX_KEPT: Final = 18_000
"""Characters of the end of a text that are kept: less than `display_text.MAX_CHARACTERS`."""
CUT_TO: Final = 12_000
"""A longer text loses its first paragraphs at once, so that what is drawn of it stays valid for a while."""


def live_id(turn_id: str) -> str:
    """The id of the entry for the text that a turn is streaming."""
    return f"live:{turn_id}"


@dataclass(slots=True)
class LiveBuffer:
    _replies: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By turn: the number of characters received, and the end of the text."""
    _outputs: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By call."""
    _changed: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    """Turns whose reply is stored, but was not read yet."""

    def add(self, piece: LiveText) -> None:
        texts, key = (self._replies, piece.turn_id) if piece.call_id is None else (self._outputs, piece.call_id)
        if piece.ended:
            if piece.call_id is not None:
                texts.pop(key, None)
            elif key in texts:
                self.ended.add(key)
            return
        if key in self.ended:
            # The next reply of the turn begins.
            self.ended.discard(key)
            texts.pop(key, None)
        length, text = texts.get(key, (0, ""))
        if piece.position == 0 and length:
            length, text = 0, ""
        elif piece.position > length:
            text += GAP
        texts[key] = (piece.position + len(piece.text), _end(text + piece.text))
        self._changed.add(key)

    def take_replies(self, turn_id: str | None) -> list[ReplyEntry]:
        """The entries of replies that have grown. `turn_id` is the turn of the conversation; others are workers'."""
        return [
            ReplyEntry(
                live_id(key),
                text.rpartition(REPLY_BROKEN)[2].lstrip(),
                "worker",
                int(key != turn_id),
                is_streaming=True,
            )
            for key, (_, text) in self._replies.items()
            if key in self._changed and text.strip()
        ]

    def take_outputs(self) -> dict[str, str]:
        """The output of calls that have printed more, by call."""
        return {key: text for key, (_, text) in self._outputs.items() if key in self._changed}

    def taken(self, *, but: Collection[str] = ()) -> None:
        """All was drawn, `but` the output of these calls, whose entries are not there yet."""
        self._changed.intersection_update(but)

    @property
    def has_changed(self) -> bool:
        return bool(self._changed)

    def forget(self, turn_id: str) -> None:
        """The reply of a turn is on the screen from its stored message."""
        self._replies.pop(turn_id, None)
        self.ended.discard(turn_id)

    def text(self, turn_id: str) -> str:
        return self._replies.get(turn_id, (0, ""))[1]

    @property
    def streaming(self) -> list[str]:
        """The turns that have streamed text."""
        return list(self._replies)


def _end(text: str) -> str:
    """The end of a long text, from the beginning of a line."""
    if len(text) <= MAX_KEPT:
        return text
    end = text[-CUT_TO:]
    return f"{GAP}\n\n" + (end.partition("\n")[2] or end)
