"""The end of a conversation, however long it is."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Message, StoredTurn
from punchlist.storage.statements import Statement, columns
from punchlist.storage.store import Store

_ROW: Final = f"SELECT {columns(Message._fields)} FROM messages WHERE conversation_id = :conversation_id"

LAST: Final = Statement(f"{_ROW} ORDER BY position DESC LIMIT :most")
# Messages are counted without gaps, so that the last position is their number.
LAST_SAID: Final = Statement(
    "SELECT position, created_at FROM messages WHERE conversation_id = :conversation_id ORDER BY position DESC LIMIT 1"
)
# Posted for all to read, as opposed to what an agent was told in its turn.
ABOUT: Final = Statement(
    f"{_ROW} AND position > :after AND turn_id IS NULL AND substr(content, 1, :looked_at) LIKE :pattern "
    "ORDER BY position DESC LIMIT :most"
)
SEARCHED_MESSAGES: Final = 1_000
"""The last messages among which those about something are looked for."""
_LOOKED_AT: Final = 500


class ChatEntry(NamedTuple):
    """A message, and the turn that it was said in."""

    message: Message
    turn: StoredTurn | None


class LastEntries(NamedTuple):
    messages: int
    at: str


class RecentMessages:
    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self, conversation_id: str, most: int) -> list[ChatEntry]:
        """The last that was said, oldest first."""
        with self._store.read() as tx:
            found = [Message(*row) for row in tx.all(LAST, conversation_id=conversation_id, most=most)]
            ids = {message.turn_id for message in found if message.turn_id is not None}
            turns = {id: conversation_repository.find_turn(tx, id) for id in ids}
        return [ChatEntry(message, turns.get(message.turn_id or "")) for message in reversed(found)]

    def last_message(self, conversation_id: str) -> LastEntries | None:
        with self._store.read() as tx:
            row = tx.one(LAST_SAID, conversation_id=conversation_id)
        return LastEntries(*row) if row else None

    def mentioning(self, conversation_id: str, id: str, most: int) -> list[Message]:
        """What was posted lately and names something by its id in its beginning, oldest first."""
        last = self.last_message(conversation_id)
        if last is None:
            return []
        with self._store.read() as tx:
            rows = tx.all(
                ABOUT,
                conversation_id=conversation_id,
                after=last.messages - SEARCHED_MESSAGES,
                looked_at=_LOOKED_AT,
                pattern=f"%{id}%",
                most=most,
            )
        return [Message(*row) for row in reversed(rows)]
