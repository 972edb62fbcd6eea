"""Kinds of the messages of a turn, as they are stored."""

from __future__ import annotations

from typing import Final

REPLY: Final = "reply"
RESULT: Final = "result"
TEXT: Final = "text"
CONTINUATION: Final = "continuation"
RESUMED: Final = "resumed"
"""Sent to the model after a wait is over. It does not count as a continuation (C9)."""
REMINDER: Final = "reminder"
ENDING: Final = "ending"
"""How a turn ended and what it left open, for people and for later turns."""
