"""SQL of the views. The caller owns the transaction."""

from __future__ import annotations

from typing import Final

from punchlist.conversations.model import StoredTurn
from punchlist.storage.statements import SelectAll, SelectOne, columns, first_column

# Chats of missions are conversations, too; their metadata names a channel.
_SESSIONS: Final = """FROM conversations WHERE metadata NOT LIKE '%"channel":%' """
_OF_PROJECT: Final = "AND (:project = '' OR id = :project OR substr(id, 1, length(:project) + 1) = :project || '-') "
# What a person does to a mission is recorded with the session of the terminal, and is no work in that session.
_LAST_EVENT: Final = (
    "coalesce((SELECT max(seq) FROM events WHERE events.conversation_id = conversations.id "
    "AND stream NOT LIKE 'mission%'), 0)"
)


last_used_session: Final = SelectOne[str](
    first_column, f"SELECT id {_SESSIONS}{_OF_PROJECT}ORDER BY {_LAST_EVENT} DESC, id LIMIT 1"
)
"""The session with the newest event. `project` limits the search to ids that start with it."""
last_turn: Final = SelectOne(
    StoredTurn._make,
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE conversation_id = :conversation_id "
    "AND parent_turn_id IS NULL ORDER BY ended_at IS NULL DESC, started_at DESC, id DESC LIMIT 1",
)
"""The open turn of a session, else the one that started last. Turns of workers do not count."""
running_turns: Final = SelectAll(
    StoredTurn._make,
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE ended_at IS NULL AND parent_turn_id IS NULL "
    "AND owner IS NOT NULL ORDER BY started_at, id",
)
plan_creations: Final = SelectAll[tuple[int, str, str]](
    tuple,
    "SELECT events.seq, events.subject, turns.id FROM turns JOIN events ON events.stream = 'plan:' || turns.id "
    "WHERE turns.conversation_id = :conversation_id AND events.action = 'create'",
)
"""Event number, todo id and turn id of each plan todo that the session ever had."""
# Most revisions of a checklist add nothing. A quote inside a text is escaped in JSON, so a text cannot match.
checklist_additions: Final = SelectAll[tuple[int, str]](
    tuple, """SELECT seq, data FROM events WHERE stream = :stream AND data LIKE '%"action":"add"%' ORDER BY seq"""
)
"""Event number and data of each change that added items to a checklist."""
checklist_before: Final = SelectOne[str](
    first_column,
    "SELECT data FROM events WHERE stream = :stream "
    "AND at < (SELECT started_at FROM turns WHERE id = :turn_id) ORDER BY version DESC LIMIT 1",
)
"""The data of the last change of a checklist before a turn began. It contains the whole list."""
checklist_during: Final = SelectAll[str](
    first_column,
    "SELECT data FROM events WHERE stream = :stream "
    "AND at >= (SELECT started_at FROM turns WHERE id = :turn_id) ORDER BY version",
)
"""The data of each change of a checklist since a turn began, oldest first."""
# Nothing is deleted from these tables, so an item keeps its place.
request_ids: Final = SelectAll[str](
    first_column,
    "SELECT call_id AS id, asked_at AS at FROM approvals "
    "UNION ALL SELECT id, created_at FROM todo_conditions WHERE kind = 'person' "
    "UNION ALL SELECT id, asked_at FROM escalations "
    "UNION ALL SELECT id, created_at FROM runs WHERE kind IN ('cycle', 'plan') ORDER BY at, id",
)
"""The id of every approval, question, escalation, cycle and planning run, oldest first."""
failed_planning: Final = SelectAll[tuple[str, str, str, str, str, int, str]](
    tuple,
    "SELECT runs.id, runs.kind, missions.slug, runs.why, coalesce(runs.ended_at, runs.changed_at), runs.leg, "
    "runs.created_by FROM runs JOIN missions ON missions.id = runs.mission_id "
    "WHERE runs.status = 'failed' AND runs.kind IN ('cycle', 'plan') AND missions.status = 'active' "
    "AND NOT EXISTS (SELECT 1 FROM runs AS newer WHERE newer.mission_id = runs.mission_id "
    "AND newer.conversation_id = runs.conversation_id AND newer.kind = runs.kind "
    "AND (newer.created_at > runs.created_at OR (newer.created_at = runs.created_at AND newer.id > runs.id))) "
    "ORDER BY runs.created_at, runs.id",
)
"""Failed cycles and planning runs that no newer one has replaced: id, kind, mission, error, end, retries, requester."""
sessions_with_conditions: Final = SelectAll[str](
    first_column, "SELECT DISTINCT conversation_id FROM todo_conditions WHERE status = 'open' ORDER BY conversation_id"
)
