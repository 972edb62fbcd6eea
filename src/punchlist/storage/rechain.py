"""Signs the event log with a new key, after its user has adopted the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from punchlist.kernel.events import GENESIS, Chain, Change, Event
from punchlist.storage import event_log
from punchlist.storage.event_log import UPDATE_ANCHOR
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction

DATABASE_STREAM: Final = "database"
SIGNED: Final = "sign_log"

_BEFORE: Final = Statement("SELECT max(seq) FROM events WHERE seq < :seq")
_SET_HASH: Final = Statement("UPDATE events SET hash = :hash WHERE seq = :seq")
# Writers of other streams wait until the log is signed; readers do not.
_LOCK: Final = "LOCK TABLE events IN EXCLUSIVE MODE"


def rechain(store: Store, key: bytes, *, actor: str, reason: str) -> int:
    """Sign every event with a key, as it is, and record that in the log; the number of events that were signed.

    The content of the events is not verified: the user decided that it is their own from now on.
    """
    chain = Chain(key)
    with store.write(long=True) as tx:
        if not tx.exclusive:
            tx.run(Statement(_LOCK))
        tx.chain = chain
        count = 0
        for events in event_log.streams(tx):
            tx.run_many(_SET_HASH, list(_signed(tx, chain, events)))
            count += len(events)
        event_log.append(
            tx, Change(DATABASE_STREAM, "", actor, SIGNED, chain.id, None, None, reason, {"events": count})
        )
        newest = event_log.newest(tx, 1)[0]
        tx.run(UPDATE_ANCHOR, **chain.sign_anchor(1, newest.seq, newest.hash)._asdict())
    return count


def _signed(tx: Transaction, chain: Chain, events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    previous = GENESIS
    for event in events:
        row = tx.one(_BEFORE, seq=event.seq)
        after = row[0] if row and row[0] else 0
        fields = (previous, event.version, event.at, event, event.data)
        previous = chain.sign_event(after, *fields)
        yield {"seq": event.seq, "hash": previous}
