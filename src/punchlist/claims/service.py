"""The steps of a claim inside of a list's transaction. The list finds the todo, holds its lock and writes the event."""

from __future__ import annotations

from typing import Any

from punchlist.claims import repository as claim_repository
from punchlist.claims import validation as claim_validation
from punchlist.claims.model import Claim, Claimant, ListKind
from punchlist.errors import Conflict
from punchlist.kernel.actors import Role
from punchlist.storage.store import Transaction


def take(
    tx: Transaction,
    before: Claim | None,
    what: str,
    todo_id: str,
    of: tuple[ListKind, str],
    by: Claimant,
    seconds: int,
) -> Claim:
    """Claim a todo whose claim `before` is locked, or was never there and cannot come while the list is."""
    claim = claim_validation.new_claim(before, what, todo_id, of, by, tx.now(), seconds)
    if before is None:
        claim_repository.insert_claim(tx, claim)
    elif not claim_repository.replace_claim(tx, before, claim):
        raise _changed(what)
    return claim


def renew(tx: Transaction, what: str, todo_id: str, by: Claimant, fence: int, seconds: int) -> Claim:
    """Needs no lock of the list: one row is changed, if it is still what it was."""
    claim = claim_validation.renewed_claim(claim_repository.find(tx, todo_id), what, by, fence, tx.now(), seconds)
    if not claim_repository.update_lease(tx, claim):
        raise _changed(what)
    return claim


def release(tx: Transaction, what: str, todo_id: str, by: Claimant, fence: int | None) -> Claim:
    """The claim as it was; it is nobody's any more."""
    claim = claim_repository.lock(tx, todo_id)
    claim_validation.released_claim(claim, what, by, fence, tx.now())
    assert claim is not None
    claim_repository.clear_holder(tx, claim)
    return claim


def check_use(tx: Transaction, what: str, todo_id: str, fence: int | None, by: Role) -> Claim | None:
    """Somebody starts or ends a todo: the claim that is on it, if any, when they may."""
    claim = claim_repository.lock(tx, todo_id)
    claim_validation.check_use(claim, what, fence, by, tx.now())
    return claim if claim and claim.holder else None


def end_claim(tx: Transaction, claim: Claim | None) -> dict[str, Any]:
    """The work on a todo is over, and with it its claim; what the event says of that."""
    if claim is None:
        return {}
    claim_repository.clear_holder(tx, claim)
    return {"claim": claim_event_data(claim)}


def claim_event_data(claim: Claim) -> dict[str, Any]:
    """What the trail keeps of a claim. Not the lease, which is changed without an event."""
    return {"holder": claim.holder, "fence": claim.fence}


def _changed(what: str) -> Conflict:
    return Conflict(f"The claim of {what} was changed by somebody else at the same moment. Claim again.")
