"""SQL of the list of conversations. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.conversations.model import Conversation, Message
from punchlist.missions.model import ChatChannel
from punchlist.plan.lifecycle import OPEN, PlanStatus
from punchlist.storage.statements import SelectAll, SelectOne, columns, first_column, literals
from punchlist.toolcalls.repository import OPEN_APPROVAL

MAX_TITLE: Final = 300

last_messages: Final = SelectAll(
    Message._make,
    f"SELECT {columns(Message._fields)} FROM messages WHERE conversation_id = :conversation_id AND role <> 'tool' "
    "ORDER BY position DESC LIMIT :most",
)
"""Newest first, without the results of calls."""


class ConversationActivity(NamedTuple):
    id: str
    title: str
    metadata: str
    created_at: str
    last_event: int


_OWN_EVENTS: Final = "conversation_id = conversations.id AND"
# Compared as rows: otherwise PostgreSQL can choose to read the whole log in the order of its primary key.
_OWN_EVENTS_POSTGRESQL: Final = """(conversation_id, seq) >= (conversations.id, 0)
AND (conversation_id, seq) <= (conversations.id, 4611686018427387904) AND"""


def _activity(condition: str, own_events: str = _OWN_EVENTS) -> str:
    """Conversations with their last event. The chat of a mission also has the events of its todos and readings, which
    can be most of the log: there, it is the last one of the conversation itself."""
    in_mission = (
        "SELECT seq FROM events WHERE stream = 'conversation:' || conversations.id ORDER BY version DESC LIMIT 1"
    )
    other = (
        f"SELECT seq FROM events WHERE {own_events} stream NOT LIKE 'mission%' "
        "ORDER BY conversation_id DESC, seq DESC LIMIT 1"
    )
    is_mission = f"""metadata LIKE '%"channel":"{ChatChannel.MISSION}"%'"""
    last_event = f"coalesce(CASE WHEN {is_mission} THEN ({in_mission}) ELSE ({other}) END, 0) AS last_event"
    return (
        f"SELECT * FROM (SELECT {columns(Conversation._fields)}, {last_event} FROM conversations) AS found {condition}"
    )


_BY_ACTIVITY: Final = "WHERE last_event < :before ORDER BY last_event DESC, id LIMIT :most"
conversations: Final = SelectAll(
    ConversationActivity._make, _activity(_BY_ACTIVITY), postgresql=_activity(_BY_ACTIVITY, _OWN_EVENTS_POSTGRESQL)
)
"""By their last activity, newest first."""
conversation_activity: Final = SelectOne(
    ConversationActivity._make,
    _activity("WHERE id = :id"),
    postgresql=_activity("WHERE id = :id", _OWN_EVENTS_POSTGRESQL),
)
event_time: Final = SelectOne[str](first_column, "SELECT at FROM events WHERE seq = :seq")
first_request: Final = SelectOne[str](
    first_column,
    f"SELECT substr(content, 1, {MAX_TITLE}) FROM messages WHERE conversation_id = :conversation_id "
    "AND role = 'user' AND kind = 'text' ORDER BY position LIMIT 1",
)
plan_counts: Final = SelectOne[tuple[int, int, int]](
    tuple,
    f"SELECT count(*), coalesce(sum(CASE WHEN status IN ({literals(OPEN)}) THEN 1 ELSE 0 END), 0), "
    f"coalesce(sum(CASE WHEN status = '{PlanStatus.COMPLETED}' THEN 1 ELSE 0 END), 0) "
    "FROM turn_todos WHERE turn_id = :turn_id",
)
"""All, open and completed todos of a plan."""
plan_in_progress: Final = SelectOne[str](
    first_column,
    f"SELECT title FROM turn_todos WHERE turn_id = :turn_id AND status = '{PlanStatus.IN_PROGRESS}' LIMIT 1",
)
waiting_approvals: Final = SelectOne[int](
    first_column,
    f"SELECT count(*) FROM approvals WHERE conversation_id = :conversation_id AND {OPEN_APPROVAL}",
)
queued_count: Final = SelectOne[int](
    first_column,
    "SELECT count(*) FROM queued_messages WHERE conversation_id = :conversation_id AND status = 'queued'",
)
