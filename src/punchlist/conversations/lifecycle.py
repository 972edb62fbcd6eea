"""The lifecycle of a turn."""

from __future__ import annotations

from enum import StrEnum

from punchlist.kernel.lifecycle import ANYBODY, NEW, Lifecycle


class TurnStatus(StrEnum):
    OPEN = "open"
    ENDED = "ended"


class TurnAction(StrEnum):
    BEGIN = "begin_turn"
    END = "end_turn"


TURN = Lifecycle(
    "turn",
    {
        (NEW, TurnAction.BEGIN): TurnStatus.OPEN,
        (TurnStatus.OPEN, TurnAction.END): TurnStatus.ENDED,
    },
    allowed={TurnAction.BEGIN: ANYBODY, TurnAction.END: ANYBODY},
)
