"""The SQL of queued messages. The caller owns the transaction."""

from __future__ import annotations

from typing import Any, Final

from punchlist.conversations.lifecycle import QueueStatus
from punchlist.conversations.model import QueuedMessage
from punchlist.storage.statements import Statement, columns, insert, update
from punchlist.storage.store import Transaction

_IN_CONVERSATION: Final = "conversation_id = :conversation_id"
_QUEUED: Final = f"status = '{QueueStatus.QUEUED}'"
_SELECT: Final = f"SELECT {columns(QueuedMessage._fields)} FROM queued_messages WHERE {_IN_CONVERSATION}"
_CHANGING: Final = ("content", "status", "changed_at", "turn_id")

INSERT: Final = insert("queued_messages", QueuedMessage._fields)
BY_ID: Final = Statement(f"{_SELECT} AND id = :id")
QUEUED: Final = Statement(f"{_SELECT} AND {_QUEUED} ORDER BY position LIMIT :limit")
ALL: Final = Statement(f"{_SELECT} ORDER BY position")
STARTED_TURN: Final = Statement(
    f"SELECT id FROM queued_messages WHERE {_IN_CONVERSATION} AND turn_id = :turn_id LIMIT 1"
)
LAST_POSITION: Final = Statement(
    f"SELECT position FROM queued_messages WHERE {_IN_CONVERSATION} ORDER BY position DESC LIMIT 1"
)
UPDATE: Final = update("queued_messages", _CHANGING, where=f"id = :queued_id AND {_QUEUED}")
_NO_LIMIT: Final = 1_000_000


def find(tx: Transaction, conversation_id: str, id: str) -> QueuedMessage | None:
    row = tx.one(BY_ID, conversation_id=conversation_id, id=id)
    return QueuedMessage(*row) if row else None


def queued_messages(tx: Transaction, conversation_id: str, limit: int = _NO_LIMIT) -> list[QueuedMessage]:
    """Undelivered messages in the order of delivery."""
    return [QueuedMessage(*row) for row in tx.all(QUEUED, conversation_id=conversation_id, limit=limit)]


def all_messages(tx: Transaction, conversation_id: str) -> list[QueuedMessage]:
    """Including delivered and withdrawn ones."""
    return [QueuedMessage(*row) for row in tx.all(ALL, conversation_id=conversation_id)]


def started_turn(tx: Transaction, conversation_id: str, turn_id: str) -> bool:
    """Whether a queued message started the turn."""
    return tx.one(STARTED_TURN, conversation_id=conversation_id, turn_id=turn_id) is not None


def next_position(tx: Transaction, conversation_id: str) -> int:
    row = tx.one(LAST_POSITION, conversation_id=conversation_id)
    return row[0] + 1 if row else 1


def add(tx: Transaction, message: QueuedMessage) -> None:
    tx.run(INSERT, **message._asdict())


def update_queued(tx: Transaction, before: QueuedMessage, changes: dict[str, Any]) -> QueuedMessage | None:
    """Write `changes` if the message is still queued; None when it is not."""
    after = before._replace(**{**changes, "status": changes["status"].value})
    values = {name: getattr(after, name) for name in _CHANGING}
    return after if tx.run(UPDATE, queued_id=before.id, **values) else None
