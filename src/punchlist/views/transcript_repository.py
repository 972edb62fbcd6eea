"""SQL of transcripts and of the list of conversations. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.conversations.model import Conversation, Message
from punchlist.plan.lifecycle import OPEN, PlanStatus
from punchlist.storage.statements import SelectAll, SelectOne, columns, first_column, literals
from punchlist.toolcalls.repository import OPEN_APPROVAL

MAX_RESULT: Final = 4_000
MAX_ARGUMENTS: Final = 40_000
MAX_QUESTION: Final = 40_000
MAX_TITLE: Final = 300

# --- messages and calls -----------------------------------------------------------------------------------

# Results of calls are shown with their calls.
_MESSAGE: Final = (
    f"SELECT {columns(Message._fields)} FROM messages WHERE conversation_id = :conversation_id AND role <> 'tool'"
)
messages_before: Final = SelectAll(
    Message._make, f"{_MESSAGE} AND position < :position ORDER BY position DESC LIMIT :most"
)
messages_after: Final = SelectAll(Message._make, f"{_MESSAGE} AND position > :position ORDER BY position LIMIT :most")
turn_after: Final = SelectOne[str | None](
    first_column,
    "SELECT turn_id FROM messages WHERE conversation_id = :conversation_id AND position > :position "
    "ORDER BY position LIMIT 1",
)


class TranscriptCall(NamedTuple):
    """A call with the beginnings of its long fields, and its approval."""

    id: str
    turn_id: str | None
    tool: str
    arguments: str
    status: str
    result: str | None
    result_length: int | None
    output_file: str | None
    explanation: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    approval: str | None
    """The status of its approval."""
    question: str | None
    answered_by: str | None
    answer_reason: str | None
    outcome: str | None


_CALL: Final = (
    f"SELECT tool_calls.id, turn_id, tool, substr(tool_calls.arguments, 1, {MAX_ARGUMENTS}), tool_calls.status, "
    f"substr(result, 1, {MAX_RESULT}), length(result), output_file, substr(explanation, 1, {MAX_RESULT}), created_at, "
    f"started_at, ended_at, approvals.status, substr(question, 1, {MAX_QUESTION}), answered_by, reason, "
    "approvals.outcome "
    "FROM tool_calls LEFT JOIN approvals ON approvals.call_id = tool_calls.id WHERE"
)
find_call: Final = SelectOne(TranscriptCall._make, f"{_CALL} tool_calls.id = :id")
call_position: Final = SelectOne[int](first_column, "SELECT position FROM tool_calls WHERE id = :id")
calls_between: Final = SelectAll(
    TranscriptCall._make,
    f"{_CALL} tool_calls.conversation_id = :conversation_id AND position >= :first AND position <= :last",
)

# --- conversations ----------------------------------------------------------------------------------------


class ConversationActivity(NamedTuple):
    id: str
    title: str
    metadata: str
    created_at: str
    last_event: int


_LAST_EVENT: Final = (
    "coalesce((SELECT max(seq) FROM events WHERE events.conversation_id = conversations.id "
    "AND stream NOT LIKE 'mission%'), 0)"
)
_ACTIVITY: Final = f"SELECT {columns(Conversation._fields)}, {_LAST_EVENT} AS last_event FROM conversations"
conversations: Final = SelectAll(
    ConversationActivity._make,
    f"SELECT * FROM ({_ACTIVITY}) AS found WHERE last_event < :before ORDER BY last_event DESC, id LIMIT :most",
)
"""By their last activity, newest first."""
conversation_activity: Final = SelectOne(ConversationActivity._make, f"{_ACTIVITY} WHERE id = :id")
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
