"""Rebuild the claims of a list from its events. Leases are not in the event log, since renewals write no event."""

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
    """The newest claim of each todo, by todo id."""
    claims: dict[str, ReplayedClaim] = {}
    for event in events:
        if event.action == ClaimAction.CLAIM:
            data = event.payload()
            claims[event.subject] = ReplayedClaim(data["holder"], data["fence"], event.at)
        elif event.subject in claims and (event.action == ClaimAction.RELEASE or "claim" in event.payload()):
            # Released, or ended together with its todo.
            claims[event.subject] = claims[event.subject]._replace(holder=None)
    return claims


def claim_differs(replayed: ReplayedClaim, stored: Claim | None) -> bool:
    return stored is None or replayed != (stored.holder, stored.fence, stored.claimed_at)


def count_claimed_todos(events: Sequence[Event]) -> int:
    """How many rows the events inserted into `claims`."""
    return len({event.subject for event in events if event.action == ClaimAction.CLAIM})
