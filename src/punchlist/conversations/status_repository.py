"""SQL of the status of turns. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.storage.statements import Insert, SelectAll, SelectOne, columns


class TurnStatusRow(NamedTuple):
    """A row of `turn_status`: what the owner of a turn knows about it."""

    turn_id: str
    model: str
    mode: str
    continuations: int
    continuation_limit: int | None
    """None if continuation is off (C15)."""
    input_tokens: int
    output_tokens: int
    """Of the turn and its workers."""
    token_limit: int | None
    cost: float | None
    """In dollars; None if the model's price is unknown."""
    cost_limit: float | None
    context_tokens: int
    """Of the last request and its reply."""
    context_window: int | None
    changed_at: str


_NAMES: Final = TurnStatusRow._fields
find_status: Final = SelectOne(
    TurnStatusRow._make, f"SELECT {columns(_NAMES)} FROM turn_status WHERE turn_id = :turn_id"
)
save_status: Final = Insert(
    f"INSERT INTO turn_status ({columns(_NAMES)}) VALUES ({', '.join(f':{name}' for name in _NAMES)}) "
    f"ON CONFLICT (turn_id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _NAMES[1:])}"
)
call_intervals: Final = SelectAll[tuple[str, str | None]](
    tuple,
    "SELECT started_at, ended_at FROM traces WHERE turn_id = :turn_id AND kind = 'model' "
    "UNION ALL SELECT started_at, ended_at FROM tool_calls WHERE turn_id = :turn_id AND started_at IS NOT NULL "
    "ORDER BY started_at",
)
"""Start and end of the calls of a turn to models and tools."""
