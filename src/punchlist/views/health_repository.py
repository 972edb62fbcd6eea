"""SQL of the health of missions. The caller owns the transaction."""

from __future__ import annotations

from typing import Final

from punchlist.runs.lifecycle import RunStatus
from punchlist.runs.model import Run, RunKind, from_row
from punchlist.storage.statements import SelectOne, columns

# The index on the conversation, kind and time of a run serves these; cycles run in the mission chat.
_CYCLE: Final = (
    f"SELECT {columns(Run._fields, of='runs')} FROM missions JOIN runs ON runs.conversation_id = "
    f"missions.conversation_id AND runs.kind = '{RunKind.CYCLE}' WHERE missions.id = :mission_id"
)
_NEWEST: Final = "ORDER BY runs.created_at DESC, runs.id DESC LIMIT 1"
newest_cycle: Final = SelectOne(from_row, f"{_CYCLE} {_NEWEST}")
last_done_cycle: Final = SelectOne(from_row, f"{_CYCLE} AND runs.status = '{RunStatus.DONE}' {_NEWEST}")
count_runs: Final = SelectOne[tuple[int | None, int | None]](
    tuple,
    f"SELECT sum(CASE WHEN status = '{RunStatus.QUEUED}' THEN 1 ELSE 0 END), count(*) FROM runs "
    "WHERE mission_id = :mission_id AND ended_at IS NULL",
)
"""How many runs of a mission are queued, and how many are open."""
