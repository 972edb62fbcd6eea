"""The SQL of recommendations. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.recommendations.model import Recommendation, RecommendationStatus
from punchlist.storage.statements import SelectAll, SelectOne, first_column, insert, select, update
from punchlist.storage.store import Transaction

_ROW: Final = select("recommendations", Recommendation._fields)
_OPEN: Final = f"status = '{RecommendationStatus.OPEN}'"
_MUTABLE_COLUMNS: Final = ("status", "decided_by", "decided_at", "decision")
_STATUSES: Final = frozenset(RecommendationStatus)


def _from_row(row: tuple[Any, ...]) -> Recommendation:
    recommendation = Recommendation._make(row)
    if recommendation.status not in _STATUSES:
        raise StoreDamaged.not_as_written(f"Recommendation {recommendation.id!r}")
    return recommendation


insert_recommendation: Final = insert("recommendations", Recommendation._fields)
UPDATE: Final = update("recommendations", _MUTABLE_COLUMNS, where="id = :of_id AND status = :from_status")
by_number: Final = SelectOne(_from_row, f"{_ROW} WHERE mission_id = :mission_id AND number = :number")
all_in_mission: Final = SelectAll(_from_row, f"{_ROW} WHERE mission_id = :mission_id ORDER BY number")
open_in_mission: Final = SelectAll(_from_row, f"{_ROW} WHERE mission_id = :mission_id AND {_OPEN} ORDER BY number")
open_for_todo: Final = SelectAll(
    _from_row, f"{_ROW} WHERE mission_id = :mission_id AND todo_id = :todo_id AND {_OPEN} ORDER BY number"
)
newest: Final = SelectAll(_from_row, f"{_ROW} WHERE mission_id = :mission_id ORDER BY number DESC LIMIT :most")
last_number: Final = SelectOne[int | None](
    first_column, "SELECT max(number) FROM recommendations WHERE mission_id = :mission_id"
)


def update_row(tx: Transaction, before: Recommendation, changes: dict[str, Any]) -> Recommendation | None:
    """Write the changes; None when another writer was first."""
    after = before._replace(**{**changes, "status": str(changes["status"])})
    values = {name: getattr(after, name) for name in _MUTABLE_COLUMNS}
    rows = tx.run(UPDATE, of_id=before.id, from_status=before.status, **values)
    return after if rows else None
