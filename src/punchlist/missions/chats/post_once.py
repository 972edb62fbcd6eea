"""Posting to a chat what a step of a run has to say: once, though the step may be taken twice."""

from __future__ import annotations

from typing import Final

from punchlist.conversations import repository as conversation_records
from punchlist.conversations.model import Scope
from punchlist.missions.chats import service as chat_service
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store

LOOKED_THROUGH: Final = 50
LAST: Final = Statement(
    "SELECT kind, content FROM messages WHERE conversation_id = :conversation_id "
    f"ORDER BY position DESC LIMIT {LOOKED_THROUGH}"
)


def post_once(store: Store, scope: Scope, conversation_id: str, kind: str, content: str) -> None:
    """Nothing, when one of the last messages says the same."""
    with store.write() as tx:
        conversation_records.lock_conversation(tx, conversation_id)
        if (kind, content) not in [tuple(row) for row in tx.all(LAST, conversation_id=conversation_id)]:
            chat_service.post(tx, scope, conversation_id, kind, content)
