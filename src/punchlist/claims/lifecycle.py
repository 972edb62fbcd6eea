"""The lifecycle of a claim on a todo. Nothing is told when a lease runs out: it is seen by looking."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.actors import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle

# How long a claim lasts, in seconds: unless said, at least, at most.
SECONDS: Final = 300
SHORTEST: Final = 1
LONGEST: Final = 24 * 60 * 60


class Status(StrEnum):
    HELD = "held"
    # Its lease has run out. It is still its holder's as long as nobody takes it.
    LAPSED = "lapsed"
    FREE = "free"


class Action(StrEnum):
    CLAIM = "claim"
    RENEW = "renew"
    RELEASE = "release"


CLAIMANTS: Final = frozenset(Role) - {Role.WORKER}
"""A worker does what it was given: whoever delegated holds the todo (T13)."""

CLAIM: Final = Lifecycle(
    "claim",
    {
        (NEW, Action.CLAIM): Status.HELD,
        (Status.FREE, Action.CLAIM): Status.HELD,
        (Status.LAPSED, Action.CLAIM): Status.HELD,
        (Status.HELD, Action.RENEW): Status.HELD,
        (Status.LAPSED, Action.RENEW): Status.HELD,
        (Status.HELD, Action.RELEASE): Status.FREE,
        (Status.LAPSED, Action.RELEASE): Status.FREE,
    },
    allowed=dict.fromkeys(Action, CLAIMANTS),
)
