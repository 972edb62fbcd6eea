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
COMPACTION: Final = "compaction"
"""A summary has replaced older messages in the context. For people, and to resume the turn; not for models."""
ENDING: Final = "ending"
"""How a turn ended and what it left open, for people and for later turns."""
GOAL: Final = "goal"
"""The acceptance criteria of a turn (V3)."""
FINAL: Final = "final"
"""Asks for a report after a limit was reached; no tools are offered any more (T9)."""
