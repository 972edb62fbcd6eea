"""Conversations read back: which there are, and one of them whole."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, bindparam, func, select

from punchlist.conversations.model import Conversation, Message, Trace, Turn
from punchlist.conversations.records import CONVERSATIONS, MESSAGES
from punchlist.storage.schema import messages, traces, turns
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

_TURN: Final = [turns.c[name] for name in Turn._fields]
_HERE: Final[BindParameter[Any]] = bindparam("conversation_id")

TURNS: Final = Statement(
    select(*_TURN).where(turns.c.conversation_id == _HERE).order_by(turns.c.started_at, turns.c.id)
)
# Traces are found by their turn; no index names their conversation.
TRACES: Final = Statement(
    select(*(traces.c[name] for name in Trace._fields))
    .join(turns, turns.c.id == traces.c.turn_id)
    .where(turns.c.conversation_id == _HERE)
    .order_by(traces.c.started_at, traces.c.id)
)
COUNTS: Final = Statement(
    select(
        select(func.count()).select_from(turns).where(turns.c.conversation_id == _HERE).scalar_subquery(),
        select(func.count()).select_from(messages).where(messages.c.conversation_id == _HERE).scalar_subquery(),
    )
)
# A worker's turn says nothing about where the conversation stands.
LAST_TURN: Final = Statement(
    select(*_TURN)
    .where(turns.c.conversation_id == _HERE, turns.c.parent_turn_id.is_(None))
    .order_by(turns.c.started_at.desc(), turns.c.id.desc())
    .limit(1)
)


class Overview(NamedTuple):
    """One line of the list of conversations."""

    conversation: Conversation
    turns: int
    messages: int
    last: Turn | None


def overviews(tx: Transaction, most: int) -> list[Overview]:
    """Newest first."""
    return [_overview(tx, Conversation(*row)) for row in tx.all(CONVERSATIONS, most=most)]


def _overview(tx: Transaction, conversation: Conversation) -> Overview:
    counts = tx.one(COUNTS, conversation_id=conversation.id)
    last = tx.one(LAST_TURN, conversation_id=conversation.id)
    assert counts is not None
    return Overview(conversation, counts[0], counts[1], Turn(*last) if last else None)


def turns_of(tx: Transaction, conversation_id: str) -> list[Turn]:
    """Oldest first, those of workers among them."""
    return [Turn(*row) for row in tx.all(TURNS, conversation_id=conversation_id)]


def messages_of(tx: Transaction, conversation_id: str) -> list[Message]:
    return [Message(*row) for row in tx.all(MESSAGES, conversation_id=conversation_id)]


def traces_of(tx: Transaction, conversation_id: str) -> list[Trace]:
    return [Trace(*row) for row in tx.all(TRACES, conversation_id=conversation_id)]
