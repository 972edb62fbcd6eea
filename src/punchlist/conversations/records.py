"""The SQL of conversations, inside somebody's transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, and_, bindparam, insert, literal_column, null, or_, select, text, update

from punchlist.conversations.model import Conversation, Line, Message, Notice, Trace, Turn
from punchlist.kernel.ids import new_id
from punchlist.storage.schema import conversations, messages, traces, turns
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction


def _columns(table: Table, value: type[Any]) -> list[ColumnElement[Any]]:
    """The columns that a value is made of, in its order."""
    return [table.c[name] for name in value.__annotations__]


def _insert(table: Table, value: type[Any]) -> Statement:
    return Statement(insert(table).values({name: bindparam(name) for name in value.__annotations__}))


_CONVERSATION = _columns(conversations, Conversation)
_TURN = _columns(turns, Turn)
_MESSAGE = _columns(messages, Message)
_TRACE = _columns(traces, Trace)
_NOTICES: Final[list[Any]] = [literal_column(f"'{notice}'") for notice in Notice]

# Both databases know this clause; whoever comes second sees no row changed.
INSERT_CONVERSATION: Final = Statement(
    text(
        "INSERT INTO conversations (id, title, metadata, created_at) "
        "VALUES (:id, :title, :metadata, :created_at) ON CONFLICT (id) DO NOTHING"
    )
)
INSERT_TURN: Final = _insert(turns, Turn)
INSERT_MESSAGE: Final = _insert(messages, Message)
INSERT_TRACE: Final = _insert(traces, Trace)

CONVERSATION: Final = Statement(select(*_CONVERSATION).where(conversations.c.id == bindparam("id")))
# The lock that makes a conversation's writers take turns on PostgreSQL; SQLite has one writer anyway.
LOCK_CONVERSATION: Final = Statement(
    select(*_CONVERSATION).where(conversations.c.id == bindparam("id")).with_for_update(key_share=True)
)
CONVERSATIONS: Final = Statement(
    select(*_CONVERSATION).order_by(conversations.c.created_at.desc(), conversations.c.id).limit(bindparam("most"))
)
TURN: Final = Statement(select(*_TURN).where(turns.c.id == bindparam("id")))
LOCK_TURN: Final = Statement(select(*_TURN).where(turns.c.id == bindparam("id")).with_for_update(key_share=True))
OPEN_TURN: Final = Statement(
    select(*_TURN).where(
        turns.c.conversation_id == bindparam("conversation_id"),
        turns.c.ended_at.is_(None),
        turns.c.parent_turn_id.is_(None),
    )
)
TURNS: Final = Statement(
    select(*_TURN)
    .where(turns.c.conversation_id == bindparam("conversation_id"))
    .order_by(turns.c.started_at.desc(), turns.c.id.desc())
    .limit(bindparam("most"))
)
END_TURN: Final = Statement(
    update(turns)
    .where(turns.c.id == bindparam("turn_id"), turns.c.ended_at.is_(None))
    .values(ended_at=bindparam("at"), end_reason=bindparam("reason"), owner=null())
)
OWN_TURN: Final = Statement(
    update(turns).where(turns.c.id == bindparam("turn_id"), turns.c.ended_at.is_(None)).values(owner=bindparam("owner"))
)
MESSAGES: Final = Statement(
    select(*_MESSAGE).where(messages.c.conversation_id == bindparam("conversation_id")).order_by(messages.c.position)
)
# What was said to the person's agent and by it, not what its workers said among themselves.
RECENT: Final = Statement(
    select(*_MESSAGE)
    .join(turns, turns.c.id == messages.c.turn_id)
    .where(
        messages.c.conversation_id == bindparam("conversation_id"),
        messages.c.turn_id != bindparam("but_of"),
        turns.c.parent_turn_id.is_(None),
    )
    .order_by(messages.c.position.desc())
    .limit(bindparam("most"))
)
# Where several agents work one after the other: what one of them said and heard, and what was posted for all.
RECENT_OF_AGENT: Final = Statement(
    select(*_MESSAGE)
    .outerjoin(turns, turns.c.id == messages.c.turn_id)
    .where(
        messages.c.conversation_id == bindparam("conversation_id"),
        or_(
            and_(
                messages.c.turn_id != bindparam("but_of"),
                turns.c.parent_turn_id.is_(None),
                turns.c.agent_id == bindparam("agent_id"),
            ),
            and_(messages.c.turn_id.is_(None), messages.c.kind.in_(_NOTICES)),
        ),
    )
    .order_by(messages.c.position.desc())
    .limit(bindparam("most"))
)
POSTED: Final = Statement(
    select(*_MESSAGE)
    .where(messages.c.conversation_id == bindparam("conversation_id"), messages.c.turn_id.is_(None))
    .order_by(messages.c.position.desc())
    .limit(bindparam("most"))
)
OF_TURN: Final = Statement(
    select(*_MESSAGE).where(messages.c.turn_id == bindparam("turn_id")).order_by(messages.c.position)
)
CHILDREN: Final = Statement(
    select(*_TURN)
    .where(turns.c.conversation_id == bindparam("conversation_id"), turns.c.parent_turn_id == bindparam("parent"))
    .order_by(turns.c.started_at.desc(), turns.c.id.desc())
)
MESSAGE: Final = Statement(select(*_MESSAGE).where(messages.c.id == bindparam("id")))
LAST_POSITION: Final = Statement(
    select(messages.c.position)
    .where(messages.c.conversation_id == bindparam("conversation_id"))
    .order_by(messages.c.position.desc())
    .limit(1)
)
TRACES: Final = Statement(
    select(*_TRACE).where(traces.c.turn_id == bindparam("turn_id")).order_by(traces.c.started_at, traces.c.id)
)


def conversation(tx: Transaction, id: str) -> Conversation | None:
    row = tx.one(CONVERSATION, id=id)
    return Conversation(*row) if row else None


def lock_conversation(tx: Transaction, id: str) -> Conversation | None:
    row = tx.one(LOCK_CONVERSATION, id=id)
    return Conversation(*row) if row else None


def turn(tx: Transaction, id: str) -> Turn | None:
    row = tx.one(TURN, id=id)
    return Turn(*row) if row else None


def lock_turn(tx: Transaction, id: str) -> Turn | None:
    """The turn, kept from other writers until the transaction ends."""
    row = tx.one(LOCK_TURN, id=id)
    return Turn(*row) if row else None


def open_turn(tx: Transaction, conversation_id: str) -> Turn | None:
    row = tx.one(OPEN_TURN, conversation_id=conversation_id)
    return Turn(*row) if row else None


def message(tx: Transaction, id: str) -> Message | None:
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
    return add_messages(tx, conversation_id, turn_id, [Line(role, kind, content)])[0]


def add_messages(tx: Transaction, conversation_id: str, turn_id: str | None, lines: Sequence[Line]) -> list[Message]:
    last = tx.one(LAST_POSITION, conversation_id=conversation_id)
    position, now = last[0] if last else 0, tx.now()
    added = [
        Message(new_id(), conversation_id, turn_id, position + number, line.role, line.kind, line.content, now)
        for number, line in enumerate(lines, start=1)
    ]
    tx.run_many(INSERT_MESSAGE, [message._asdict() for message in added])
    return added
