"""Lifecycle of a claim on a todo. The end of a lease is not an event; it is evaluated on every read."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import ALL_ROLES, NEW, Lifecycle

DEFAULT_LEASE_SECONDS: Final = 300
MIN_LEASE_SECONDS: Final = 1
MAX_LEASE_SECONDS: Final = 24 * 60 * 60


class ClaimStatus(StrEnum):
    HELD = "held"
    # The lease has ended. The holder keeps the claim until another agent claims the todo.
    LAPSED = "lapsed"
    FREE = "free"


class ClaimAction(StrEnum):
    CLAIM = "claim"
    RENEW = "renew"
    RELEASE = "release"


CLAIMANTS: Final = ALL_ROLES - {Role.WORKER}
"""Workers cannot claim: the agent that delegates to them holds the todo (T13)."""

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
