"""Subscriptions to events and live text, for surfaces that show work while it happens.

One thread watches the database while there are subscribers, reads what is new once, and gives each subscriber its part.
A subscriber that does not read loses no events: when its queue is full, the queue is dropped, and it reads the events
that it missed from the log. Live text is not repeated; its positions show what is missing.

    async with services.live.subscribe(conversation_id=session) as subscription:
        async for item in subscription:      # ActivityEntry or LiveText
            ...
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from punchlist.errors import StoreError
from punchlist.storage.change_watch import ChangeWatch
from punchlist.storage.store import Store
from punchlist.views import activity_repository
from punchlist.views.activity_repository import ActivityEntry
from punchlist.views.live import MAX_LIMIT, EventSource, LiveFeed, find_source, newest_event, read_entries
from punchlist.views.live_text import LiveText, LiveTextFeed

POLL_SECONDS: Final = 0.02
MAX_QUEUED: Final = 2_000
"""Items that a subscriber has not read."""
MAX_KNOWN_CHATS: Final = 10_000
IDLE_SECONDS: Final = 0.25
"""How soon the thread notices that the last subscriber is gone."""

LiveItem = ActivityEntry | LiveText


class Subscription:
    """The items of one subscriber. Read it with `async for`, with `batch`, or from a thread with `read`."""

    def __init__(self, hub: LiveHub, source: EventSource, last: int, text: bool) -> None:
        self.last = last
        """The sequence number of the last event that was read: resume with it, as `after`."""
        self.source = source
        """Whose items it gets."""
        self.closed = False
        self.reset = False
        """`after` was newer than every event, because the database was restored: it starts with the newest one."""
        self.missed = True
        """Events after `last` are in the log and not in the queue. The hub's lock guards this and the queue."""
        self._hub = hub
        self._text = text
        self._queue: deque[LiveItem] = deque()
        self._ready = threading.Event()
        self._wake: Callable[[], None] = self._ready.set

    def read(self, timeout: float | None = None) -> list[LiveItem]:
        """Wait for items, in a thread; empty after `timeout` seconds or when the subscription is closed."""
        if not (found := self._take()) and not self.closed:
            self._ready.wait(timeout)
            found = self._take()
        return found

    async def batch(self, timeout: float | None = None) -> list[LiveItem]:
        """Wait for items; empty after `timeout` seconds or when the subscription is closed."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # The event loop may have ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

        self._wake = wake
        found = await self._take_async()
        if not found and not self.closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await ready.wait()
            found = await self._take_async()
        return found

    async def __aiter__(self) -> AsyncIterator[LiveItem]:
        while not self.closed:
            for item in await self.batch():
                yield item

    def close(self) -> None:
        self.closed = True
        self._hub.remove(self)
        self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def offer(self, items: Iterable[LiveItem]) -> None:
        """Queue the items that the subscriber wants. Called by the hub, with its lock."""
        wanted = [item for item in items if self._wants(item)]
        if not wanted:
            return
        idle = self.missed or not self._queue
        if len(self._queue) + len(wanted) > MAX_QUEUED:
            self._queue.clear()
            self.missed = True
        self._queue.extend(item for item in wanted if isinstance(item, LiveText) or not self.missed)
        if idle:
            self._wake()

    def start_with(self, texts: Sequence[LiveText]) -> None:
        """Put what was streamed so far before what has been queued since. Called by the hub, with its lock."""
        known = {text.seq for text in texts}
        since = [item for item in self._queue if not isinstance(item, LiveText) or item.seq not in known]
        self._queue = deque([*filter(self._wants, texts), *since])

    def _wants(self, item: LiveItem) -> bool:
        if isinstance(item, LiveText):
            if not self._text:
                return False
        elif item.seq <= self.last:
            return False
        source = self.source
        if source.conversation_id is not None:
            return item.conversation_id == source.conversation_id
        return source.mission_id is None or self._hub.missions.known(item.conversation_id) == source.mission_id

    async def _take_async(self) -> list[LiveItem]:
        # Only missed events need the database.
        return await asyncio.to_thread(self._take) if self.missed else self._take()

    def _take(self) -> list[LiveItem]:
        found: list[LiveItem] = list(self._hub.catch_up(self)) if self.missed else []
        with self._hub.lock:
            self._ready.clear()
            found += self._queue
            self._queue.clear()
            self.last = max((item.seq for item in found if isinstance(item, ActivityEntry)), default=self.last)
        return found


class MissionsOfChats:
    """Which mission each conversation belongs to. That never changes, so it is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: dict[str, str | None] = {}

    def look_up(self, items: Iterable[LiveItem]) -> None:
        """Read the missions of the conversations that are not known yet."""
        if len(self._found) > MAX_KNOWN_CHATS:
            self._found = {}
        if not (unknown := {item.conversation_id for item in items} - self._found.keys()):
            return
        with self._store.read() as tx:
            found = {chat: activity_repository.mission_of_chat(tx, chat=chat) for chat in unknown}
        self._found |= found

    def known(self, conversation_id: str) -> str | None:
        return self._found.get(conversation_id)


class LiveHub:
    def __init__(self, store: Store) -> None:
        self.lock = threading.Lock()
        self.missions = MissionsOfChats(store)
        self._store = store
        self._subscriptions: set[Subscription] = set()
        self._position = 0
        """The last event that was given to the subscribers."""
        self._thread: threading.Thread | None = None
        self._starts = threading.Lock()

    def subscribe(
        self,
        *,
        mission: str | None = None,
        conversation_id: str | None = None,
        after: int | None = None,
        text: bool = True,
    ) -> Subscription:
        """Subscribe to the chats of a mission, also those that begin later, to a conversation, or to everything.

        `after` is the number of the last event that the subscriber has seen; default: only new events. With `text`, it
        also gets live text, first what the open turns have streamed so far. Reads the database: call it in a thread
        from asynchronous code.
        """
        with self._store.read() as tx:
            source = find_source(tx, mission, conversation_id)
        with self._starts:
            with self.lock:
                subscription = Subscription(self, source, self._position if after is None else after, text)
                self._subscriptions.add(subscription)
                running = self._thread is not None
            if not running:
                self._start()
            with self.lock:
                if after is None and not running:
                    subscription.last = self._position
                ahead = subscription.last > self._position
            # The hub may not have read the newest events yet.
            if ahead and (newest := newest_event(self._store)) < subscription.last:
                subscription.last, subscription.reset = newest, True
            with self.lock:
                if subscription.last >= self._position:
                    subscription.missed = False
        if text:
            so_far = LiveTextFeed(self._store).poll()
            self.missions.look_up(so_far)
            with self.lock:
                subscription.start_with(so_far)
        return subscription

    def close(self) -> None:
        """End all subscriptions and the thread."""
        self.end_subscriptions()
        if (thread := self._thread) is not None:
            thread.join(timeout=2 * IDLE_SECONDS)

    def end_subscriptions(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.close()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def remove(self, subscription: Subscription) -> None:
        with self.lock:
            self._subscriptions.discard(subscription)

    def catch_up(self, subscription: Subscription) -> list[ActivityEntry]:
        """A page of the events that the subscriber missed."""
        until = self._position
        found = read_entries(self._store, subscription.source, subscription.last, until, MAX_LIMIT)
        with self.lock:
            subscription.last = found[-1].seq if len(found) == MAX_LIMIT else until
            subscription.missed = subscription.last < self._position
        return found

    # --- the thread ---------------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._store.read() as tx:
            newest = activity_repository.newest_number(tx) or 0
        events, texts = LiveFeed(self._store, newest), LiveTextFeed(self._store)
        texts.poll()
        self._position = newest
        self._thread = threading.Thread(target=self._watch, args=(events, texts), name="live hub", daemon=True)
        self._thread.start()

    def _watch(self, events: LiveFeed, texts: LiveTextFeed) -> None:
        with ChangeWatch(self._store) as watch:
            pending: list[LiveItem] = []
            while True:
                items: list[LiveItem] = []
                # While the database is unavailable, subscribers wait.
                with suppress(StoreError):
                    pending += events.poll()
                    pending += texts.poll()
                    self.missions.look_up(pending)
                    items, pending = pending, []
                with self.lock:
                    if not self._subscriptions:
                        self._thread = None
                        return
                    for subscription in self._subscriptions if items else ():
                        subscription.offer(items)
                    if not pending:
                        self._position = events.last
                if not items:
                    watch.wait(IDLE_SECONDS, POLL_SECONDS)
