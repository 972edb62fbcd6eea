"""The SQL of mission chats. The caller owns the transaction."""

from __future__ import annotations

from typing import Final

from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

_SEARCHED_MESSAGES: Final = 50
RECENT: Final = Statement(
    "SELECT kind, content FROM messages WHERE conversation_id = :conversation_id "
    f"ORDER BY position DESC LIMIT {_SEARCHED_MESSAGES}"
)


def was_posted(tx: Transaction, conversation_id: str, kind: str, content: str) -> bool:
    """Whether one of the recent messages is identical."""
    return (kind, content) in [tuple(row) for row in tx.all(RECENT, conversation_id=conversation_id)]
