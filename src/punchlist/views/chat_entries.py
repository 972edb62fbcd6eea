"""Messages with their turns: who speaks, and to whom."""

from __future__ import annotations

from collections.abc import Sequence

from punchlist.conversations.model import ChatEntry, Message
from punchlist.storage.store import Transaction
from punchlist.views import activity_repository


def entries_of(tx: Transaction, messages: Sequence[Message]) -> list[ChatEntry]:
    ids = {message.turn_id for message in messages if message.turn_id is not None}
    turns = {id: activity_repository.turn_and_delegation(tx, id) for id in ids}
    return [ChatEntry(message, *(turns.get(message.turn_id or "") or (None, False))) for message in messages]
