"""Steps of a claim within a list's transaction.

The list's service finds the todo, locks the list and writes the event.
"""

from __future__ import annotations

from typing import Any

from punchlist.claims import repository as claim_repository
from punchlist.claims import validation as claim_validation
from punchlist.claims.model import Claim, Claimant, ListKind
from punchlist.errors import Conflict
from punchlist.kernel.events import Role
from punchlist.storage.store import Transaction


def take(
    tx: Transaction,
    before: Claim | None,
    title: str,
    todo_id: str,
    owner: tuple[ListKind, str],
    by: Claimant,
    seconds: int,
) -> Claim:
    """Claim a todo. The caller has locked the previous claim `before` or, if there is none, the list."""
    claim = claim_validation.new_claim(before, title, todo_id, owner, by, tx.now(), seconds)
    if before is None:
        claim_repository.insert_claim(tx, claim)
    elif not claim_repository.replace_claim(tx, before, claim):
        raise _changed(title)
    return claim


def renew(tx: Transaction, title: str, todo_id: str, by: Claimant, fence: int, seconds: int) -> Claim:
    """Extend a claim. Needs no lock on the list: the UPDATE checks fence and holder."""
    claim = claim_validation.renewed_claim(claim_repository.find(tx, todo_id), title, by, fence, tx.now(), seconds)
    if not claim_repository.update_lease(tx, claim):
        raise _changed(title)
    return claim


def release(tx: Transaction, title: str, todo_id: str, by: Claimant, fence: int | None) -> Claim:
    """Release a claim; returns it as it was before."""
    claim = claim_repository.lock(tx, todo_id)
    claim_validation.released_claim(claim, title, by, fence, tx.now())
    assert claim is not None
    claim_repository.clear_holder(tx, claim)
    return claim


def check_use(tx: Transaction, claim: Claim | None, title: str, fence: int | None, by: Role) -> Claim | None:
    """The locked claim of a todo that is about to be started or ended, if it is held; raises if the caller may not."""
    claim_validation.check_use(claim, title, fence, by, tx.now())
    return claim if claim and claim.holder else None


def end_claim(tx: Transaction, claim: Claim | None) -> dict[str, Any]:
    """Clear the claim of a todo that ends; returns data for the todo's event."""
    if claim is None:
        return {}
    claim_repository.clear_holder(tx, claim)
    return {"claim": claim_event_data(claim)}


def claim_event_data(claim: Claim) -> dict[str, Any]:
    """The part of a claim that events record. Leases are not recorded, since renewals write no event."""
    return {"holder": claim.holder, "fence": claim.fence}


def _changed(title: str) -> Conflict:
    return Conflict(f"Another writer changed the claim of {title} at the same moment. Claim it again.")
