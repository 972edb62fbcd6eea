"""SQL of the views. The caller owns the transaction."""

from __future__ import annotations

from typing import Final

from punchlist.conversations.model import StoredTurn
from punchlist.storage.statements import Statement, columns
from punchlist.storage.store import Transaction

# Chats of missions are conversations, too; their metadata names a channel.
_SESSIONS: Final = """FROM conversations WHERE metadata NOT LIKE '%"channel":%' """
_OF_PROJECT: Final = "AND (:project = '' OR id = :project OR substr(id, 1, length(:project) + 1) = :project || '-') "
# What a person does to a mission is recorded with the session of the terminal, and is no work in that session.
_LAST_EVENT: Final = (
    "coalesce((SELECT max(seq) FROM events WHERE events.conversation_id = conversations.id "
    "AND stream NOT LIKE 'mission%'), 0)"
)

LAST_USED: Final = Statement(f"SELECT id {_SESSIONS}{_OF_PROJECT}ORDER BY {_LAST_EVENT} DESC, id LIMIT 1")
LAST_TURN: Final = Statement(
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE conversation_id = :conversation_id "
    "AND parent_turn_id IS NULL ORDER BY ended_at IS NULL DESC, started_at DESC, id DESC LIMIT 1"
)
RUNNING_TURNS: Final = Statement(
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE ended_at IS NULL AND parent_turn_id IS NULL "
    "AND owner IS NOT NULL ORDER BY started_at, id"
)
PLAN_CREATIONS: Final = Statement(
    "SELECT events.seq, events.subject, turns.id FROM turns JOIN events ON events.stream = 'plan:' || turns.id "
    "WHERE turns.conversation_id = :conversation_id AND events.action = 'create'"
)
# Most revisions of a checklist add nothing. A quote inside a text is escaped in JSON, so a text cannot match.
CHECKLIST_ADDITIONS: Final = Statement(
    """SELECT seq, data FROM events WHERE stream = :stream AND data LIKE '%"action":"add"%' ORDER BY seq"""
)
# Nothing is deleted from these tables, so an item keeps its place.
REQUESTS: Final = Statement(
    "SELECT call_id AS id, asked_at AS at FROM approvals "
    "UNION ALL SELECT id, created_at FROM todo_conditions WHERE kind = 'person' "
    "UNION ALL SELECT id, asked_at FROM escalations ORDER BY at, id"
)
QUESTION_SESSIONS: Final = Statement(
    "SELECT DISTINCT conversation_id FROM todo_conditions WHERE status = 'open' ORDER BY conversation_id"
)


def last_used_session(tx: Transaction, project: str) -> str | None:
    """The session with the newest event. `project` limits the search to ids that start with it."""
    row = tx.one(LAST_USED, project=project)
    return str(row[0]) if row else None


def last_turn(tx: Transaction, conversation_id: str) -> StoredTurn | None:
    """The open turn of a session, else the one that started last. Turns of workers do not count."""
    row = tx.one(LAST_TURN, conversation_id=conversation_id)
    return StoredTurn(*row) if row else None


def running_turns(tx: Transaction) -> list[StoredTurn]:
    return [StoredTurn(*row) for row in tx.all(RUNNING_TURNS)]


def plan_creations(tx: Transaction, conversation_id: str) -> list[tuple[int, str, str]]:
    """Event number, todo id and turn id of each plan todo that the session ever had."""
    return [
        (seq, todo_id, turn_id) for seq, todo_id, turn_id in tx.all(PLAN_CREATIONS, conversation_id=conversation_id)
    ]


def checklist_additions(tx: Transaction, stream: str) -> list[tuple[int, str]]:
    """Event number and data of each change that added items to a checklist."""
    return [(seq, data) for seq, data in tx.all(CHECKLIST_ADDITIONS, stream=stream)]


def request_ids(tx: Transaction) -> list[str]:
    """The id of every approval, question and escalation, oldest first."""
    return [str(row[0]) for row in tx.all(REQUESTS)]


def sessions_with_conditions(tx: Transaction) -> list[str]:
    return [str(row[0]) for row in tx.all(QUESTION_SESSIONS)]
