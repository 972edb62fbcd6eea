"""The event log: appending, reading back, proving that nothing was changed since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.kernel.events import GENESIS, Change, Event, canonical_json, chain_hash
from punchlist.kernel.text import block_problem
from punchlist.storage.statements import Statement, columns, insert
from punchlist.storage.store import Transaction

MAX_REASON_LENGTH: Final = 20_000
_NAMES: Final = [field.name for field in fields(Event)]
SELECT_EVENTS: Final = f"SELECT {columns(_NAMES)} FROM events"

HEAD: Final = Statement("SELECT version, hash FROM events WHERE stream = :stream ORDER BY version DESC LIMIT 1")
INSERT: Final = insert("events", [name for name in _NAMES if name != "seq"])
OF_STREAM: Final = Statement(f"{SELECT_EVENTS} WHERE stream = :stream AND version >= :since ORDER BY version")
AT_VERSION: Final = Statement(f"{SELECT_EVENTS} WHERE stream = :stream AND version = :version")
AFTER: Final = Statement(f"{SELECT_EVENTS} WHERE seq > :seq ORDER BY seq LIMIT :most")
HASH_AT: Final = Statement("SELECT hash FROM events WHERE seq = :seq")
NO_LATER: Final = Statement(f"{SELECT_EVENTS} WHERE at <= :at ORDER BY seq DESC LIMIT 1")
NEWEST: Final = Statement(f"{SELECT_EVENTS} ORDER BY seq DESC LIMIT :most")
AFTER_IN_CONVERSATION: Final = Statement(
    f"{SELECT_EVENTS} WHERE conversation_id = :conversation_id AND seq > :seq ORDER BY seq LIMIT :most"
)
NEWEST_IN_CONVERSATION: Final = Statement(
    f"{SELECT_EVENTS} WHERE conversation_id = :conversation_id ORDER BY seq DESC LIMIT :most"
)


@lru_cache(maxsize=256)
def _reason_problem(reason: str) -> str | None:
    return block_problem(reason, max_length=MAX_REASON_LENGTH)


def append(tx: Transaction, *changes: Change) -> int:
    """Continue one stream; its new version.

    The caller holds whatever makes it the stream's only writer: the whole database on SQLite, the
    row of the list's owner on PostgreSQL.
    """
    stream = changes[0].stream
    tx.mark_appended(stream)
    head = tx.one(HEAD, stream=stream)
    version, previous = (int(head[0]), str(head[1])) if head else (0, GENESIS)
    at = tx.now()
    rows = []
    for change in changes:
        if problem := _reason_problem(change.reason):
            raise InvalidInput(f"reason: {problem}")
        version += 1
        data = canonical_json(change.data)
        previous = chain_hash(previous, version, at, change, data)
        rows.append(
            {
                "stream": stream,
                "version": version,
                "at": at,
                "conversation_id": change.conversation_id,
                "actor": change.actor,
                "action": str(change.action),
                "subject": change.subject,
                "from_status": change.from_status and str(change.from_status),
                "to_status": change.to_status and str(change.to_status),
                "reason": change.reason,
                "data": data,
                "hash": previous,
            }
        )
    tx.run_many(INSERT, rows)
    return version


def newest(tx: Transaction, most: int, conversation_id: str | None = None) -> list[Event]:
    """The last `most` events, oldest first."""
    if conversation_id is None:
        rows = tx.all(NEWEST, most=most)
    else:
        rows = tx.all(NEWEST_IN_CONVERSATION, conversation_id=conversation_id, most=most)
    return [Event(*row) for row in reversed(rows)]


def after(tx: Transaction, seq: int, most: int = 500, conversation_id: str | None = None) -> list[Event]:
    """Up to `most` events that came after number `seq`."""
    if conversation_id is None:
        rows = tx.all(AFTER, seq=seq, most=most)
    else:
        rows = tx.all(AFTER_IN_CONVERSATION, conversation_id=conversation_id, seq=seq, most=most)
    return [Event(*row) for row in rows]


def last_surviving(tx: Transaction, seen: Sequence[Event]) -> Event | None:
    """The newest of some events that were read earlier, oldest first, that is still the one of its number: a database
    may be put back to a copy or made anew, and then gives numbers again.

    Where none is, the newest that is not later than they were: then there is nothing but the clock to go by."""
    for event in reversed(seen):
        if tx.one(HASH_AT, seq=event.seq) == (event.hash,):
            return event
    row = tx.one(NO_LATER, at=seen[0].at) if seen else None
    return Event(*row) if row else None


def read_stream(tx: Transaction, stream: str) -> list[Event]:
    return [Event(*row) for row in tx.all(OF_STREAM, stream=stream, since=1)]


def at_version(tx: Transaction, stream: str, version: int) -> Event | None:
    row = tx.one(AT_VERSION, stream=stream, version=version)
    return Event(*row) if row else None


def broken_links(stream_events: Sequence[Event]) -> Iterator[str]:
    """What is wrong with the chain of one stream; nothing when it is whole."""
    previous = GENESIS
    for number, event in enumerate(stream_events, start=1):
        if event.version != number:
            yield f"{event.stream}: event {number} is missing"
            return
        expected = chain_hash(previous, event.version, event.at, _as_change(event), event.data)
        if event.hash != expected:
            yield f"{event.stream}: event {number} (seq {event.seq}) is not what was written"
            return
        previous = event.hash


def _as_change(event: Event) -> Change:
    return Change(
        stream=event.stream,
        conversation_id=event.conversation_id,
        actor=event.actor,
        action=event.action,
        subject=event.subject,
        from_status=event.from_status,
        to_status=event.to_status,
        reason=event.reason,
        data={},
    )
