"""The lifecycle of a turn."""

from __future__ import annotations

from enum import StrEnum

from punchlist.kernel.lifecycle import ALL_ROLES, NEW, Lifecycle


class TurnStatus(StrEnum):
    OPEN = "open"
    ENDED = "ended"


class TurnAction(StrEnum):
    BEGIN = "begin_turn"
    TAKE = "take_turn"
    SUSPEND = "suspend_turn"
    END = "end_turn"


TURN = Lifecycle(
    "turn",
    {
        (NEW, TurnAction.BEGIN): TurnStatus.OPEN,
        # A turn waits with nobody at work on it, and is taken up again.
        (TurnStatus.OPEN, TurnAction.TAKE): TurnStatus.OPEN,
        (TurnStatus.OPEN, TurnAction.SUSPEND): TurnStatus.OPEN,
        (TurnStatus.OPEN, TurnAction.END): TurnStatus.ENDED,
    },
    allowed=dict.fromkeys(TurnAction, ALL_ROLES),
)
