"""SQL of the search index. The caller owns the transaction.

The two databases share no full-text search: SQLite has an FTS5 table beside the documents, PostgreSQL a column.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.agent.message_kinds import REPLY, TEXT
from punchlist.storage.statements import ROW_LOCK, SelectAll, SelectOne, Statement, columns, first_column, literals

CANDIDATES: Final = 2_000
"""The newest matches, which are ranked."""


class SearchDocument(NamedTuple):
    kind: str
    subject: str
    conversation_id: str
    mission_id: str | None
    turn_id: str | None
    position: int | None
    at: str
    text: str


class FoundDocument(NamedTuple):
    kind: str
    subject: str
    conversation_id: str
    mission_id: str | None
    turn_id: str | None
    position: int | None
    at: str
    text: str
    rank: float
    is_notice: int
    """Whether the program wrote the message, such as a prompt to an agent."""


class IndexedEvent(NamedTuple):
    seq: int
    at: str
    stream: str
    conversation_id: str
    subject: str
    data: str


_DOCUMENT: Final = columns(SearchDocument._fields)
_VALUES: Final = ", ".join(f":{name}" for name in SearchDocument._fields)

# --- following the event log ------------------------------------------------------------------------------

progress: Final = SelectOne[int](first_column, "SELECT last_event FROM search_progress WHERE id = 1")
lock_progress: Final = SelectOne[int](
    first_column, "SELECT last_event FROM search_progress WHERE id = 1", lock=ROW_LOCK
)
SET_PROGRESS: Final = Statement("UPDATE search_progress SET last_event = :last_event WHERE id = 1")
events_after: Final = SelectAll(
    IndexedEvent._make,
    f"SELECT {columns(IndexedEvent._fields)} FROM events WHERE seq > :after ORDER BY seq LIMIT :most",
)
plan_todo: Final = SelectOne[tuple[str, str, str, str, str]](
    tuple,
    "SELECT conversation_id, turn_id, created_at, title, "
    "context || '\n' || completion_criteria || '\n' || coalesce(outcome, '') FROM turn_todos WHERE id = :id",
)
mission_todo: Final = SelectOne[tuple[str, str, str, str]](
    tuple,
    "SELECT mission_id, created_at, title, coalesce(description, '') || '\n' || coalesce(completion_criteria, '') "
    "|| '\n' || coalesce(outcome, '') FROM mission_todos WHERE id = :id",
)

# --- documents --------------------------------------------------------------------------------------------

find_document: Final = SelectOne[tuple[int, str]](
    tuple, "SELECT id, text FROM search_documents WHERE kind = :kind AND subject = :subject"
)
subjects_of_conversation: Final = SelectAll[str](
    first_column, "SELECT subject FROM search_documents WHERE conversation_id = :conversation_id AND kind = :kind"
)
# `:words` is the text as PostgreSQL indexes it.
INSERT: Final = Statement(
    f"INSERT INTO search_documents ({_DOCUMENT}) SELECT {_VALUES} WHERE :words IS NOT NULL",
    postgresql=f"INSERT INTO search_documents ({_DOCUMENT}, words) VALUES ({_VALUES}, to_tsvector('simple', :words))",
)
UPDATE: Final = Statement(
    "UPDATE search_documents SET text = :text, at = :at WHERE id = :id AND :words IS NOT NULL",
    postgresql="UPDATE search_documents SET text = :text, at = :at, words = to_tsvector('simple', :words) "
    "WHERE id = :id",
)
DELETE: Final = Statement("DELETE FROM search_documents WHERE id = :id")
# SQLite only; on PostgreSQL they change nothing.
ADD_TO_INDEX: Final = Statement(
    "INSERT INTO search_index (rowid, text) "
    "SELECT id, text FROM search_documents WHERE kind = :kind AND subject = :subject",
    postgresql="UPDATE search_documents SET text = text WHERE kind = :kind AND subject = :subject AND FALSE",
)
REMOVE_FROM_INDEX: Final = Statement(
    "INSERT INTO search_index (search_index, rowid, text) VALUES ('delete', :id, :text)",
    postgresql="UPDATE search_documents SET text = :text WHERE id = :id AND FALSE",
)

# --- search -----------------------------------------------------------------------------------------------

_OF_DOCUMENT: Final = columns(SearchDocument._fields, of="d")
_WANTED: Final = (
    "(:kind = '' OR d.kind = :kind) AND (:mission_id = '' OR d.mission_id = :mission_id) "
    "AND (:conversation_id = '' OR d.conversation_id = :conversation_id) AND d.id <= :newest "
    f"ORDER BY d.id DESC LIMIT {CANDIDATES}"
)
newest_document: Final = SelectOne[int](first_column, "SELECT max(id) FROM search_documents")
_IS_NOTICE: Final = (
    "CASE WHEN EXISTS (SELECT 1 FROM messages WHERE messages.id = subject "
    f"AND messages.kind NOT IN ({literals((TEXT, REPLY))})) THEN 1 ELSE 0 END"
)
_RANKED: Final = "ORDER BY is_notice, score, document DESC LIMIT :most OFFSET :skipped"
matches: Final = SelectAll(
    FoundDocument._make,
    f"SELECT {_DOCUMENT}, score, {_IS_NOTICE} AS is_notice FROM (SELECT {_OF_DOCUMENT}, d.id AS document, "
    "bm25(search_index) AS score FROM search_index JOIN search_documents AS d ON d.id = search_index.rowid "
    f"WHERE search_index MATCH :query AND {_WANTED.replace('d.id', 'search_index.rowid')}) {_RANKED}",
    postgresql=f"SELECT {_DOCUMENT}, score, {_IS_NOTICE} AS is_notice FROM (SELECT {_OF_DOCUMENT}, d.id AS document, "
    "-ts_rank_cd(d.words, to_tsquery('simple', :query)) AS score FROM search_documents AS d "
    f"WHERE d.words @@ to_tsquery('simple', :query) AND {_WANTED}) AS found {_RANKED}",
)
"""The best of the newest matches; what the program wrote comes last. `query` is in the syntax of the database."""
