"""The SQL of conversations, inside somebody's transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from punchlist.conversations.model import Conversation, Message, NewMessage, NoticeKind, StoredTurn, Trace
from punchlist.kernel.ids import new_id
from punchlist.storage.statements import ROW_LOCK, Statement, columns, insert, literals, update
from punchlist.storage.store import Transaction


def _row(table: str, value: type[Any]) -> str:
    """Reads what a value is made of, in its order."""
    return f"SELECT {columns(value.__annotations__, of=table)} FROM {table}"


_CONVERSATION: Final = _row("conversations", Conversation)
_TURN: Final = _row("turns", StoredTurn)
_MESSAGE: Final = _row("messages", Message)
_NEWEST_TURN_FIRST: Final = "ORDER BY started_at DESC, id DESC"

INSERT_CONVERSATION: Final = insert("conversations", Conversation.__annotations__, unless="id")
INSERT_TURN: Final = insert("turns", StoredTurn.__annotations__)
INSERT_MESSAGE: Final = insert("messages", Message.__annotations__)
INSERT_TRACE: Final = insert("traces", Trace.__annotations__)

CONVERSATION: Final = Statement(f"{_CONVERSATION} WHERE id = :id")
# The lock that makes a conversation's writers take turns on PostgreSQL; SQLite has one writer anyway.
LOCK_CONVERSATION: Final = Statement(f"{_CONVERSATION} WHERE id = :id", lock=ROW_LOCK)
CONVERSATIONS: Final = Statement(f"{_CONVERSATION} ORDER BY created_at DESC, id LIMIT :most")
TURN: Final = Statement(f"{_TURN} WHERE id = :id")
LOCK_TURN: Final = Statement(f"{_TURN} WHERE id = :id", lock=ROW_LOCK)
OPEN_TURN: Final = Statement(
    f"{_TURN} WHERE conversation_id = :conversation_id AND ended_at IS NULL AND parent_turn_id IS NULL"
)
TURNS: Final = Statement(f"{_TURN} WHERE conversation_id = :conversation_id {_NEWEST_TURN_FIRST} LIMIT :most")
UPDATE_TURN: Final = update("turns", ("ended_at", "end_reason", "owner"), where="id = :turn_id AND ended_at IS NULL")
MESSAGES: Final = Statement(f"{_MESSAGE} WHERE conversation_id = :conversation_id ORDER BY position")
# What was said to the person's agent and by it, not what its workers said among themselves.
RECENT: Final = Statement(
    f"{_MESSAGE} JOIN turns ON turns.id = messages.turn_id "
    "WHERE messages.conversation_id = :conversation_id AND messages.turn_id <> :but_of "
    "AND turns.parent_turn_id IS NULL ORDER BY messages.position DESC LIMIT :most"
)
# Where several agents work one after the other: what one of them said and heard, and what was posted for all.
RECENT_OF_AGENT: Final = Statement(
    f"{_MESSAGE} LEFT JOIN turns ON turns.id = messages.turn_id WHERE messages.conversation_id = :conversation_id AND ("
    "messages.turn_id <> :but_of AND turns.parent_turn_id IS NULL AND turns.agent_id = :agent_id "
    f"OR messages.turn_id IS NULL AND messages.kind IN ({literals(NoticeKind)})) "
    "ORDER BY messages.position DESC LIMIT :most"
)
POSTED: Final = Statement(
    f"{_MESSAGE} WHERE conversation_id = :conversation_id AND turn_id IS NULL ORDER BY position DESC LIMIT :most"
)
OF_TURN: Final = Statement(f"{_MESSAGE} WHERE turn_id = :turn_id ORDER BY position")
CHILDREN: Final = Statement(
    f"{_TURN} WHERE conversation_id = :conversation_id AND parent_turn_id = :parent {_NEWEST_TURN_FIRST}"
)
MESSAGE: Final = Statement(f"{_MESSAGE} WHERE id = :id")
LAST_POSITION: Final = Statement(
    "SELECT position FROM messages WHERE conversation_id = :conversation_id ORDER BY position DESC LIMIT 1"
)
TRACES: Final = Statement(f"{_row('traces', Trace)} WHERE turn_id = :turn_id ORDER BY started_at, id")


def find_conversation(tx: Transaction, id: str) -> Conversation | None:
    row = tx.one(CONVERSATION, id=id)
    return Conversation(*row) if row else None


def lock_conversation(tx: Transaction, id: str) -> Conversation | None:
    row = tx.one(LOCK_CONVERSATION, id=id)
    return Conversation(*row) if row else None


def find_turn(tx: Transaction, id: str) -> StoredTurn | None:
    row = tx.one(TURN, id=id)
    return StoredTurn(*row) if row else None


def lock_turn(tx: Transaction, id: str) -> StoredTurn | None:
    """The turn, kept from other writers until the transaction ends."""
    row = tx.one(LOCK_TURN, id=id)
    return StoredTurn(*row) if row else None


def find_open_turn(tx: Transaction, conversation_id: str) -> StoredTurn | None:
    row = tx.one(OPEN_TURN, conversation_id=conversation_id)
    return StoredTurn(*row) if row else None


def update_turn(tx: Transaction, before: StoredTurn, changes: dict[str, Any]) -> StoredTurn | None:
    """Write `changes` if the turn is still open; None when it has ended. `status` follows from `ended_at`."""
    after = before._replace(**{name: value for name, value in changes.items() if name != "status"})
    written = tx.run(
        UPDATE_TURN, turn_id=before.id, ended_at=after.ended_at, end_reason=after.end_reason, owner=after.owner
    )
    return after if written else None


def find_message(tx: Transaction, id: str) -> Message | None:
    row = tx.one(MESSAGE, id=id)
    return Message(*row) if row else None


def fingerprint(message: Message) -> dict[str, Any]:
    """What the trail keeps of a message: enough to prove it, not a second copy."""
    kept = message._asdict()
    kept["sha256"] = hashlib.sha256(kept.pop("content").encode()).hexdigest()
    return {"message": kept}


def add_message(
    tx: Transaction, conversation_id: str, role: str, content: str, *, kind: str = "text", turn_id: str | None = None
) -> Message:
    """Put a message at the conversation's end. The caller has locked the conversation."""
    return add_messages(tx, conversation_id, turn_id, [NewMessage(role, kind, content)])[0]


def add_messages(
    tx: Transaction, conversation_id: str, turn_id: str | None, lines: Sequence[NewMessage]
) -> list[Message]:
    last = tx.one(LAST_POSITION, conversation_id=conversation_id)
    position, now = last[0] if last else 0, tx.now()
    added = [
        Message(new_id(), conversation_id, turn_id, position + number, line.role, line.kind, line.content, now)
        for number, line in enumerate(lines, start=1)
    ]
    tx.run_many(INSERT_MESSAGE, [message._asdict() for message in added])
    return added
