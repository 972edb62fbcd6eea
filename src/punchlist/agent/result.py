"""How a turn came out."""

from __future__ import annotations

from dataclasses import dataclass

from punchlist.agent.continuation import OpenItem, Reason, ending_text
from punchlist.agent.list_state import ListItem
from punchlist.models.model import Usage


@dataclass(frozen=True, slots=True)
class TurnResult:
    reason: Reason
    why: str
    last_text: str
    """The last that the agent said."""
    iterations: int
    continuations: int
    usage: Usage
    open: tuple[OpenItem, ...]
    items: tuple[ListItem, ...] = ()
    """All that was on its lists."""

    @property
    def ending(self) -> str:
        """How it ended and what is left; empty when it was completed."""
        return "" if self.reason is Reason.COMPLETED else ending_text(self.reason, self.why, self.open)

    @property
    def text(self) -> str:
        """What the person reads at the end, with what is left, when something is (T14)."""
        return "\n\n".join(part for part in (self.last_text, self.ending) if part)
