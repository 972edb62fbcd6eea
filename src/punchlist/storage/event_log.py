"""The event log: append, read, and verify the hash chain.

The anchor is one row with the newest event that is known to exist, signed with the key of the chain: it shows when
events are removed from the end. It is written after the first write of a process, at most once per second after that,
and when the store is closed; a process that is killed leaves it up to a second behind. It can only move forward, and an
unsigned anchor is signed only while every event is signed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.events import GENESIS, Anchor, Chain, Change, Event, canonical_json, chain_hash, parse_signature
from punchlist.kernel.text import block_problem
from punchlist.storage.sqlite import NO_WAIT
from punchlist.storage.statements import Statement, insert, select

if TYPE_CHECKING:
    from punchlist.storage.database import Database
    from punchlist.storage.store import Store, Transaction

MAX_REASON_LENGTH: Final = 20_000
ANCHOR_SECONDS: Final = 1.0
_PAGE: Final = 2_000
_FIELDS: Final = [field.name for field in fields(Event)]
SELECT_EVENTS: Final = select("events", _FIELDS)

HEAD: Final = Statement("SELECT version, hash FROM events WHERE stream = :stream ORDER BY version DESC LIMIT 1")
# The newest event of all streams, and the newest of one.
SIGNED_HEAD: Final = Statement(
    "SELECT max(seq), 0, '' FROM events UNION ALL SELECT seq, version, hash FROM "
    "(SELECT seq, version, hash FROM events WHERE stream = :stream ORDER BY version DESC LIMIT 1) AS head"
)
INSERT: Final = insert("events", [name for name in _FIELDS if name != "seq"])
OF_STREAM: Final = Statement(f"{SELECT_EVENTS} WHERE stream = :stream AND version >= :since ORDER BY version")
AT_VERSION: Final = Statement(f"{SELECT_EVENTS} WHERE stream = :stream AND version = :version")
AFTER: Final = Statement(f"{SELECT_EVENTS} WHERE seq > :seq ORDER BY seq LIMIT :limit")
OF_ALL_STREAMS: Final = Statement(
    f"{SELECT_EVENTS} WHERE (stream, version) > (:stream, :version) ORDER BY stream, version LIMIT :limit"
)
NO_LATER: Final = Statement(f"{SELECT_EVENTS} WHERE at <= :at ORDER BY seq DESC LIMIT 1")
NEWEST: Final = Statement(f"{SELECT_EVENTS} ORDER BY seq DESC LIMIT :limit")
AFTER_IN_CONVERSATION: Final = Statement(
    f"{SELECT_EVENTS} WHERE conversation_id = :conversation_id AND seq > :seq ORDER BY seq LIMIT :limit"
)
NEWEST_IN_CONVERSATION: Final = Statement(
    f"{SELECT_EVENTS} WHERE conversation_id = :conversation_id ORDER BY seq DESC LIMIT :limit"
)

FIND_ANCHOR: Final = Statement("SELECT signed_from, seq, hash, key_id, signature FROM chain_anchor WHERE id = 1")
# Another process that holds the row is recording the anchor at this moment.
LOCK_ANCHOR: Final = Statement(FIND_ANCHOR.sql, lock="FOR UPDATE SKIP LOCKED")
UPDATE_ANCHOR: Final = Statement(
    "UPDATE chain_anchor SET signed_from = :signed_from, seq = :seq, hash = :hash, key_id = :key_id, "
    "signature = :signature WHERE id = 1"
)
OLDEST_HASH: Final = Statement("SELECT seq, hash FROM events ORDER BY seq LIMIT 1")
NEWEST_HASH: Final = Statement("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")
HASH_AT: Final = Statement("SELECT hash FROM events WHERE seq = :seq")


@lru_cache(maxsize=256)
def _reason_problem(reason: str) -> str | None:
    return block_problem(reason, max_length=MAX_REASON_LENGTH)


def append(tx: Transaction, *changes: Change) -> int:
    """Append events to one stream; the new version of the stream.

    The caller holds the lock that makes it the only writer of the stream: the database on SQLite, the row of the
    list's owner on PostgreSQL.
    """
    stream = changes[0].stream
    tx.mark_appended(stream)
    chain, after, version, previous = tx.chain, 0, 0, GENESIS
    if chain is None:
        head = tx.one(HEAD, stream=stream)
        if head:
            version, previous = head
    else:
        chain.pending = True
        for seq, stored_version, stored_hash in tx.all(SIGNED_HEAD, stream=stream):
            if stored_version:
                version, previous = stored_version, stored_hash
            else:
                after = seq or 0
    at = tx.now()
    rows = []
    for change in changes:
        if problem := _reason_problem(change.reason):
            raise InvalidInput(f"reason: {problem}")
        version += 1
        data = canonical_json(change.data)
        if chain is None:
            previous = chain_hash(previous, version, at, change, data)
        else:
            previous = chain.sign_event(after, previous, version, at, change, data)
            # Other writers may insert in between, unless this one has locked the database.
            after += tx.exclusive
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


def newest(tx: Transaction, limit: int, conversation_id: str | None = None) -> list[Event]:
    """The last `limit` events, oldest first."""
    if conversation_id is None:
        rows = tx.all(NEWEST, limit=limit)
    else:
        rows = tx.all(NEWEST_IN_CONVERSATION, conversation_id=conversation_id, limit=limit)
    return [Event(*row) for row in reversed(rows)]


def after(tx: Transaction, seq: int, limit: int = 500, conversation_id: str | None = None) -> list[Event]:
    """Up to `limit` events after number `seq`."""
    if conversation_id is None:
        rows = tx.all(AFTER, seq=seq, limit=limit)
    else:
        rows = tx.all(AFTER_IN_CONVERSATION, conversation_id=conversation_id, seq=seq, limit=limit)
    return [Event(*row) for row in rows]


def last_surviving(tx: Transaction, seen: Sequence[Event]) -> Event | None:
    """The newest event of `seen` (oldest first) that is still stored under its number. A database that was restored
    or recreated reuses numbers.

    If none is, the newest stored event that is not later than the first of `seen`.
    """
    for event in reversed(seen):
        if tx.one(HASH_AT, seq=event.seq) == (event.hash,):
            return event
    row = tx.one(NO_LATER, at=seen[0].at) if seen else None
    return Event(*row) if row else None


def read_stream(tx: Transaction, stream: str) -> list[Event]:
    return [Event(*row) for row in tx.all(OF_STREAM, stream=stream, since=1)]


def has_events(tx: Transaction, stream: str) -> bool:
    return tx.one(HEAD, stream=stream) is not None


def at_version(tx: Transaction, stream: str, version: int) -> Event | None:
    row = tx.one(AT_VERSION, stream=stream, version=version)
    return Event(*row) if row else None


def streams(tx: Transaction) -> Iterator[list[Event]]:
    """The events of every stream, one list per stream, read in pages."""
    current: list[Event] = []
    stream, version = "", 0
    while rows := tx.all(OF_ALL_STREAMS, stream=stream, version=version, limit=_PAGE):
        for row in rows:
            event = Event(*row)
            if current and current[0].stream != event.stream:
                yield current
                current = []
            current.append(event)
        stream, version = current[-1].stream, current[-1].version
    if current:
        yield current


def broken_links(stream_events: Sequence[Event], chain: Chain | None = None) -> Iterator[str]:
    """Problems of the hash chain of one stream. Signatures of another key than `chain` cannot be verified."""
    previous = GENESIS
    for number, event in enumerate(stream_events, start=1):
        if event.version != number:
            yield f"{event.stream}: event {number} is missing"
            return
        signature = parse_signature(event.hash)
        fields = (previous, event.version, event.at, event, event.data)
        if signature is None:
            expected = chain_hash(*fields)
        elif chain is not None and signature.key_id == chain.id:
            expected = chain.sign_event(signature.after, *fields)
        else:
            expected = event.hash
        if event.hash != expected:
            yield f"{event.stream}: event {number} (seq {event.seq}) is not what was written"
            return
        previous = event.hash


def find_anchor(tx: Transaction) -> Anchor | None:
    row = tx.one(FIND_ANCHOR)
    return Anchor(*row) if row else None


def is_anchored(tx: Transaction, anchor: Anchor) -> bool:
    """Whether the event that the anchor names is still in the log."""
    return not anchor.seq or tx.one(HASH_AT, seq=anchor.seq) == (anchor.hash,)


def sign_new_database(tx: Transaction, chain: Chain) -> None:
    """Sign the anchor of a database that was just created or upgraded."""
    anchor, newest = find_anchor(tx), tx.one(NEWEST_HASH)
    if anchor is not None and not anchor.key_id:
        seq, hash = newest or (0, "")
        tx.run(UPDATE_ANCHOR, **chain.sign_anchor(anchor.signed_from, seq, hash)._asdict())


def advance_anchor(tx: Transaction, chain: Chain) -> None:
    """Move the anchor to the newest event."""
    row, newest = tx.one(LOCK_ANCHOR), tx.one(NEWEST_HASH)
    if row is None or newest is None:
        return
    anchor, (seq, hash) = Anchor(*row), newest
    if seq <= anchor.seq or not is_anchored(tx, anchor):
        # Events were removed. The anchor stays, so that `punchlist db check` can tell.
        return
    if not chain.has_signed(anchor) and not _all_signed(tx, chain, anchor):
        return
    tx.run(UPDATE_ANCHOR, **chain.sign_anchor(anchor.signed_from, seq, hash)._asdict())


def _all_signed(tx: Transaction, chain: Chain, anchor: Anchor) -> bool:
    """Whether a database without a signed anchor has no unsigned events: its creator had no key."""
    oldest = tx.one(OLDEST_HASH)
    if anchor != Anchor(1, 0, "", "", "") or oldest is None:
        return False
    signature = parse_signature(oldest[1])
    return signature is not None and signature.key_id == chain.id


def record_anchor(store: Store, chain: Chain) -> None:
    """Record the newest event, in a transaction of its own that waits for no other."""
    chain.pending = False
    if store.database.is_missing():
        # A transaction would create the file again.
        return
    chain.due = time.monotonic() + ANCHOR_SECONDS
    token = NO_WAIT.set(True)
    try:
        with store.write() as tx:
            advance_anchor(tx, chain)
    except Exception:
        # The write before it is committed. The next one tries again.
        chain.pending = True
    finally:
        NO_WAIT.reset(token)


def record_at_exit(database: Database, chain: Chain) -> None:
    """For a process that ends without closing its store."""
    if chain.pending:
        from punchlist.storage.store import Store

        with suppress(Exception):
            last = Store(database)
            record_anchor(last, chain)
            last.close()
