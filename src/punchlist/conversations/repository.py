"""The SQL of conversations, turns, messages, traces and queued messages. The caller owns the transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from punchlist.conversations.lifecycle import QueueStatus
from punchlist.conversations.model import (
    Conversation,
    ConversationOverview,
    LastMessage,
    Message,
    NewMessage,
    NoticeKind,
    QueuedMessage,
    StoredTurn,
    Trace,
)
from punchlist.kernel.ids import new_id
from punchlist.storage.statements import ROW_LOCK, Statement, columns, insert, literals, update
from punchlist.storage.store import Transaction


def _select(table: str, value: type[Any]) -> str:
    """SELECT the fields of a value in their order."""
    return f"SELECT {columns(value.__annotations__, of=table)} FROM {table}"


_CONVERSATION: Final = _select("conversations", Conversation)
_TURN: Final = _select("turns", StoredTurn)
_MESSAGE: Final = _select("messages", Message)
_TRACE: Final = _select("traces", Trace)
SEARCHED_MESSAGES: Final = 1_000
"""`messages_mentioning` searches this many messages at the end."""
_IN_CONVERSATION: Final = "WHERE conversation_id = :conversation_id"

INSERT_CONVERSATION: Final = insert("conversations", Conversation.__annotations__, unless="id")
CONVERSATION: Final = Statement(f"{_CONVERSATION} WHERE id = :id")
# Serialises the writers of a conversation on PostgreSQL; SQLite has one writer anyway.
LOCK_CONVERSATION: Final = Statement(f"{_CONVERSATION} WHERE id = :id", lock=ROW_LOCK)
CONVERSATIONS: Final = Statement(f"{_CONVERSATION} ORDER BY created_at DESC, id LIMIT :limit")
COUNTS: Final = Statement(
    f"SELECT (SELECT count(*) FROM turns {_IN_CONVERSATION}), (SELECT count(*) FROM messages {_IN_CONVERSATION})"
)

INSERT_TURN: Final = insert("turns", StoredTurn.__annotations__)
UPDATE_TURN: Final = update("turns", ("ended_at", "end_reason", "owner"), where="id = :turn_id AND ended_at IS NULL")
TURN: Final = Statement(f"{_TURN} WHERE id = :id")
LOCK_TURN: Final = Statement(f"{_TURN} WHERE id = :id", lock=ROW_LOCK)
OPEN_TURN: Final = Statement(f"{_TURN} {_IN_CONVERSATION} AND ended_at IS NULL AND parent_turn_id IS NULL")
# A worker's turn does not show the state of the conversation.
LAST_TURN: Final = Statement(
    f"{_TURN} {_IN_CONVERSATION} AND parent_turn_id IS NULL ORDER BY started_at DESC, id DESC LIMIT 1"
)
NEWEST_TURNS: Final = Statement(f"{_TURN} {_IN_CONVERSATION} ORDER BY started_at DESC, id DESC LIMIT :limit")
ALL_TURNS: Final = Statement(f"{_TURN} {_IN_CONVERSATION} ORDER BY started_at, id")
CHILD_TURNS: Final = Statement(
    f"{_TURN} {_IN_CONVERSATION} AND parent_turn_id = :parent ORDER BY started_at DESC, id DESC"
)
# `started_at` limits the search to the end of the index.
OPEN_CHILD_TURNS: Final = Statement(
    f"{_TURN} {_IN_CONVERSATION} AND started_at >= :since AND parent_turn_id = :parent AND ended_at IS NULL"
)

INSERT_MESSAGE: Final = insert("messages", Message.__annotations__)
MESSAGE: Final = Statement(f"{_MESSAGE} WHERE id = :id")
MESSAGES: Final = Statement(f"{_MESSAGE} {_IN_CONVERSATION} ORDER BY position")
TURN_MESSAGES: Final = Statement(f"{_MESSAGE} WHERE turn_id = :turn_id ORDER BY position")
NEWEST_MESSAGES: Final = Statement(f"{_MESSAGE} {_IN_CONVERSATION} ORDER BY position DESC LIMIT :limit")
OUTSIDE_TURNS: Final = Statement(
    f"{_MESSAGE} {_IN_CONVERSATION} AND turn_id IS NULL ORDER BY position DESC LIMIT :limit"
)
MENTIONING: Final = Statement(
    f"{_MESSAGE} {_IN_CONVERSATION} AND position > :after AND turn_id IS NULL "
    "AND substr(content, 1, 500) LIKE :pattern ORDER BY position DESC LIMIT :limit"
)
# The messages of the person's agent, without those of its workers.
RECENT: Final = Statement(
    f"{_MESSAGE} JOIN turns ON turns.id = messages.turn_id "
    "WHERE messages.conversation_id = :conversation_id AND messages.turn_id <> :except_turn "
    "AND turns.parent_turn_id IS NULL ORDER BY messages.position DESC LIMIT :limit"
)
# In a conversation of several agents: the messages of one agent's turns, and notices posted for all.
RECENT_OF_AGENT: Final = Statement(
    f"{_MESSAGE} LEFT JOIN turns ON turns.id = messages.turn_id WHERE messages.conversation_id = :conversation_id AND ("
    "messages.turn_id <> :except_turn AND turns.parent_turn_id IS NULL AND turns.agent_id = :agent_id "
    f"OR messages.turn_id IS NULL AND messages.kind IN ({literals(NoticeKind)})) "
    "ORDER BY messages.position DESC LIMIT :limit"
)
LAST_POSITION: Final = Statement(f"SELECT position FROM messages {_IN_CONVERSATION} ORDER BY position DESC LIMIT 1")
# Positions have no gaps: the last position is also the number of messages.
LAST_MESSAGE: Final = Statement(
    f"SELECT position, created_at FROM messages {_IN_CONVERSATION} ORDER BY position DESC LIMIT 1"
)

INSERT_TRACE: Final = insert("traces", Trace.__annotations__)
TRACES: Final = Statement(f"{_TRACE} WHERE turn_id = :turn_id ORDER BY started_at, id")
# Joined with turns, since no index covers the conversation of a trace.
ALL_TRACES: Final = Statement(
    f"{_TRACE} JOIN turns ON turns.id = traces.turn_id WHERE turns.conversation_id = :conversation_id "
    "ORDER BY traces.started_at, traces.id"
)

_QUEUED_MESSAGE: Final = _select("queued_messages", QueuedMessage)
_WAITS: Final = f"status = '{QueueStatus.QUEUED}'"
_CHANGING: Final = ("content", "status", "changed_at", "turn_id")
_NO_LIMIT: Final = 1_000_000
INSERT_QUEUED: Final = insert("queued_messages", QueuedMessage._fields)
UPDATE_QUEUED: Final = update("queued_messages", _CHANGING, where=f"id = :queued_id AND {_WAITS}")
QUEUED_BY_ID: Final = Statement(f"{_QUEUED_MESSAGE} {_IN_CONVERSATION} AND id = :id")
QUEUED: Final = Statement(f"{_QUEUED_MESSAGE} {_IN_CONVERSATION} AND {_WAITS} ORDER BY position LIMIT :limit")
ALL_QUEUED: Final = Statement(f"{_QUEUED_MESSAGE} {_IN_CONVERSATION} ORDER BY position")
QUEUED_FOR_TURN: Final = Statement(f"SELECT id FROM queued_messages {_IN_CONVERSATION} AND turn_id = :turn_id LIMIT 1")
LAST_QUEUE_POSITION: Final = Statement(
    f"SELECT position FROM queued_messages {_IN_CONVERSATION} ORDER BY position DESC LIMIT 1"
)


# --- conversations ---------------------------------------------------------------------------------------------


def find_conversation(tx: Transaction, id: str) -> Conversation | None:
    row = tx.one(CONVERSATION, id=id)
    return Conversation(*row) if row else None


def lock_conversation(tx: Transaction, id: str) -> Conversation | None:
    """The conversation, locked against other writers until the transaction ends."""
    row = tx.one(LOCK_CONVERSATION, id=id)
    return Conversation(*row) if row else None


def add_conversation(tx: Transaction, conversation: Conversation) -> bool:
    """False if another process has just added it."""
    return bool(tx.run(INSERT_CONVERSATION, **asdict(conversation)))


def newest_conversations(tx: Transaction, limit: int) -> list[Conversation]:
    return [Conversation(*row) for row in tx.all(CONVERSATIONS, limit=limit)]


def overviews(tx: Transaction, limit: int) -> list[ConversationOverview]:
    """Newest first."""
    return [_overview(tx, conversation) for conversation in newest_conversations(tx, limit)]


def _overview(tx: Transaction, conversation: Conversation) -> ConversationOverview:
    counts = tx.one(COUNTS, conversation_id=conversation.id)
    last = tx.one(LAST_TURN, conversation_id=conversation.id)
    assert counts is not None
    return ConversationOverview(conversation, counts[0], counts[1], StoredTurn(*last) if last else None)


# --- turns -----------------------------------------------------------------------------------------------------


def find_turn(tx: Transaction, id: str) -> StoredTurn | None:
    row = tx.one(TURN, id=id)
    return StoredTurn(*row) if row else None


def lock_turn(tx: Transaction, id: str) -> StoredTurn | None:
    """The turn, locked against other writers until the transaction ends."""
    row = tx.one(LOCK_TURN, id=id)
    return StoredTurn(*row) if row else None


def find_open_turn(tx: Transaction, conversation_id: str) -> StoredTurn | None:
    """The open top-level turn."""
    row = tx.one(OPEN_TURN, conversation_id=conversation_id)
    return StoredTurn(*row) if row else None


def add_turn(tx: Transaction, turn: StoredTurn) -> None:
    tx.run(INSERT_TURN, **turn._asdict())


def update_turn(tx: Transaction, before: StoredTurn, changes: dict[str, Any]) -> StoredTurn | None:
    """Write `changes` if the turn is still open; None when it has ended. `status` follows from `ended_at`."""
    after = before._replace(**{name: value for name, value in changes.items() if name != "status"})
    written = tx.run(
        UPDATE_TURN, turn_id=before.id, ended_at=after.ended_at, end_reason=after.end_reason, owner=after.owner
    )
    return after if written else None


def newest_turns(tx: Transaction, conversation_id: str, limit: int) -> list[StoredTurn]:
    return [StoredTurn(*row) for row in tx.all(NEWEST_TURNS, conversation_id=conversation_id, limit=limit)]


def all_turns(tx: Transaction, conversation_id: str) -> list[StoredTurn]:
    """Oldest first, including the turns of workers."""
    return [StoredTurn(*row) for row in tx.all(ALL_TURNS, conversation_id=conversation_id)]


def child_turns(tx: Transaction, conversation_id: str, turn_id: str) -> list[StoredTurn]:
    return [StoredTurn(*row) for row in tx.all(CHILD_TURNS, conversation_id=conversation_id, parent=turn_id)]


def open_child_turns(tx: Transaction, turn: StoredTurn) -> list[StoredTurn]:
    rows = tx.all(OPEN_CHILD_TURNS, conversation_id=turn.conversation_id, since=turn.started_at, parent=turn.id)
    return [StoredTurn(*row) for row in rows]


# --- messages and traces ---------------------------------------------------------------------------------------


def find_message(tx: Transaction, id: str) -> Message | None:
    row = tx.one(MESSAGE, id=id)
    return Message(*row) if row else None


def all_messages(tx: Transaction, conversation_id: str) -> list[Message]:
    return [Message(*row) for row in tx.all(MESSAGES, conversation_id=conversation_id)]


def turn_messages(tx: Transaction, turn_id: str) -> list[Message]:
    return [Message(*row) for row in tx.all(TURN_MESSAGES, turn_id=turn_id)]


def newest_messages(tx: Transaction, conversation_id: str, limit: int) -> list[Message]:
    return [Message(*row) for row in tx.all(NEWEST_MESSAGES, conversation_id=conversation_id, limit=limit)]


def messages_outside_turns(tx: Transaction, conversation_id: str, limit: int) -> list[Message]:
    """Newest first."""
    return [Message(*row) for row in tx.all(OUTSIDE_TURNS, conversation_id=conversation_id, limit=limit)]


def messages_mentioning(tx: Transaction, conversation_id: str, id: str, limit: int) -> list[Message]:
    """Messages outside turns with an id near their start, among the last `SEARCHED_MESSAGES`; newest first."""
    last = last_message(tx, conversation_id)
    after = last.messages - SEARCHED_MESSAGES if last else 0
    found = tx.all(MENTIONING, conversation_id=conversation_id, after=after, pattern=f"%{id}%", limit=limit)
    return [Message(*row) for row in found]


def recent_messages(
    tx: Transaction, conversation_id: str, limit: int, *, except_turn: str = "", agent: str | None = None
) -> list[Message]:
    """Messages of top-level turns, newest first; with `agent`, of its turns and the notices for all."""
    where = {"conversation_id": conversation_id, "limit": limit, "except_turn": except_turn}
    rows = tx.all(RECENT, **where) if agent is None else tx.all(RECENT_OF_AGENT, agent_id=agent, **where)
    return [Message(*row) for row in rows]


def last_message(tx: Transaction, conversation_id: str) -> LastMessage | None:
    row = tx.one(LAST_MESSAGE, conversation_id=conversation_id)
    return LastMessage(*row) if row else None


def fingerprint(message: Message) -> dict[str, Any]:
    """What an event stores about a message: a hash of the content instead of a second copy."""
    data = message._asdict()
    data["sha256"] = hashlib.sha256(data.pop("content").encode()).hexdigest()
    return {"message": data}


def add_message(
    tx: Transaction, conversation_id: str, role: str, content: str, *, kind: str = "text", turn_id: str | None = None
) -> Message:
    """Append a message. The caller has locked the conversation."""
    return add_messages(tx, conversation_id, turn_id, [NewMessage(role, kind, content)])[0]


def add_messages(
    tx: Transaction, conversation_id: str, turn_id: str | None, messages: Sequence[NewMessage]
) -> list[Message]:
    last = tx.one(LAST_POSITION, conversation_id=conversation_id)
    position, now = last[0] if last else 0, tx.now()
    added = [
        Message(new_id(), conversation_id, turn_id, position + number, new.role, new.kind, new.content, now)
        for number, new in enumerate(messages, start=1)
    ]
    tx.run_many(INSERT_MESSAGE, [message._asdict() for message in added])
    return added


def add_trace(tx: Transaction, trace: Trace) -> None:
    tx.run(INSERT_TRACE, **trace._asdict())


def turn_traces(tx: Transaction, turn_id: str) -> list[Trace]:
    return [Trace(*row) for row in tx.all(TRACES, turn_id=turn_id)]


def all_traces(tx: Transaction, conversation_id: str) -> list[Trace]:
    return [Trace(*row) for row in tx.all(ALL_TRACES, conversation_id=conversation_id)]


# --- queued messages -------------------------------------------------------------------------------------------


def find_queued(tx: Transaction, conversation_id: str, id: str) -> QueuedMessage | None:
    row = tx.one(QUEUED_BY_ID, conversation_id=conversation_id, id=id)
    return QueuedMessage(*row) if row else None


def queued_messages(tx: Transaction, conversation_id: str, limit: int = _NO_LIMIT) -> list[QueuedMessage]:
    """Undelivered messages in the order of delivery."""
    return [QueuedMessage(*row) for row in tx.all(QUEUED, conversation_id=conversation_id, limit=limit)]


def all_queued_messages(tx: Transaction, conversation_id: str) -> list[QueuedMessage]:
    """Including delivered and withdrawn ones."""
    return [QueuedMessage(*row) for row in tx.all(ALL_QUEUED, conversation_id=conversation_id)]


def queued_message_started(tx: Transaction, conversation_id: str, turn_id: str) -> bool:
    """Whether a queued message started the turn."""
    return tx.one(QUEUED_FOR_TURN, conversation_id=conversation_id, turn_id=turn_id) is not None


def next_queue_position(tx: Transaction, conversation_id: str) -> int:
    row = tx.one(LAST_QUEUE_POSITION, conversation_id=conversation_id)
    return row[0] + 1 if row else 1


def add_queued(tx: Transaction, message: QueuedMessage) -> None:
    tx.run(INSERT_QUEUED, **message._asdict())


def update_queued(tx: Transaction, before: QueuedMessage, changes: dict[str, Any]) -> QueuedMessage | None:
    """Write `changes` if the message is still queued; None when it is not."""
    after = before._replace(**{**changes, "status": changes["status"].value})
    values = {name: getattr(after, name) for name in _CHANGING}
    return after if tx.run(UPDATE_QUEUED, queued_id=before.id, **values) else None
