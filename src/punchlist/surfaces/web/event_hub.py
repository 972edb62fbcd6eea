"""One watcher of the event log for all open event streams of a server.

The hub polls the log once, renders each event once, and hands the bytes to the subscribers whose filter it fits. A
subscriber that reads too slowly is closed; its client connects again and resumes after the last event that it got,
from the database. So memory is bounded and no event is missed.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from punchlist.errors import PunchlistError
from punchlist.kernel.camel_json import camel_json
from punchlist.storage.async_bridge import make_bridge
from punchlist.storage.change_watch import INTERVAL, ChangeWatch
from punchlist.storage.store import Store
from punchlist.views import activity_repository
from punchlist.views.activity_repository import ActivityEntry
from punchlist.views.live import MAX_LIMIT, LiveFeed, read_activity

MAX_WAITING: Final = 2_000
"""Events that wait for one subscriber."""
KEEPALIVE_SECONDS: Final = 15.0
KEEPALIVE: Final = b": keepalive\n\n"
_OVERLAP: Final = 1_000
"""PostgreSQL can commit numbers out of order: the hub starts this far back."""
_UNCHANGED_POLLS: Final = 20
"""Polls without a change before the log is read anyway: a gap in the numbers may have become old."""


class EventFilter(NamedTuple):
    """Which events a subscriber gets; all if both are None."""

    mission: str | None = None
    conversation_id: str | None = None


class Subscription:
    """The events for one stream. Used on the event loop only."""

    def __init__(self, filter: EventFilter, chats: frozenset[str] | None, start: int) -> None:
        self.filter = filter
        self.chats = chats
        """The conversations whose events it gets; None for all."""
        self.start = start
        """The sequence number after which the hub delivers."""
        self.closed = False
        self._frames: deque[bytes] = deque()
        self._arrived = asyncio.Event()

    def put(self, frame: bytes) -> None:
        if len(self._frames) >= MAX_WAITING:
            self.close()
            return
        self._frames.append(frame)
        self._arrived.set()

    def close(self) -> None:
        self.closed = True
        self._arrived.set()

    async def next(self) -> bytes:
        """All events that wait; a keepalive if none came for a while."""
        if not self._frames and not self.closed:
            self._arrived.clear()
            try:
                async with asyncio.timeout(KEEPALIVE_SECONDS):
                    await self._arrived.wait()
            except TimeoutError:
                return KEEPALIVE
        frames = b"".join(self._frames)
        self._frames.clear()
        return frames


class EventHub:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._call = make_bridge(store)
        self._subscriptions: set[Subscription] = set()
        self._known: set[str] = set()
        """Conversations that the filters by mission were computed with."""
        self._task: asyncio.Task[None] | None = None
        self._feed: LiveFeed | None = None
        self._delivered = 0

    @property
    def last(self) -> int:
        """The number of the last event that was delivered."""
        return self._delivered

    @property
    def streams(self) -> int:
        return len(self._subscriptions)

    async def start(self) -> None:
        with suppress(PunchlistError):
            await self._open()
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def subscribe(self, filter: EventFilter) -> Subscription:
        """Raises if the mission does not exist."""
        await self._open()
        chats = await self._call(self._read_chats, filter)
        subscription = Subscription(filter, chats, self.last)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    async def missed(self, subscription: Subscription, after: int) -> AsyncIterator[bytes]:
        """The events after a number and before the subscription began."""
        filter = subscription.filter
        while after < subscription.start:
            page = await self._call(
                read_activity,
                self._store,
                mission=filter.mission,
                conversation_id=filter.conversation_id,
                after=after,
                limit=MAX_LIMIT,
            )
            yield b"".join(frame(entry) for entry in page.entries if entry.seq <= subscription.start)
            if len(page.entries) < MAX_LIMIT:
                return
            after = page.last

    async def _open(self) -> LiveFeed:
        if self._feed is None:
            newest = await self._call(_newest, self._store)
            self._feed = LiveFeed(self._store, max(0, newest - _OVERLAP))
            await self._deliver(self._feed)
        return self._feed

    async def _watch(self) -> None:
        watch, unchanged = ChangeWatch(self._store), 0
        try:
            while True:
                await asyncio.sleep(INTERVAL)
                try:
                    changed = await self._call(watch.changed)
                    unchanged = 0 if changed else unchanged + 1
                    if changed or unchanged % _UNCHANGED_POLLS == 0:
                        await self._deliver(await self._open())
                except PunchlistError:
                    # The database is away for a moment; its events are read when it is back.
                    await asyncio.sleep(1.0)
        finally:
            watch.close()

    async def _deliver(self, feed: LiveFeed) -> None:
        while True:
            found = await self._call(feed.poll)
            if any(entry.conversation_id not in self._known for entry in found):
                await self._update_chats(found)
            for entry in found:
                self._dispatch(entry)
            self._delivered = feed.last
            if len(found) < MAX_LIMIT:
                return

    async def _update_chats(self, found: Sequence[ActivityEntry]) -> None:
        """A mission may have got a new pillar, with new chats."""
        self._known.update(entry.conversation_id for entry in found)
        if len(self._known) > 100_000:
            self._known.clear()
        for filter in {each.filter for each in self._subscriptions if each.filter.mission is not None}:
            chats = await self._call(self._read_chats, filter)
            for subscription in self._subscriptions:
                if subscription.filter == filter:
                    subscription.chats = chats

    def _dispatch(self, entry: ActivityEntry) -> None:
        rendered = None
        for subscription in self._subscriptions:
            if entry.seq <= subscription.start:
                continue
            if subscription.chats is None or entry.conversation_id in subscription.chats:
                rendered = rendered or frame(entry)
                subscription.put(rendered)

    def _read_chats(self, filter: EventFilter) -> frozenset[str] | None:
        if filter.mission is not None:
            from punchlist.missions.changes import find_mission

            with self._store.read() as tx:
                return frozenset(activity_repository.chats_of_mission(tx, find_mission(tx, filter.mission).id))
        return None if filter.conversation_id is None else frozenset({filter.conversation_id})


def frame(entry: ActivityEntry) -> bytes:
    """An event as a server-sent event. ASCII JSON has no line breaks."""
    return b"id: %d\nevent: change\ndata: %s\n\n" % (entry.seq, json.dumps(camel_json(entry)).encode())


def _newest(store: Store) -> int:
    with store.read() as tx:
        return activity_repository.newest_number(tx) or 0
