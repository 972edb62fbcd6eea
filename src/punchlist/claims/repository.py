"""SQL of `claims`. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.claims.model import Claim, ListKind
from punchlist.errors import StoreDamaged
from punchlist.storage.statements import (
    WHOLE_ROW_LOCK,
    SelectAll,
    SelectOne,
    Statement,
    insert,
    select,
    update,
)
from punchlist.storage.store import Transaction

_ROW: Final = select("claims", Claim._fields)
_UNCHANGED: Final = "todo_id = :todo AND fence = :before"


def claim_from_row(row: tuple[Any, ...]) -> Claim:
    try:
        return Claim._make((row[0], ListKind(row[1]), *row[2:]))
    except ValueError:
        raise StoreDamaged.not_as_written(f"The claim of todo {row[0]!r}") from None


# The lock prevents a renewal between this read and the write that follows.
lock: Final = SelectOne(claim_from_row, f"{_ROW} WHERE todo_id = :todo", lock=WHOLE_ROW_LOCK)
"""The newest claim of a todo, locked until the transaction ends."""
find: Final = SelectOne(claim_from_row, f"{_ROW} WHERE todo_id = :todo")
_live: Final = SelectAll(
    claim_from_row,
    f"{_ROW} WHERE list = :list AND owner_id = :owner_id AND holder IS NOT NULL AND lease_until > :now",
)
INSERT: Final = insert("claims", Claim._fields)
TAKE: Final = update("claims", ("holder", "fence", "claimed_at", "lease_until"), where=_UNCHANGED)
EXTEND: Final = update("claims", ["lease_until"], where=f"{_UNCHANGED} AND holder = :by")
FREE: Final = Statement(f"UPDATE claims SET holder = NULL WHERE {_UNCHANGED}")


def find_live(tx: Transaction, list: ListKind, owner_id: str) -> dict[str, Claim]:
    """The claims of one list that are held now, by todo id."""
    return {claim.todo_id: claim for claim in _live(tx, list.value, owner_id, tx.now())}


def insert_claim(tx: Transaction, claim: Claim) -> None:
    tx.run(INSERT, **{**claim._asdict(), "list": claim.list.value})


def replace_claim(tx: Transaction, before: Claim, claim: Claim) -> bool:
    """Replace the previous claim; False if another writer was first."""
    return bool(
        tx.run(
            TAKE,
            todo=claim.todo_id,
            before=before.fence,
            holder=claim.holder,
            fence=claim.fence,
            claimed_at=claim.claimed_at,
            lease_until=claim.lease_until,
        )
    )


def update_lease(tx: Transaction, claim: Claim) -> bool:
    """Write a new lease end; False if the todo was claimed again or released meanwhile."""
    return bool(tx.run(EXTEND, todo=claim.todo_id, before=claim.fence, by=claim.holder, lease_until=claim.lease_until))


def clear_holder(tx: Transaction, claim: Claim) -> bool:
    return bool(tx.run(FREE, todo=claim.todo_id, before=claim.fence))
