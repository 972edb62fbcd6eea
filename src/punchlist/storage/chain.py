"""The signed hash chain of the event log.

With a key, the hash of an event is a MAC: a writer without the key can neither rewrite an event nor recompute the
chain. The text is `KEY.AFTER.MAC`. KEY identifies the key. AFTER is the number of the newest event that the writer saw,
so that an event or a whole stream cannot be removed without leaving a gap. The MAC covers AFTER, the hash before it in
the stream, and every field of the event.

The anchor is one row with the newest event that is known to exist, signed in the same way: it shows when events are
removed from the end. It is written after the first write of a process, at most once per second after that, and when the
store is closed; a process that is killed leaves it up to a second behind. It can only move forward, and an unsigned
anchor is signed only while every event is signed.
"""

from __future__ import annotations

import time
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from punchlist.kernel.events import Change, chain_text
from punchlist.storage.sqlite import NO_WAIT
from punchlist.storage.statements import Statement

if TYPE_CHECKING:
    from punchlist.storage.store import Database, Store, Transaction

ANCHOR_SECONDS: Final = 1.0
_DIGEST_BYTES: Final = 32
_MARK: Final = "."

FIND_ANCHOR: Final = Statement("SELECT signed_from, seq, hash, key_id, signature FROM chain_anchor WHERE id = 1")
# Another process that holds the row is recording the anchor at this moment.
LOCK_ANCHOR: Final = Statement(FIND_ANCHOR.sql, lock="FOR UPDATE SKIP LOCKED")
UPDATE_ANCHOR: Final = Statement(
    "UPDATE chain_anchor SET signed_from = :signed_from, seq = :seq, hash = :hash, key_id = :key_id, "
    "signature = :signature WHERE id = 1"
)
OLDEST: Final = Statement("SELECT seq, hash FROM events ORDER BY seq LIMIT 1")
NEWEST: Final = Statement("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")
HASH_AT: Final = Statement("SELECT hash FROM events WHERE seq = :seq")


class EventSignature(NamedTuple):
    """The parts of a signed hash."""

    key_id: str
    after: int


class Anchor(NamedTuple):
    signed_from: int
    """Events from this number on are signed."""
    seq: int
    hash: str
    key_id: str
    signature: str


class Chain:
    """A key, and whether events were appended since the anchor was recorded."""

    __slots__ = ("_key", "due", "id", "pending")

    def __init__(self, key: bytes) -> None:
        # BLAKE2 takes keys of up to 64 bytes; this one is used for nothing else.
        self._key = blake2b(key, person=b"punchlist-events", digest_size=_DIGEST_BYTES).digest()
        self.id = blake2b(self._key, person=b"punchlist-key-id", digest_size=4).hexdigest()
        self.pending = False
        self.due = 0.0

    def sign_event(self, after: int, previous: str, version: int, at: str, change: Change, data: str) -> str:
        text = f"{after}@{chain_text(previous, version, at, change, data)}"
        return f"{self.id}{_MARK}{after}{_MARK}{self._mac(text)}"

    def sign_anchor(self, signed_from: int, seq: int, hash: str) -> Anchor:
        return Anchor(signed_from, seq, hash, self.id, self._mac(f"anchor {signed_from} {seq} {hash}"))

    def has_signed(self, anchor: Anchor) -> bool:
        return anchor == self.sign_anchor(anchor.signed_from, anchor.seq, anchor.hash)

    def _mac(self, text: str) -> str:
        return blake2b(text.encode(), key=self._key, digest_size=_DIGEST_BYTES).hexdigest()


def parse_signature(hash: str) -> EventSignature | None:
    """The parts of a signed hash; None for a plain one."""
    key_id, *rest = hash.split(_MARK)
    if len(rest) != 2 or not rest[0].isdecimal():
        return None
    return EventSignature(key_id, int(rest[0]))


def find_anchor(tx: Transaction) -> Anchor | None:
    row = tx.one(FIND_ANCHOR)
    return Anchor(*row) if row else None


def is_anchored(tx: Transaction, anchor: Anchor) -> bool:
    """Whether the event that the anchor names is still in the log."""
    return not anchor.seq or tx.one(HASH_AT, seq=anchor.seq) == (anchor.hash,)


def sign_new_database(tx: Transaction, chain: Chain) -> None:
    """Sign the anchor of a database that was just created or upgraded."""
    anchor, newest = find_anchor(tx), tx.one(NEWEST)
    if anchor is not None and not anchor.key_id:
        seq, hash = newest or (0, "")
        tx.run(UPDATE_ANCHOR, **chain.sign_anchor(anchor.signed_from, seq, hash)._asdict())


def advance_anchor(tx: Transaction, chain: Chain) -> None:
    """Move the anchor to the newest event."""
    row, newest = tx.one(LOCK_ANCHOR), tx.one(NEWEST)
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
    oldest = tx.one(OLDEST)
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
