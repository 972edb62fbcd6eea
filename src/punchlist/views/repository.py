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
open_turns: Final = SelectAll(
    StoredTurn._make,
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE ended_at IS NULL AND parent_turn_id IS NULL "
    "ORDER BY started_at, id",
)
# Ids grow with time, so that the newest turns are at the end of the primary key.
newest_ended_turns: Final = SelectAll(
    StoredTurn._make,
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE id IN (SELECT max(id) FROM (SELECT id, conversation_id "
    "FROM turns WHERE ended_at IS NOT NULL AND parent_turn_id IS NULL ORDER BY id DESC LIMIT 1000) AS newest "
    "GROUP BY conversation_id) ORDER BY id DESC LIMIT :most",
)
"""The last one of each conversation, among the newest 1,000 of all."""
count_ended_turns: Final = SelectOne[int](
    first_column,
    "SELECT count(*) FROM turns WHERE conversation_id = :conversation_id AND ended_at IS NOT NULL "
    "AND parent_turn_id IS NULL",
)
request_of_turn: Final = SelectOne[str](
    first_column,
    "SELECT substr(content, 1, 2000) FROM messages WHERE turn_id = :turn_id AND role = 'user' AND kind = 'text' "
    "ORDER BY position LIMIT 1",
)
continuations_of_turn: Final = SelectOne[int](
    first_column, "SELECT count(*) FROM messages WHERE turn_id = :turn_id AND kind = 'continuation'"
)
checklists_without_turn: Final = SelectAll[tuple[str, str]](
    tuple,
    "SELECT conversation_id, updated_at FROM checklists WHERE NOT EXISTS (SELECT 1 FROM turns "
    "WHERE turns.conversation_id = checklists.conversation_id) ORDER BY updated_at DESC LIMIT :most",
)
"""Session and last change of the checklists on which no agent has worked."""
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
