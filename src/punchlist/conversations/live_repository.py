"""SQL of live output. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.storage.statements import SelectAll, SelectOne, Statement, columns, first_column, insert


class NewLiveText(NamedTuple):
    """A piece of text that a model streams, or of the output of a running call."""

    conversation_id: str
    turn_id: str
    call_id: str
    """Empty for the text of the model's reply."""
    position: int
    """How many characters of the reply or the call came before."""
    text: str
    ended: int
    """1 for an empty piece, written when the reply or the result is stored: what was streamed is there now."""
    created_at: str


class StoredLiveText(NamedTuple):
    """A row of `live_output`."""

    seq: int
    conversation_id: str
    turn_id: str
    call_id: str
    position: int
    text: str
    ended: int
    created_at: str


_SELECT: Final = f"SELECT {columns(StoredLiveText._fields)} FROM live_output WHERE"
# The newest row stays: SQLite would use its number again, and a reader would miss the row that gets it.
_NOT_NEWEST: Final = "seq < (SELECT max(seq) FROM live_output)"

add_text: Final = insert("live_output", NewLiveText._fields)
DELETE_BEFORE: Final = Statement(
    "DELETE FROM live_output WHERE turn_id = :turn_id AND call_id = :call_id AND position < :position "
    f"AND ended = 0 AND {_NOT_NEWEST}"
)
"""The beginning of the text of a reply or a call."""
DELETE_STREAM: Final = Statement(
    "DELETE FROM live_output WHERE turn_id = :turn_id AND call_id = :call_id AND (ended = 0 OR created_at < :now) "
    f"AND {_NOT_NEWEST}"
)
"""All of a reply or a call except its end, which was written `now`."""
DELETE_EARLIER: Final = Statement(
    f"DELETE FROM live_output WHERE turn_id = :turn_id AND created_at < :now AND {_NOT_NEWEST}"
)
DELETE_OLD: Final = Statement(
    "DELETE FROM live_output WHERE (created_at < :before OR (ended = 1 AND created_at < :ended_before)) "
    f"AND {_NOT_NEWEST}"
)

texts_after: Final = SelectAll(StoredLiveText._make, f"{_SELECT} seq > :after ORDER BY seq LIMIT :most")
texts_of_open_turns: Final = SelectAll(
    StoredLiveText._make,
    f"{_SELECT} seq <= :until AND ended = 0 "
    "AND EXISTS (SELECT 1 FROM turns WHERE turns.id = live_output.turn_id AND turns.ended_at IS NULL) ORDER BY seq",
)
"""Without what a dead process left of turns that have ended."""
newest_text: Final = SelectOne[int](first_column, "SELECT coalesce(max(seq), 0) FROM live_output")
