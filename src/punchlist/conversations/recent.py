"""The end of a conversation, for views; bounded however long the conversation is."""

from __future__ import annotations

from typing import Final

from punchlist.conversations import repository
from punchlist.conversations.model import ChatEntry, LastMessage, Message
from punchlist.storage.store import Store

SEARCHED_MESSAGES: Final = 1_000
"""`mentioning` searches this many messages at the end."""
_SEARCHED_PREFIX: Final = 500


class RecentMessages:
    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self, conversation_id: str, limit: int) -> list[ChatEntry]:
        """The last messages with their turns, oldest first."""
        with self._store.read() as tx:
            messages = repository.newest_messages(tx, conversation_id, limit)
            ids = {message.turn_id for message in messages if message.turn_id is not None}
            turns = {id: repository.find_turn(tx, id) for id in ids}
        return [ChatEntry(message, turns.get(message.turn_id or "")) for message in reversed(messages)]

    def last_message(self, conversation_id: str) -> LastMessage | None:
        with self._store.read() as tx:
            return repository.last_message(tx, conversation_id)

    def mentioning(self, conversation_id: str, id: str, limit: int) -> list[Message]:
        """The recent messages outside turns that mention an id near their start, oldest first."""
        with self._store.read() as tx:
            last = repository.last_message(tx, conversation_id)
            if last is None:
                return []
            found = repository.messages_mentioning(
                tx,
                conversation_id,
                id,
                after=last.messages - SEARCHED_MESSAGES,
                prefix=_SEARCHED_PREFIX,
                limit=limit,
            )
        return found[::-1]
