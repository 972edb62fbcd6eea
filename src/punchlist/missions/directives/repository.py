"""The SQL of directives. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.directives.model import Directive, DirectiveStatus
from punchlist.storage.statements import SelectAll, SelectOne, insert, select, update
from punchlist.storage.store import Transaction

_ROW: Final = select("directives", Directive._fields)
_STATUSES: Final = frozenset(DirectiveStatus)


def _from_row(row: tuple[Any, ...]) -> Directive:
    directive = Directive._make(row)
    if directive.status not in _STATUSES:
        raise StoreDamaged.not_as_written(f"Directive {directive.id!r}")
    return directive


insert_directive: Final = insert("directives", Directive._fields)
UPDATE: Final = update("directives", ("status", "ended_at"), where="id = :of_id AND status = :from_status")
by_number: Final = SelectOne(_from_row, f"{_ROW} WHERE mission_id = :mission_id AND number = :number")
all_in_mission: Final = SelectAll(_from_row, f"{_ROW} WHERE mission_id = :mission_id ORDER BY number")
open_in_mission: Final = SelectAll(
    _from_row, f"{_ROW} WHERE mission_id = :mission_id AND status = '{DirectiveStatus.OPEN}' ORDER BY number"
)


def update_row(tx: Transaction, before: Directive, changes: dict[str, Any]) -> Directive | None:
    """Write the changes; None when another writer was first."""
    after = before._replace(**{**changes, "status": str(changes["status"])})
    rows = tx.run(UPDATE, of_id=before.id, from_status=before.status, status=after.status, ended_at=after.ended_at)
    return after if rows else None
