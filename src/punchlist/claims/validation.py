"""Rules for claiming, renewing, releasing and using a claim. Pure: the time is passed in.

A todo has one row in `claims`. Each new claim gets a higher number, its fence. The lease decides when
others may claim the todo; the fence decides whose work counts. A clock that jumps can end a lease
early or late, but it cannot create two holders: a holder that was replaced has an outdated fence, and
the list refuses it when it ends the todo.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from punchlist.claims.lifecycle import (
    CLAIM,
    DEFAULT_LEASE_SECONDS,
    MAX_LEASE_SECONDS,
    MIN_LEASE_SECONDS,
    ClaimAction,
    ClaimStatus,
)
from punchlist.claims.model import Claim, Claimant, ListKind
from punchlist.errors import Conflict, InvalidInput, NotAllowed
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import display_value, visible

MAX_FENCE: Final = 2**53


def claim_status(claim: Claim | None, now: str) -> str:
    if claim is None:
        return NEW
    if claim.holder is None:
        return ClaimStatus.FREE
    return ClaimStatus.HELD if now < claim.lease_until else ClaimStatus.LAPSED


def is_held(claim: Claim | None, now: str) -> bool:
    return claim_status(claim, now) == ClaimStatus.HELD


def lease_end(now: str, seconds: int) -> str:
    try:
        return timestamp(parse_timestamp(now) + timedelta(seconds=seconds))
    except OverflowError:
        raise InvalidInput(f"seconds: {seconds} from now is past the end of the calendar") from None


def new_claim(
    before: Claim | None, title: str, todo_id: str, owner: tuple[ListKind, str], by: Claimant, now: str, seconds: int
) -> Claim:
    """The claim that replaces `before`. `title` names the todo in messages."""
    CLAIM.check_role(ClaimAction.CLAIM, by.scope.actor.role)
    if before is not None and is_held(before, now):
        raise already_claimed(before, title, by)
    CLAIM.advance(claim_status(before, now), ClaimAction.CLAIM, by.scope.actor.role)
    fence = before.fence + 1 if before else 1
    return Claim(todo_id, *owner, by.holder, fence, claimed_at=now, lease_until=lease_end(now, seconds))


def renewed_claim(claim: Claim | None, title: str, by: Claimant, fence: int, now: str, seconds: int) -> Claim:
    """The claim with a lease from now; also after the lease ended, unless the todo was claimed again."""
    return _check_holder(claim, ClaimAction.RENEW, title, by, fence, now)._replace(lease_until=lease_end(now, seconds))


def released_claim(claim: Claim | None, title: str, by: Claimant, fence: int | None, now: str) -> Claim:
    """The claim without its holder. A person can release any claim and needs no fence."""
    return _check_holder(claim, ClaimAction.RELEASE, title, by, fence, now)._replace(holder=None)


def _check_holder(
    claim: Claim | None, action: ClaimAction, title: str, by: Claimant, fence: int | None, now: str
) -> Claim:
    role = by.scope.actor.role
    CLAIM.check_role(action, role)
    if claim is None:
        raise Conflict(f"{title} is not claimed. Call claim_todo first.")
    if fence is not None:
        check_fence(claim, title, fence)
    CLAIM.advance(claim_status(claim, now), action, role)
    override = role is Role.PERSON and action is ClaimAction.RELEASE
    if claim.holder != by.holder and not override:
        raise NotAllowed(f"{_held_by(claim, title)}. Only its holder can {action} that claim.")
    if fence is None and not override:
        raise InvalidInput("fence: is required; claim_todo returned it")
    return claim


def check_fence(claim: Claim | None, title: str, fence: int) -> None:
    if claim is None or fence > claim.fence:
        raise Conflict(f"{title} has no claim with fence {fence}. Call claim_todo to get one.")
    if fence < claim.fence:
        by = f" by {visible(claim.holder)}" if claim.holder else ""
        raise Conflict(
            f"Fence {fence} is outdated: {title} was claimed again{by} with fence {claim.fence}. "
            "Your work on it does not count; claim another todo."
        )


def check_use(claim: Claim | None, title: str, fence: int | None, by: Role, now: str) -> None:
    """A claimed todo can be started or ended only with its fence, or by a person."""
    if fence is not None:
        check_fence(claim, title, fence)
    elif claim is not None and by is not Role.PERSON and is_held(claim, now):
        raise Conflict(f"{_held_by(claim, title)}. Only its holder can use it, with the fence; claim another todo.")


def already_claimed(claim: Claim, title: str, by: Claimant) -> Conflict:
    if claim.holder == by.holder:
        return Conflict(
            f"You already hold {title} with fence {claim.fence} until {claim.lease_until}. "
            "Call renew_claim to extend it."
        )
    return Conflict(f"{_held_by(claim, title)}. Claim another todo, or try again then.")


def _held_by(claim: Claim, title: str) -> str:
    return f"{title} is claimed by {visible(claim.holder)} until {claim.lease_until}"


def parse_seconds(raw: Any) -> int:
    if raw is None:
        return DEFAULT_LEASE_SECONDS
    if isinstance(raw, bool) or not isinstance(raw, int) or not MIN_LEASE_SECONDS <= raw <= MAX_LEASE_SECONDS:
        raise InvalidInput(
            f"seconds: must be a whole number from {MIN_LEASE_SECONDS} to {MAX_LEASE_SECONDS}, got {display_value(raw)}"
        )
    return raw


def parse_fence(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= MAX_FENCE:
        raise InvalidInput(f"fence: must be the whole number that claim_todo returned, got {display_value(raw)}")
    return raw


def parse_list(raw: Any) -> ListKind | None:
    if raw is None:
        return None
    for kind in ListKind:
        if raw == kind.value:
            return kind
    raise InvalidInput(f"list: must be one of {', '.join(ListKind)}, got {display_value(raw)}")
