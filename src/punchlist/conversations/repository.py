"""The SQL of conversations, turns, messages, traces and queued messages. The caller owns the transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from punchlist.conversations.lifecycle import QueueStatus, TurnAction
from punchlist.conversations.model import (
    CallEvidence,
    ChatEntry,
    Conversation,
    ConversationOverview,
    LastMessage,
    Message,
    ModelRequestUsage,
    NewMessage,
    NoticeKind,
    QueuedMessage,
    StoredSummary,
    StoredTurn,
    Trace,
    TurnInterrupt,
)
from punchlist.kernel.ids import new_id
from punchlist.storage.statements import (
    ROW_LOCK,
    SelectAll,
    SelectOne,
    Statement,
    columns,
    first_column,
    insert,
    literals,
    select,
    update,
)
from punchlist.storage.store import Transaction

_CONVERSATION: Final = select("conversations", Conversation._fields)
_TURN: Final = select("turns", StoredTurn._fields)
_MESSAGE: Final = select("messages", Message._fields)
_TRACE: Final = select("traces", Trace._fields)
_QUEUED_MESSAGE: Final = select("queued_messages", QueuedMessage._fields)
_IN_CONVERSATION: Final = "WHERE conversation_id = :conversation_id"

BEGIN_REASON: Final = Statement(
    f"SELECT reason FROM events WHERE stream = :stream AND subject = :turn_id AND action = '{TurnAction.BEGIN}'"
)

# --- conversations ---------------------------------------------------------------------------------------------

find_conversation: Final = SelectOne(Conversation._make, f"{_CONVERSATION} WHERE id = :id")
# Serialises the writers of a conversation on PostgreSQL; SQLite has one writer anyway.
lock_conversation: Final = SelectOne(Conversation._make, f"{_CONVERSATION} WHERE id = :id", lock=ROW_LOCK)
newest_conversations: Final = SelectAll(
    Conversation._make, f"{_CONVERSATION} ORDER BY created_at DESC, id LIMIT :limit"
)
add_conversation: Final = insert("conversations", Conversation._fields, unless="id")
"""False if another process has just added it."""
COUNTS: Final = Statement(
    f"SELECT (SELECT count(*) FROM turns {_IN_CONVERSATION}), (SELECT count(*) FROM messages {_IN_CONVERSATION})"
)


def overviews(tx: Transaction, limit: int) -> list[ConversationOverview]:
    """Newest first."""
    return [_overview(tx, conversation) for conversation in newest_conversations(tx, limit)]


def _overview(tx: Transaction, conversation: Conversation) -> ConversationOverview:
    counts = tx.one(COUNTS, conversation_id=conversation.id)
    assert counts is not None
    return ConversationOverview(conversation, counts[0], counts[1], last_top_turn(tx, conversation.id))


# --- turns -----------------------------------------------------------------------------------------------------

find_turn: Final = SelectOne(StoredTurn._make, f"{_TURN} WHERE id = :id")
lock_turn: Final = SelectOne(StoredTurn._make, f"{_TURN} WHERE id = :id", lock=ROW_LOCK)
"""The turn, locked against other writers until the transaction ends."""
_OPEN_TOP_TURN: Final = f"{_TURN} {_IN_CONVERSATION} AND ended_at IS NULL AND parent_turn_id IS NULL"
_find_open_turn: Final = SelectOne(StoredTurn._make, f"{_OPEN_TOP_TURN} AND run_id IS NULL")
_find_open_turn_of_run: Final = SelectOne(StoredTurn._make, f"{_OPEN_TOP_TURN} AND run_id = :run_id")
# A worker's turn does not show the state of the conversation.
last_top_turn: Final = SelectOne(
    StoredTurn._make,
    f"{_TURN} {_IN_CONVERSATION} AND parent_turn_id IS NULL ORDER BY started_at DESC, id DESC LIMIT 1",
)
newest_turns: Final = SelectAll(
    StoredTurn._make, f"{_TURN} {_IN_CONVERSATION} ORDER BY started_at DESC, id DESC LIMIT :limit"
)
all_turns: Final = SelectAll(StoredTurn._make, f"{_TURN} {_IN_CONVERSATION} ORDER BY started_at, id")
"""Oldest first, including the turns of workers."""
child_turns: Final = SelectAll(
    StoredTurn._make, f"{_TURN} {_IN_CONVERSATION} AND parent_turn_id = :parent ORDER BY started_at DESC, id DESC"
)
# `started_at` limits the search to the end of the index.
_open_child_turns: Final = SelectAll(
    StoredTurn._make,
    f"{_TURN} {_IN_CONVERSATION} AND started_at >= :since AND parent_turn_id = :parent AND ended_at IS NULL",
)
add_turn: Final = insert("turns", StoredTurn._fields)
SET_METADATA: Final = update("conversations", ["metadata"], where="id = :id")
UPDATE_TURN: Final = update("turns", ("ended_at", "end_reason", "owner"), where="id = :turn_id AND ended_at IS NULL")


def find_open_turn(tx: Transaction, conversation_id: str, run_id: str | None = None) -> StoredTurn | None:
    """The open top-level turn of a session, or of a run in a chat of a mission."""
    if run_id is not None:
        return _find_open_turn_of_run(tx, conversation_id, run_id)
    return _find_open_turn(tx, conversation_id)


def update_turn(tx: Transaction, before: StoredTurn, changes: dict[str, Any]) -> StoredTurn | None:
    """Write `changes` if the turn is still open; None when it has ended. `status` follows from `ended_at`."""
    after = before._replace(**{name: value for name, value in changes.items() if name != "status"})
    written = tx.run(
        UPDATE_TURN, turn_id=before.id, ended_at=after.ended_at, end_reason=after.end_reason, owner=after.owner
    )
    return after if written else None


def open_child_turns(tx: Transaction, turn: StoredTurn) -> list[StoredTurn]:
    return _open_child_turns(tx, turn.conversation_id, turn.started_at, turn.id)


_open_call: Final = SelectOne[str](
    first_column,
    # The open calls of a conversation have an index: a turn can have hundreds of ended ones.
    "SELECT id FROM tool_calls WHERE conversation_id = :conversation_id AND turn_id = :turn_id AND ended_at IS NULL "
    "LIMIT 1",
)


def has_open_calls(tx: Transaction, turn: StoredTurn) -> bool:
    return _open_call(tx, turn.conversation_id, turn.id) is not None


find_interrupt: Final = SelectOne(
    TurnInterrupt._make, f"{select('turn_interrupts', TurnInterrupt._fields)} WHERE turn_id = :turn_id"
)
add_interrupt: Final = insert("turn_interrupts", TurnInterrupt._fields, unless="turn_id")
"""False if the turn has one already."""

# --- messages and traces ---------------------------------------------------------------------------------------

find_message: Final = SelectOne(Message._make, f"{_MESSAGE} WHERE id = :id")
all_messages: Final = SelectAll(Message._make, f"{_MESSAGE} {_IN_CONVERSATION} ORDER BY position")
turn_messages: Final = SelectAll(Message._make, f"{_MESSAGE} WHERE turn_id = :turn_id ORDER BY position")
newest_messages: Final = SelectAll(Message._make, f"{_MESSAGE} {_IN_CONVERSATION} ORDER BY position DESC LIMIT :limit")
messages_outside_turns: Final = SelectAll(
    Message._make, f"{_MESSAGE} {_IN_CONVERSATION} AND turn_id IS NULL ORDER BY position DESC LIMIT :limit"
)
"""Newest first."""
# Positions have no gaps: the last position is also the number of messages.
last_message: Final = SelectOne(
    LastMessage._make, f"SELECT position, created_at FROM messages {_IN_CONVERSATION} ORDER BY position DESC LIMIT 1"
)
last_message_of_kind: Final = SelectOne(
    Message._make, f"{_MESSAGE} {_IN_CONVERSATION} AND kind = :kind ORDER BY position DESC LIMIT 1"
)
_ABOUT_TODOS: Final = (NoticeKind.TODO_RESULT, NoticeKind.TODO_ERROR, NoticeKind.TODO_FEEDBACK)
about_todo: Final = SelectAll(
    Message._make,
    f"{_MESSAGE} WHERE todo_id = :todo_id AND created_at >= :since AND kind IN ({literals(_ABOUT_TODOS)}) "
    "AND substr(content, 1, 6) = '[TODO ' ORDER BY created_at DESC, position DESC LIMIT :limit",
)
"""The reports, errors and feedback on a mission todo, newest first; not the results of delegated work."""
# The messages of the person's agent, without those of its workers.
RECENT: Final = Statement(
    f"{_MESSAGE} JOIN turns ON turns.id = messages.turn_id "
    "WHERE messages.conversation_id = :conversation_id AND messages.turn_id <> :except_turn "
    "AND turns.parent_turn_id IS NULL ORDER BY messages.position DESC LIMIT :limit"
)
# Without the results of calls, which are long.
turn_texts: Final = SelectAll(
    Message._make, f"{_MESSAGE} WHERE turn_id = :turn_id AND role <> 'tool' ORDER BY position"
)
newest_top_turns: Final = SelectAll(
    StoredTurn._make,
    f"{_TURN} {_IN_CONVERSATION} AND parent_turn_id IS NULL AND id <> :except_turn "
    "ORDER BY started_at DESC, id DESC LIMIT :limit",
)
# For a conversation that several agents share: the agent's own turns, and the notices for all.
ENTRIES_OF_AGENT: Final = Statement(
    f"SELECT {columns(Message._fields, of='messages')}, {columns(StoredTurn._fields, of='turns')} "
    "FROM messages LEFT JOIN turns ON turns.id = messages.turn_id "
    "WHERE messages.conversation_id = :conversation_id AND messages.position > :after AND messages.role <> 'tool' "
    f"AND ((messages.turn_id IS NULL AND messages.kind IN ({literals(NoticeKind)})) "
    "OR (turns.agent_id = :agent_id AND turns.parent_turn_id IS NULL AND turns.id <> :except_turn)) "
    "ORDER BY messages.position LIMIT :limit"
)
last_of_kind: Final = SelectAll[str](
    first_column,
    "SELECT content FROM messages WHERE turn_id = :turn_id AND kind = :kind ORDER BY position DESC LIMIT :most",
)
first_position: Final = SelectOne[int | None](
    first_column, "SELECT min(position) FROM messages WHERE turn_id = :turn_id"
)
find_summary: Final = SelectOne(
    StoredSummary._make,
    f"{select('chat_summaries', StoredSummary._fields)} {_IN_CONVERSATION} AND agent_id = :agent_id",
)
# An older summary never replaces a newer one.
SAVE_SUMMARY: Final = Statement(
    "INSERT INTO chat_summaries (conversation_id, agent_id, position, content, updated_at) "
    "VALUES (:conversation_id, :agent_id, :position, :content, :updated_at) "
    "ON CONFLICT (conversation_id, agent_id) DO UPDATE SET position = excluded.position, "
    "content = excluded.content, updated_at = excluded.updated_at WHERE chat_summaries.position <= excluded.position"
)
INSERT_MESSAGE: Final = insert("messages", Message._fields)

add_trace: Final = insert("traces", Trace._fields)
# Joined with turns, since no index covers the conversation of a trace.
all_traces: Final = SelectAll(
    Trace._make,
    f"{_TRACE} JOIN turns ON turns.id = traces.turn_id WHERE turns.conversation_id = :conversation_id "
    "ORDER BY traces.started_at, traces.id",
)


def recent_messages(tx: Transaction, conversation_id: str, limit: int, *, except_turn: str = "") -> list[Message]:
    """Messages of top-level turns, newest first."""
    rows = tx.all(RECENT, conversation_id=conversation_id, limit=limit, except_turn=except_turn)
    return [Message(*row) for row in rows]


def fingerprint(message: Message) -> dict[str, Any]:
    """What an event stores about a message: a hash of the content instead of a second copy."""
    data = message._asdict()
    data["sha256"] = hashlib.sha256(data.pop("content").encode()).hexdigest()
    return {"message": data}


def add_message(
    tx: Transaction,
    conversation_id: str,
    role: str,
    content: str,
    *,
    kind: str = "text",
    turn_id: str | None = None,
    posted_by: str | None = None,
    todo_id: str | None = None,
) -> Message:
    """Append a message. The caller has locked the conversation."""
    new = NewMessage(role, kind, content)
    return add_messages(tx, conversation_id, turn_id, [new], posted_by=posted_by, todo_id=todo_id)[0]


def add_messages(
    tx: Transaction,
    conversation_id: str,
    turn_id: str | None,
    messages: Sequence[NewMessage],
    *,
    posted_by: str | None = None,
    todo_id: str | None = None,
) -> list[Message]:
    last = last_message(tx, conversation_id)
    position, now = last.messages if last else 0, tx.now()
    added = [
        Message(
            *(new_id(), conversation_id, turn_id, position + number, new.role, new.kind, new.content, now),
            *(posted_by, todo_id),
        )
        for number, new in enumerate(messages, start=1)
    ]
    tx.run_many(INSERT_MESSAGE, [message._asdict() for message in added])
    return added


# --- queued messages -------------------------------------------------------------------------------------------

_WAITS: Final = f"status = '{QueueStatus.QUEUED}'"
_CHANGING: Final = ("content", "status", "changed_at", "turn_id")
_NO_LIMIT: Final = 1_000_000
add_queued: Final = insert("queued_messages", QueuedMessage._fields)
UPDATE_QUEUED: Final = update("queued_messages", _CHANGING, where=f"id = :queued_id AND {_WAITS}")
find_queued: Final = SelectOne(QueuedMessage._make, f"{_QUEUED_MESSAGE} {_IN_CONVERSATION} AND id = :id")
_queued: Final = SelectAll(
    QueuedMessage._make, f"{_QUEUED_MESSAGE} {_IN_CONVERSATION} AND {_WAITS} ORDER BY position LIMIT :limit"
)
all_queued_messages: Final = SelectAll(QueuedMessage._make, f"{_QUEUED_MESSAGE} {_IN_CONVERSATION} ORDER BY position")
"""Including delivered and withdrawn ones."""
QUEUED_FOR_TURN: Final = Statement(f"SELECT id FROM queued_messages {_IN_CONVERSATION} AND turn_id = :turn_id LIMIT 1")
LAST_QUEUE_POSITION: Final = Statement(
    f"SELECT position FROM queued_messages {_IN_CONVERSATION} ORDER BY position DESC LIMIT 1"
)


def queued_messages(tx: Transaction, conversation_id: str, limit: int = _NO_LIMIT) -> list[QueuedMessage]:
    """Undelivered messages in the order of delivery."""
    return _queued(tx, conversation_id, limit)


def queued_message_started(tx: Transaction, conversation_id: str, turn_id: str) -> bool:
    """Whether a queued message started the turn."""
    return tx.one(QUEUED_FOR_TURN, conversation_id=conversation_id, turn_id=turn_id) is not None


def next_queue_position(tx: Transaction, conversation_id: str) -> int:
    row = tx.one(LAST_QUEUE_POSITION, conversation_id=conversation_id)
    return row[0] + 1 if row else 1


def update_queued(tx: Transaction, before: QueuedMessage, changes: dict[str, Any]) -> QueuedMessage | None:
    """Write `changes` if the message is still queued; None when it is not."""
    after = before._replace(**{**changes, "status": changes["status"].value})
    values = {name: getattr(after, name) for name in _CHANGING}
    return after if tx.run(UPDATE_QUEUED, queued_id=before.id, **values) else None


MAX_SUMMARY_LENGTH: Final = 500
"""Characters of a result that are read for its first line."""
_FOREVER: Final = "9999"

# A child turn starts while its parent is open.
CHILD_TURNS_DURING: Final = Statement(
    f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE conversation_id = :conversation_id "
    "AND started_at >= :since AND started_at <= :until AND parent_turn_id IS NOT NULL ORDER BY started_at, id"
)
_EVIDENCE: Final = (
    "SELECT id, tool, status, "
    f"substr(result, 1, {MAX_SUMMARY_LENGTH}), substr(explanation, 1, {MAX_SUMMARY_LENGTH}), "
    "output_file, created_at, started_at, ended_at"
)
CALLS: Final = Statement(f"{_EVIDENCE} FROM tool_calls WHERE turn_id = :turn_id ORDER BY position")
CALLS_BEFORE: Final = Statement(
    f"{_EVIDENCE}, position, arguments FROM tool_calls WHERE turn_id = :turn_id AND position < :before "
    "ORDER BY position DESC LIMIT :most"
)
REQUESTS: Final = Statement(
    "SELECT output, started_at FROM traces WHERE turn_id = :turn_id AND kind = 'model' ORDER BY started_at"
)


def with_child_turns(tx: Transaction, turn: StoredTurn) -> list[StoredTurn]:
    """The turn and all turns below it."""
    rows = tx.all(
        CHILD_TURNS_DURING,
        conversation_id=turn.conversation_id,
        since=turn.started_at,
        until=turn.ended_at or _FOREVER,
    )
    found, known = [turn], {turn.id}
    candidates = [StoredTurn(*row) for row in rows]
    # Sorted by start, parents usually come first; turns with equal times may need another pass.
    while below := [turn for turn in candidates if turn.parent_turn_id in known and turn.id not in known]:
        found += below
        known |= {turn.id for turn in below}
    return found


def tool_calls(tx: Transaction, turns: Iterable[StoredTurn]) -> list[CallEvidence]:
    """In the order in which they started."""
    found = [_evidence(turn.id, turn.agent_id, row) for turn in turns for row in tx.all(CALLS, turn_id=turn.id)]
    return sorted(found, key=lambda call: call.at)


def calls_before(
    tx: Transaction, turn_id: str, agent_id: str, before: int, most: int
) -> list[tuple[int, CallEvidence, str]]:
    """The newest calls of a turn before a position: position, call, and arguments as JSON. Newest first."""
    rows = tx.all(CALLS_BEFORE, turn_id=turn_id, before=before, most=most)
    return [(row[-2], _evidence(turn_id, agent_id, row[:-2]), row[-1]) for row in rows]


def model_requests(tx: Transaction, turns: Sequence[StoredTurn]) -> list[ModelRequestUsage]:
    return [
        ModelRequestUsage(str(at), *_tokens(str(output)))
        for turn in turns
        for output, at in tx.all(REQUESTS, turn_id=turn.id)
    ]


def _evidence(turn_id: str, agent_id: str, row: Sequence[Any]) -> CallEvidence:
    id, tool, status, result, explanation, output_file, created_at, started_at, ended_at = row
    summary = next(iter(str(result or explanation or "").strip().splitlines()), "")
    return CallEvidence(id, turn_id, agent_id, tool, status, summary, output_file, started_at or created_at, ended_at)


def _tokens(output: str) -> tuple[int, int]:
    """Input and output tokens; zero for a failed request."""
    try:
        input_tokens, output_tokens = json.loads(output)["tokens"]
        return int(input_tokens), int(output_tokens)
    except (ValueError, KeyError, TypeError):
        return 0, 0


def entries_of_agent(
    tx: Transaction, conversation_id: str, agent_id: str, after: int, except_turn: str, limit: int
) -> list[ChatEntry]:
    """Messages after a position: of the agent's turns, without results of calls, and notices; oldest first."""
    width = len(Message._fields)
    rows = tx.all(
        ENTRIES_OF_AGENT,
        conversation_id=conversation_id,
        agent_id=agent_id,
        after=after,
        except_turn=except_turn,
        limit=limit,
    )
    return [
        ChatEntry(Message._make(row[:width]), StoredTurn._make(row[width:]) if row[width] is not None else None)
        for row in rows
    ]
