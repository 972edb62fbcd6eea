"""Writes streamed text, output of running calls and the status of turns for other processes, beside the event log.

Text is collected and written by a thread at most every `FLUSH_SECONDS`, so that a reply that arrives faster writes
nothing. What is written is bounded per turn, its beginning dropped first, and deleted when the reply or the result is
stored: from then on, the message has it. A process that dies leaves at most that much text, which the next owner of the
turn deletes, or any process after `KEPT`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from punchlist.agent.events import (
    AgentEvent,
    CallChanged,
    Continued,
    EventListener,
    ReplyReceived,
    TextDelta,
    ToolOutput,
    TurnEnded,
    TurnStarted,
)
from punchlist.conversations import live_repository, status_repository
from punchlist.conversations.live_repository import NewLiveText
from punchlist.conversations.status_repository import TurnStatusRow
from punchlist.errors import StoreError
from punchlist.kernel.clock import timestamp
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls.lifecycle import ENDED

FLUSH_SECONDS: Final = 0.03
MAX_CHARACTERS: Final = 64_000
"""Kept of the text of one turn."""
KEPT: Final = timedelta(days=1)
ENDS_KEPT: Final = timedelta(minutes=1)
"""By then, every reader has seen that the text ended."""
REPLY: Final = ""
"""The call id of the text of a reply."""


@dataclass(slots=True)
class _Stream:
    """The text of one reply or one call."""

    conversation_id: str
    turn_id: str
    call_id: str
    pending: list[str] = field(default_factory=list)
    written: int = 0
    """Characters written or dropped so far."""
    kept_from: int = 0
    """Characters before this one were deleted."""
    has_rows: bool = False
    ended: bool = False

    def take(self, limit: int) -> str:
        """The pending text, of which the beginning is dropped beyond `limit`."""
        text = "".join(self.pending)
        self.pending.clear()
        dropped = max(len(text) - limit, 0)
        self.written += dropped
        self.has_rows |= bool(text)
        return text[dropped:]


class LiveOutput:
    """The live output of the turns of this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._statuses = TurnStatuses()
        self._begun: set[str] = set()
        """Turns whose rows of an earlier owner are deleted."""
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._changed = self._closed = False

    def listener(self, conversation_id: str, then: EventListener | None = None) -> EventListener:
        """A listener for the events of a conversation's turns, which calls `then` first."""

        def on_event(event: AgentEvent) -> None:
            if then is not None:
                then(event)
            self._apply(event)
            match event:
                case TextDelta():
                    self._add(conversation_id, event.turn_id, REPLY, event.text)
                case ToolOutput():
                    self._add(conversation_id, event.turn_id, event.call_id, event.text)
                case ReplyReceived():
                    self._end(event.turn_id, REPLY)
                case CallChanged() if event.call.status in ENDED:
                    self._end(event.turn_id, event.call.request.call_id)
                case TurnEnded():
                    self._end(event.turn_id)

        return on_event

    def close(self) -> None:
        """Write the ends of all streams."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _apply(self, event: AgentEvent) -> None:
        with self._wake:
            if self._statuses.apply(event):
                self._notify()

    def _add(self, conversation_id: str, turn_id: str, call_id: str, text: str) -> None:
        if not text:
            return
        with self._wake:
            key = turn_id, call_id
            if key not in self._streams:
                self._streams[key] = _Stream(conversation_id, turn_id, call_id)
            self._streams[key].pending.append(text)
            self._notify()

    def _end(self, turn_id: str, call_id: str | None = None) -> None:
        """End one stream of a turn, or all."""
        with self._wake:
            if call_id is None:
                self._begun.discard(turn_id)
            for key in [key for key in self._streams if key[0] == turn_id and call_id in (None, key[1])]:
                if self._streams[key].has_rows:
                    self._streams[key].ended = True
                    self._notify()
                else:
                    del self._streams[key]

    def _notify(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="live output", daemon=True)
            self._thread.start()
        if not self._changed:
            self._changed = True
            self._wake.notify()

    # --- the thread ---------------------------------------------------------------------------------------

    def _write(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._changed or self._closed)
                closed, self._changed = self._closed, False
            if not closed:
                time.sleep(FLUSH_SECONDS)
            # Live output is lost during an outage of the database, or if its turn was deleted; the turn reports it.
            with suppress(StoreError, self._store.database.driver_error):
                self._flush(closed)
            if closed:
                return

    def _flush(self, closed: bool) -> None:
        with self._wake:
            streams = [stream for stream in self._streams.values() if stream.pending or stream.ended or closed]
            open_streams = {stream.turn_id: 0 for stream in streams}
            for stream in self._streams.values():
                if stream.turn_id in open_streams:
                    open_streams[stream.turn_id] += 1
            taken = []
            for stream in streams:
                stream.ended |= closed
                limit = MAX_CHARACTERS // open_streams[stream.turn_id]
                taken.append((stream, "" if stream.ended else stream.take(limit), limit))
                if stream.ended:
                    self._streams.pop((stream.turn_id, stream.call_id), None)
            statuses = self._statuses.take()
        taken = [(stream, text, limit) for stream, text, limit in taken if text or stream.has_rows]
        if not taken and not statuses:
            return
        with self._store.write() as tx:
            for status in statuses:
                store_status(tx, status)
            for stream, text, limit in taken:
                self._store_text(tx, stream, text, limit)
            self._forget(tx, {stream.turn_id for stream, _, _ in taken})

    def _store_text(self, tx: Transaction, stream: _Stream, text: str, limit: int) -> None:
        names = stream.conversation_id, stream.turn_id, stream.call_id
        live_repository.add_text(tx, NewLiveText(*names, stream.written, _storable(text), int(stream.ended), tx.now()))
        stream.written += len(text)
        before, of_stream = stream.written - limit, {"turn_id": stream.turn_id, "call_id": stream.call_id}
        if stream.ended:
            tx.run(live_repository.DELETE_STREAM, now=tx.now(), **of_stream)
        # Not for every piece: a quarter more than the limit may be stored for a moment.
        elif before - stream.kept_from > limit // 4:
            tx.run(live_repository.DELETE_BEFORE, position=before, **of_stream)
            stream.kept_from = before

    def _forget(self, tx: Transaction, turns: Iterable[str]) -> None:
        """Delete what earlier owners of the turns and dead processes left."""
        for turn_id in turns:
            if turn_id not in self._begun:
                self._begun.add(turn_id)
                tx.run(live_repository.DELETE_EARLIER, turn_id=turn_id, now=tx.now())
                now = self._store.clock()
                times = {"before": timestamp(now - KEPT), "ended_before": timestamp(now - ENDS_KEPT)}
                tx.run(live_repository.DELETE_OLD, **times)


def _storable(text: str) -> str:
    """Without characters that a database cannot store."""
    return text.replace("\x00", "\ufffd").encode("utf-8", errors="replace").decode()


# --- the status of turns: model, mode, continuations, tokens, cost, context ---------------------------------


@dataclass(slots=True)
class LiveStatus:
    started: TurnStarted
    continuations: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    context_tokens: int = 0
    before: TurnStatusRow | None = None
    """What an earlier owner of a resumed turn stored."""
    unread: bool = True
    """`before` was not read yet."""
    changed: bool = True
    ended: bool = False


class TurnStatuses:
    """The status of the open turns of this process. The caller holds a lock around every call."""

    def __init__(self) -> None:
        self._turns: dict[str, LiveStatus] = {}

    def apply(self, event: AgentEvent) -> bool:
        """Whether the event changes a status."""
        match event:
            case TurnStarted():
                self._turns[event.turn_id] = LiveStatus(event)
            case ReplyReceived() if status := self._turns.get(event.turn_id):
                status.context_tokens = event.usage.total
                self._spend(status, event)
            case Continued() if status := self._turns.get(event.turn_id):
                status.continuations, status.changed = event.count, True
            case TurnEnded() if status := self._turns.get(event.turn_id):
                status.ended = status.changed = True
            case _:
                return False
        return True

    def take(self) -> list[LiveStatus]:
        """The statuses that changed since the last call."""
        changed = [status for status in self._turns.values() if status.changed]
        for status in changed:
            status.changed = False
            if status.ended:
                del self._turns[status.started.turn_id]
        return changed

    def _spend(self, status: LiveStatus, event: ReplyReceived) -> None:
        """Count a reply for its turn and for the turns that delegated it."""
        counted: LiveStatus | None = status
        while counted is not None:
            counted.input_tokens += event.usage.input_tokens
            counted.output_tokens += event.usage.output_tokens
            if event.cost is not None:
                counted.cost = (counted.cost or 0.0) + event.cost
            counted.changed = True
            counted = self._turns.get(counted.started.parent or "")


def store_status(tx: Transaction, status: LiveStatus) -> None:
    started = status.started
    if status.unread:
        status.before = status_repository.find_status(tx, started.turn_id) if started.resumed else None
        status.unread = False
    before = status.before
    costs = [cost for cost in (status.cost, before.cost if before else None) if cost is not None]
    row = TurnStatusRow(
        started.turn_id,
        started.model,
        started.mode,
        max(status.continuations, before.continuations if before else 0),
        started.continuations,
        status.input_tokens + (before.input_tokens if before else 0),
        status.output_tokens + (before.output_tokens if before else 0),
        started.token_limit,
        sum(costs) if costs else None,
        started.cost_limit,
        status.context_tokens or (before.context_tokens if before else 0),
        started.context_window,
        tx.now(),
    )
    status_repository.save_status(tx, row)
