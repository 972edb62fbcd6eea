"""Conversations read back: which there are, and one of them whole."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.conversations.model import Conversation, Message, StoredTurn, Trace
from punchlist.conversations.repository import CONVERSATIONS, MESSAGES
from punchlist.storage.statements import Statement, columns
from punchlist.storage.store import Transaction

_TURN: Final = f"SELECT {columns(StoredTurn._fields)} FROM turns WHERE conversation_id = :conversation_id"

TURNS: Final = Statement(f"{_TURN} ORDER BY started_at, id")
# Traces are found by their turn; no index names their conversation.
TRACES: Final = Statement(
    f"SELECT {columns(Trace._fields, of='traces')} FROM traces JOIN turns ON turns.id = traces.turn_id "
    "WHERE turns.conversation_id = :conversation_id ORDER BY traces.started_at, traces.id"
)
COUNTS: Final = Statement(
    "SELECT (SELECT count(*) FROM turns WHERE conversation_id = :conversation_id), "
    "(SELECT count(*) FROM messages WHERE conversation_id = :conversation_id)"
)
# A worker's turn says nothing about where the conversation stands.
LAST_TURN: Final = Statement(f"{_TURN} AND parent_turn_id IS NULL ORDER BY started_at DESC, id DESC LIMIT 1")


class Overview(NamedTuple):
    """One line of the list of conversations."""

    conversation: Conversation
    turns: int
    messages: int
    last: StoredTurn | None


def overviews(tx: Transaction, most: int) -> list[Overview]:
    """Newest first."""
    return [_overview(tx, Conversation(*row)) for row in tx.all(CONVERSATIONS, most=most)]


def _overview(tx: Transaction, conversation: Conversation) -> Overview:
    counts = tx.one(COUNTS, conversation_id=conversation.id)
    last = tx.one(LAST_TURN, conversation_id=conversation.id)
    assert counts is not None
    return Overview(conversation, counts[0], counts[1], StoredTurn(*last) if last else None)


def turns_of(tx: Transaction, conversation_id: str) -> list[StoredTurn]:
    """Oldest first, those of workers among them."""
    return [StoredTurn(*row) for row in tx.all(TURNS, conversation_id=conversation_id)]


def messages_of(tx: Transaction, conversation_id: str) -> list[Message]:
    return [Message(*row) for row in tx.all(MESSAGES, conversation_id=conversation_id)]


def traces_of(tx: Transaction, conversation_id: str) -> list[Trace]:
    return [Trace(*row) for row in tx.all(TRACES, conversation_id=conversation_id)]
