"""Activity: the events of a mission, a conversation or everything, in order, and live as they are written.

Each event has a sequence number. A reader that stopped continues after the last number it has seen, also in another
process. PostgreSQL assigns numbers before transactions commit, so a lower number can become visible after a higher one:
a gap in the numbers is waited for, until it is filled or older than `GAP_SECONDS` (a transaction that was rolled back
leaves one forever).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice, pairwise
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.changes import find_mission
from punchlist.storage.store import Store, Transaction
from punchlist.views import activity_repository
from punchlist.views.activity_repository import ActivityEntry

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
GAP_SECONDS: Final = 2.0
_NO_LIMIT: Final = 2**62
_CHATS_AT_ONCE: Final = 20
_CLOCKS_DIFFER: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class EventSource:
    """Whose events are read: of a conversation, of a mission with all its chats, or, without either, all."""

    conversation_id: str | None = None
    mission_id: str | None = None


@dataclass(frozen=True, slots=True)
class ActivityPage:
    entries: Sequence[ActivityEntry]
    """Oldest first."""
    last: int
    """The sequence number to continue after."""

    def as_json(self) -> dict[str, Any]:
        return {"items": [camel_json(entry) for entry in self.entries], "last": self.last}


def read_activity(
    store: Store,
    *,
    mission: str | None = None,
    conversation_id: str | None = None,
    since: datetime | None = None,
    after: int = 0,
    limit: int = DEFAULT_LIMIT,
) -> ActivityPage:
    """The events after a sequence number, or from a moment on."""
    with store.read() as tx:
        if since is not None:
            after = max(after, _number_before(tx, timestamp(since)))
        source = find_source(tx, mission, conversation_id)
        until = _NO_LIMIT if store.database.one_writer else _last_before_gap(tx)
        found = _entries(tx, source, after, until, max(1, min(limit, MAX_LIMIT)))
        # In a database that was restored, the newest event can be older.
        last = found[-1].seq if found else min(after, activity_repository.newest_number(tx) or 0)
    return ActivityPage(found, last)


def read_entries(store: Store, source: EventSource, after: int, until: int, limit: int) -> list[ActivityEntry]:
    """The events after one sequence number up to another."""
    with store.read() as tx:
        return _entries(tx, source, after, until, limit)


def newest_event(store: Store) -> int:
    """The sequence number of the newest event; 0 without events."""
    with store.read() as tx:
        return activity_repository.newest_number(tx) or 0


def find_source(tx: Transaction, mission: str | None, conversation_id: str | None) -> EventSource:
    if mission is not None and conversation_id is not None:
        raise InvalidInput("mission, conversationId: only one of them can be given")
    if mission is not None:
        return EventSource(mission_id=find_mission(tx, mission).id)
    return EventSource(conversation_id)


def _entries(tx: Transaction, source: EventSource, after: int, until: int, limit: int) -> list[ActivityEntry]:
    page = {"after": after, "until": until, "most": limit}
    if source.conversation_id is not None:
        return activity_repository.entries_in_conversation(tx, conversation_id=source.conversation_id, **page)
    if source.mission_id is None:
        return activity_repository.entries(tx, **page)

    def read(chats: Iterable[str]) -> list[ActivityEntry]:
        """Each list is in order and at most a page long, so a page of all of them costs no more with a long log."""
        found = (activity_repository.entries_in_conversation(tx, conversation_id=chat, **page) for chat in chats)
        return list(islice(merge(*found), limit))

    entries = read(activity_repository.chats_of_mission(tx, source.mission_id))
    # Delegated work has a conversation for each run. Those that begin after the page are not read.
    delegated = iter(activity_repository.delegated_chats(tx, source.mission_id, _still_open_at(tx, after)))
    while some := list(islice(delegated, _CHATS_AT_ONCE)):
        if len(entries) == limit and some[0][1] > entries[-1].at:
            break
        entries = list(islice(merge(entries, read(chat for chat, _ in some)), limit))
    return entries


def _still_open_at(tx: Transaction, after: int) -> str:
    """The time of an event, with room for clocks that differ."""
    row = activity_repository.first_from(tx, after) if after else None
    return timestamp(parse_timestamp(row[1]) - _CLOCKS_DIFFER) if row is not None else ""


def _last_before_gap(tx: Transaction) -> int:
    """The number before the first gap among the newest events that a transaction may still fill."""
    newest = activity_repository.newest_events(tx, MAX_LIMIT)[::-1]
    recent = timestamp(parse_timestamp(tx.now()) - timedelta(seconds=GAP_SECONDS))
    gaps = (before for (before, _), (seq, at) in pairwise(newest) if seq > before + 1 and at > recent)
    return next(gaps, _NO_LIMIT)


def _number_before(tx: Transaction, moment: str) -> int:
    """The last sequence number before a moment, by bisection: times follow the numbers."""
    low, high = 0, activity_repository.newest_number(tx) or 0
    while low < high:
        middle = (low + high) // 2
        row = activity_repository.first_from(tx, middle + 1)
        if row is None or row[1] >= moment:
            high = middle
        else:
            low = row[0]
    return low


@dataclass(slots=True)
class LiveFeed:
    """All events as this process or others write them. `last` resumes after a sequence number."""

    store: Store
    last: int
    monotonic: Callable[[], float] = time.monotonic
    _settled: int = field(init=False)
    _gap_since: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._settled = self.last

    def poll(self) -> list[ActivityEntry]:
        """The new events, oldest first; at most `MAX_LIMIT`."""
        with self.store.read() as tx:
            self._settle(activity_repository.next_numbers(tx, self._settled, MAX_LIMIT))
            found = activity_repository.entries(tx, after=self.last, until=self._settled, most=MAX_LIMIT)
        self.last = found[-1].seq if len(found) == MAX_LIMIT else self._settled
        return found

    def _settle(self, numbers: Sequence[int]) -> None:
        """Advance to the last number before a gap. A gap that is old enough is skipped."""
        for number in numbers:
            if number != self._settled + 1 and self._settled and not self._gap_is_old():
                return
            self._settled, self._gap_since = number, None

    def _gap_is_old(self) -> bool:
        now = self.monotonic()
        if self._gap_since is None:
            self._gap_since = now
        return now - self._gap_since >= GAP_SECONDS
