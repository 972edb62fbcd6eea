"""SQL of chats, lists of runs, activity and series. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.conversations.model import Message, StoredTurn
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.runs.model import Run, RunKind, from_row
from punchlist.storage.statements import SelectAll, SelectOne, columns, first_column, literals

# --- chats ------------------------------------------------------------------------------------------------

_MESSAGE: Final = f"SELECT {columns(Message._fields)} FROM messages WHERE conversation_id = :conversation_id"
turn_and_delegation: Final = SelectOne[tuple[StoredTurn, bool]](
    lambda row: (StoredTurn._make(row[:-1]), bool(row[-1])),
    f"SELECT {columns(StoredTurn._fields, of='turns')}, "
    f"CASE WHEN parent_turn_id IS NOT NULL OR runs.kind = '{RunKind.DELEGATE}' THEN 1 ELSE 0 END "
    "FROM turns LEFT JOIN runs ON runs.id = turns.run_id WHERE turns.id = :id",
)
"""A turn, and whether another agent asked for it."""
messages_before: Final = SelectAll(
    Message._make, f"{_MESSAGE} AND position < :position ORDER BY position DESC LIMIT :most"
)
messages_after: Final = SelectAll(Message._make, f"{_MESSAGE} AND position > :position ORDER BY position LIMIT :most")
list_message_before: Final = SelectOne[str](
    first_column,
    "SELECT content FROM messages WHERE conversation_id = :conversation_id AND kind = 'todo_update' "
    "AND position < :position AND position >= :first ORDER BY position DESC LIMIT 1",
)
open_runs_in_chat: Final = SelectAll(
    from_row,
    f"SELECT {columns(Run._fields)} FROM runs WHERE ended_at IS NULL AND conversation_id = :conversation_id "
    "ORDER BY created_at, id",
)
open_requests_in_chat: Final = SelectAll[tuple[str, str, str, str]](
    tuple,
    "SELECT 'approval' AS kind, call_id AS id, question AS text, asked_at AS at FROM approvals "
    "WHERE status IN ('pending', 'escalated') AND conversation_id = :conversation_id "
    "UNION ALL SELECT 'question', id, subject, created_at FROM todo_conditions "
    "WHERE status = 'open' AND kind = 'person' AND conversation_id = :conversation_id ORDER BY at, id",
)
"""Kind, id, text and time of the requests to a person from a chat."""

# --- runs -------------------------------------------------------------------------------------------------

_RUN: Final = f"SELECT {columns(Run._fields)} FROM runs WHERE"
_RUN_PAGE: Final = (
    "created_at <= :at AND NOT (created_at = :at AND id >= :id) AND (:status = '' OR status = :status) "
    "AND (:kind = '' OR kind = :kind) ORDER BY created_at DESC, id DESC LIMIT :most"
)
_OWNERS: Final = {"": "", "mission_id": "mission_id = :owner AND ", "todo_id": "todo_id = :owner AND "}
runs: Final = {name: SelectAll(from_row, f"{_RUN} {owner}{_RUN_PAGE}") for name, owner in _OWNERS.items()}
"""Newest first, after (`at`, `id`), by the column that selects the owner."""
open_runs: Final = {
    name: SelectAll(from_row, f"{_RUN} {owner}ended_at IS NULL AND {_RUN_PAGE}") for name, owner in _OWNERS.items()
}

# --- activity ---------------------------------------------------------------------------------------------


class ActivityEntry(NamedTuple):
    """An event without its data."""

    seq: int
    at: str
    stream: str
    conversation_id: str
    actor: str
    action: str
    subject: str
    from_status: str | None
    to_status: str | None
    reason: str


_ENTRY: Final = f"SELECT {columns(ActivityEntry._fields)} FROM events WHERE seq > :after AND seq <= :until"
entries: Final = SelectAll(ActivityEntry._make, f"{_ENTRY} ORDER BY seq LIMIT :most")
entries_in_conversation: Final = SelectAll(
    ActivityEntry._make,
    f"{_ENTRY} AND conversation_id = :conversation_id ORDER BY seq LIMIT :most",
    # Compared as rows: otherwise PostgreSQL can choose to read the whole log in the order of its primary key.
    postgresql=f"SELECT {columns(ActivityEntry._fields)} FROM events "
    "WHERE (conversation_id, seq) > (:conversation_id, :after) "
    "AND (conversation_id, seq) <= (:conversation_id, :until) ORDER BY conversation_id, seq LIMIT :most",
)
next_numbers: Final = SelectAll[int](first_column, "SELECT seq FROM events WHERE seq > :after ORDER BY seq LIMIT :most")
newest_events: Final = SelectAll[tuple[int, str]](tuple, "SELECT seq, at FROM events ORDER BY seq DESC LIMIT :most")
first_from: Final = SelectOne[tuple[int, str]](
    tuple, "SELECT seq, at FROM events WHERE seq >= :seq ORDER BY seq LIMIT 1"
)
newest_number: Final = SelectOne[int](first_column, "SELECT coalesce(max(seq), 0) FROM events")
chats_of_mission: Final = SelectAll[str](
    first_column,
    "SELECT conversation_id FROM missions WHERE id = :mission_id "
    "UNION SELECT conversation_id FROM pillars WHERE mission_id = :mission_id "
    "UNION SELECT todo_conversation_id FROM pillars WHERE mission_id = :mission_id",
)
"""The chats of the mission and of its pillars. Delegated work has a conversation for each run."""
# The condition on `ended_at` is that of an index.
delegated_chats: Final = SelectAll[tuple[str, str]](
    tuple,
    f"SELECT conversation_id, created_at FROM runs WHERE kind = '{RunKind.DELEGATE}' AND mission_id = :mission_id "
    "AND coalesce(ended_at, '9999') >= :since ORDER BY created_at, id",
)
"""Conversations of delegated work of a mission that had not ended at a moment, and their beginnings; oldest first."""
mission_of_chat: Final = SelectOne[str](
    first_column,
    "SELECT id FROM missions WHERE conversation_id = :chat "
    "UNION SELECT mission_id FROM pillars WHERE conversation_id = :chat OR todo_conversation_id = :chat "
    f"UNION SELECT mission_id FROM runs WHERE conversation_id = :chat AND kind = '{RunKind.DELEGATE}' "
    "AND mission_id IS NOT NULL",
)
"""Of any chat, also of delegated work."""

# --- series -----------------------------------------------------------------------------------------------

# Counted by the beginning of their time, of which `length` characters are enough to tell the local day.
# The first conditions are those of a partial index.
steps_by_time: Final = SelectAll[tuple[str, str | None, str, int]](
    tuple,
    "SELECT substr(at, 1, :length) AS time, from_status, to_status, count(*) FROM events "
    f"WHERE substr(stream, 1, 8) = 'mission:' AND to_status IN ({literals(TodoStatus)}) AND stream = :stream "
    "AND at >= :since AND (from_status IS NULL OR from_status <> to_status) GROUP BY 1, 2, 3",
)
"""Time, old status, new status and number of the changes of todos."""
count_by_status: Final = SelectAll[tuple[str, int]](
    tuple, "SELECT status, count(*) FROM mission_todos WHERE mission_id = :mission_id GROUP BY status"
)
ended_by_time: Final = SelectAll[tuple[str, str, str, int]](
    tuple,
    "SELECT substr(ended_at, 1, :length), pillar_id, status, count(*) FROM mission_todos "
    "WHERE mission_id = :mission_id AND ended_at >= :since GROUP BY 1, 2, 3",
)
work_times: Final = SelectAll[tuple[str, str, str]](
    tuple,
    "SELECT pillar_id, started_at, ended_at FROM mission_todos WHERE mission_id = :mission_id "
    f"AND ended_at >= :since AND status = '{TodoStatus.COMPLETED}' AND started_at IS NOT NULL "
    "ORDER BY ended_at DESC LIMIT :most",
)
spend_by_day: Final = SelectAll[tuple[str, str, float, int, int, int]](
    tuple,
    "SELECT day, pillar_id, sum(cost), sum(input_tokens), sum(output_tokens), sum(requests) FROM mission_spending "
    "WHERE mission_id = :mission_id AND day >= :day GROUP BY day, pillar_id ORDER BY day, pillar_id",
)
"""Days are local ones. The pillar is empty for requests that belong to none."""
turns_by_time: Final = SelectAll[tuple[str, str, int]](
    tuple,
    "SELECT substr(ended_at, 1, :length), end_reason, count(*) FROM turns WHERE conversation_id = :conversation_id "
    "AND ended_at >= :since AND parent_turn_id IS NULL GROUP BY 1, 2",
)
"""Time, reason and number of the turns that ended in a chat, without those of workers."""
pillar_slugs: Final = SelectAll[tuple[str, str]](tuple, "SELECT id, slug FROM pillars WHERE mission_id = :mission_id")
