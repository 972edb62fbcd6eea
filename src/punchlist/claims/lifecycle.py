"""The lifecycle of a claim on a todo. Nothing is told when a lease runs out: it is seen by looking."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.actors import Role
from punchlist.kernel.lifecycle import NEW, Lifecycle

# How long a claim lasts, in seconds: unless said, at least, at most.
DEFAULT_LEASE_SECONDS: Final = 300
MIN_LEASE_SECONDS: Final = 1
MAX_LEASE_SECONDS: Final = 24 * 60 * 60


class ClaimStatus(StrEnum):
    HELD = "held"
    # Its lease has run out. It is still its holder's as long as nobody takes it.
    LAPSED = "lapsed"
    FREE = "free"


class ClaimAction(StrEnum):
    CLAIM = "claim"
    RENEW = "renew"
    RELEASE = "release"


CLAIMANTS: Final = frozenset(Role) - {Role.WORKER}
"""A worker does what it was given: whoever delegated holds the todo (T13)."""

CLAIM: Final = Lifecycle(
    "claim",
    {
        (NEW, ClaimAction.CLAIM): ClaimStatus.HELD,
        (ClaimStatus.FREE, ClaimAction.CLAIM): ClaimStatus.HELD,
        (ClaimStatus.LAPSED, ClaimAction.CLAIM): ClaimStatus.HELD,
        (ClaimStatus.HELD, ClaimAction.RENEW): ClaimStatus.HELD,
        (ClaimStatus.LAPSED, ClaimAction.RENEW): ClaimStatus.HELD,
        (ClaimStatus.HELD, ClaimAction.RELEASE): ClaimStatus.FREE,
        (ClaimStatus.LAPSED, ClaimAction.RELEASE): ClaimStatus.FREE,
    },
    allowed=dict.fromkeys(ClaimAction, CLAIMANTS),
)
