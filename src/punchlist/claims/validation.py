"""Who may take a todo, keep it, give it back and end it. Pure: the time is passed in.

A todo has one row of claims, and every claim of it has a number that is higher than the one before,
its fence. A lease says when others may take the todo; the fence says who is too late. So a clock that
jumps can make somebody lose a todo early or keep it long, but never make two holders of it: whoever
was overtaken has an old fence, and the list refuses it when the work is to be called done.
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
from punchlist.kernel.actors import Role
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt, json_type, visible

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
    before: Claim | None, what: str, todo_id: str, of: tuple[ListKind, str], by: Claimant, now: str, seconds: int
) -> Claim:
    """The claim of whoever takes a todo that had the claim `before`. `what` is the todo in words."""
    CLAIM.check_role(ClaimAction.CLAIM, by.scope.actor.role)
    if before is not None and is_held(before, now):
        raise already_claimed(before, what, by)
    CLAIM.advance(claim_status(before, now), ClaimAction.CLAIM, by.scope.actor.role)
    fence = before.fence + 1 if before else 1
    return Claim(todo_id, *of, by.holder, fence, claimed_at=now, lease_until=lease_end(now, seconds))


def renewed_claim(claim: Claim | None, what: str, by: Claimant, fence: int, now: str, seconds: int) -> Claim:
    """With a lease from now on; also after it ran out, when nobody else has taken the todo since."""
    return _own(claim, ClaimAction.RENEW, what, by, fence, now)._replace(lease_until=lease_end(now, seconds))


def released_claim(claim: Claim | None, what: str, by: Claimant, fence: int | None, now: str) -> Claim:
    """Without its holder. A person can take a todo from anybody, and needs no fence for that."""
    return _own(claim, ClaimAction.RELEASE, what, by, fence, now)._replace(holder=None)


def _own(claim: Claim | None, action: ClaimAction, what: str, by: Claimant, fence: int | None, now: str) -> Claim:
    role = by.scope.actor.role
    CLAIM.check_role(action, role)
    if claim is None:
        raise Conflict(f"{what} is not claimed. claim_todo takes it.")
    if fence is not None:
        check_fence(claim, what, fence)
    CLAIM.advance(claim_status(claim, now), action, role)
    mighty = role is Role.PERSON and action is ClaimAction.RELEASE
    if claim.holder != by.holder and not mighty:
        raise NotAllowed(f"{_who(claim, what)}. Only its holder can {action} that claim.")
    if fence is None and not mighty:
        raise InvalidInput("fence: is required; it is the number that claim_todo answered with")
    return claim


def check_fence(claim: Claim | None, what: str, fence: int) -> None:
    """Whoever comes with another fence than the newest is too late."""
    if claim is None or fence > claim.fence:
        raise Conflict(f"{what} has no claim with fence {fence}. claim_todo takes it and answers with its fence.")
    if fence < claim.fence:
        since = f"by {visible(claim.holder)}" if claim.holder else "by somebody who has released it"
        raise Conflict(
            f"Fence {fence} is outdated: {what} was claimed again, {since}, with fence {claim.fence}. "
            "What you did for it does not count; claim another."
        )


def check_use(claim: Claim | None, what: str, fence: int | None, by: Role, now: str) -> None:
    """Whether a todo may be started or ended: while somebody holds it, only with its fence, or by a person."""
    if fence is not None:
        check_fence(claim, what, fence)
    elif claim is not None and by is not Role.PERSON and is_held(claim, now):
        raise Conflict(f"{_who(claim, what)}. Leave it to its holder, who gives the fence; claim another.")


def already_claimed(claim: Claim, what: str, by: Claimant) -> Conflict:
    if claim.holder == by.holder:
        return Conflict(
            f"You hold {what} already, with fence {claim.fence}, until {claim.lease_until}. renew_claim keeps it."
        )
    return Conflict(f"{_who(claim, what)}. Claim another, or come back then.")


def _who(claim: Claim, what: str) -> str:
    return f"{what} is claimed by {visible(claim.holder)} until {claim.lease_until}"


def parse_seconds(raw: Any) -> int:
    if raw is None:
        return DEFAULT_LEASE_SECONDS
    if isinstance(raw, bool) or not isinstance(raw, int) or not MIN_LEASE_SECONDS <= raw <= MAX_LEASE_SECONDS:
        raise InvalidInput(
            f"seconds: must be a whole number from {MIN_LEASE_SECONDS} to {MAX_LEASE_SECONDS}, got {_shown(raw)}"
        )
    return raw


def parse_fence(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= MAX_FENCE:
        raise InvalidInput(f"fence: must be the whole number that claim_todo answered with, got {_shown(raw)}")
    return raw


def parse_list(raw: Any) -> ListKind | None:
    if raw is None:
        return None
    for kind in ListKind:
        if raw == kind.value:
            return kind
    raise InvalidInput(f"list: must be one of {', '.join(ListKind)}, got {_shown(raw)}")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(excerpt(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return json_type(value)
    return "a very large number" if abs(value) > MAX_FENCE else str(value)
