"""Kinds of messages in a turn."""

from __future__ import annotations

from typing import Final

REPLY: Final = "reply"
RESULT: Final = "result"
TEXT: Final = "text"
CONTINUATION: Final = "continuation"
RESUMED: Final = "resumed"
"""Sent back to its list, since what it waited for is there: no continuation that counts (C9)."""
REMINDER: Final = "reminder"
ENDING: Final = "ending"
"""How a turn ended, and what it left: for people, and for the turns that follow."""
