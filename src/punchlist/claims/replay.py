"""The claims of a list as its events tell them: who has taken what with which fence. Leases are not in the trail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from punchlist.claims.lifecycle import ClaimAction
from punchlist.claims.model import Claim
from punchlist.kernel.events import Event


class ReplayedClaim(NamedTuple):
    holder: str | None
    fence: int
    claimed_at: str


def replay_claims(events: Sequence[Event]) -> dict[str, ReplayedClaim]:
    """The newest claim of each todo that ever had one."""
    claims: dict[str, ReplayedClaim] = {}
    for event in events:
        if event.action == ClaimAction.CLAIM:
            data = event.payload()
            claims[event.subject] = ReplayedClaim(data["holder"], data["fence"], event.at)
        elif event.subject in claims and (event.action == ClaimAction.RELEASE or "claim" in event.payload()):
            # Given back, or ended together with its todo.
            claims[event.subject] = claims[event.subject]._replace(holder=None)
    return claims


def claim_differs(told: ReplayedClaim, found: Claim | None) -> bool:
    return found is None or told != (found.holder, found.fence, found.claimed_at)


def count_claimed_todos(events: Sequence[Event]) -> int:
    """How many rows the events put into `claims`."""
    return len({event.subject for event in events if event.action == ClaimAction.CLAIM})
