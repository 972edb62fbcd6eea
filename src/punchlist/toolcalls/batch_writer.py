"""Groups transitions into few commits.

Transitions recorded while a commit runs go into the next commit together. A call waits until its own
transitions are stored before it runs; it does not wait for those of other calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from punchlist.errors import Conflict, StoreError
from punchlist.kernel.events import Actor
from punchlist.storage.async_bridge import call_without_waiting, is_remote, make_bridge
from punchlist.storage.change_watch import ChangeWatch
from punchlist.storage.sqlite import WouldBlock
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.lifecycle import CallAction
from punchlist.toolcalls.model import Transition, WaitingToolCall
from punchlist.toolcalls.policy import Rule
from punchlist.toolcalls.service import ExtraWrite, ToolCallService

FLUSH_DELAY: Final = 0.002
"""Seconds after which unawaited entries are flushed."""


class _Entries(NamedTuple):
    transitions: list[Transition]
    rules: list[tuple[Rule, Actor]]
    extra: list[ExtraWrite]


class BatchWriter:
    """A `Journal`. Belongs to one event loop."""

    def __init__(self, service: ToolCallService, store: Store) -> None:
        self._service = service
        self._bridge = make_bridge(store)
        self._remote = is_remote(store)
        self._flush_scheduled = False
        self._store = store
        self._watch: ChangeWatch | None = None
        """Opened when a call first waits for an answer."""
        self._watch_lock = threading.Lock()
        self._closed = False
        self._unread = True
        self._read_for: frozenset[str] = frozenset()
        """The calls whose answers were read after the last change."""
        self._pending = _Entries([], [], [])
        self._escalations: list[str] = []
        self._recorded = 0
        self._stored = 0
        self._lost: dict[str, Conflict] = {}
        self._flush: asyncio.Task[Exception | None] | None = None

    def record(self, transition: Transition) -> None:
        if transition.call.request.call_id in self._lost:
            return
        self._pending.transitions.append(transition)
        self._entry_added()

    def record_rules(self, rules: Sequence[Rule], actor: Actor) -> None:
        self._pending.rules.extend((rule, actor) for rule in rules)
        self._entry_added()

    def write_with_next(self, write: ExtraWrite) -> None:
        """Make a write of another component together with the next entries, or alone in `flushed`."""
        self._pending.extra.append(write)
        self._recorded += 1

    def escalate(self, call: WaitingToolCall) -> None:
        self._escalations.append(call.request.call_id)
        self._entry_added()

    def _entry_added(self) -> None:
        self._recorded += 1
        if self._flush is None and not self._flush_scheduled:
            # A caller that awaits `flushed` writes all entries so far; the timer writes those that no caller awaits.
            self._flush_scheduled = True
            asyncio.get_running_loop().call_later(FLUSH_DELAY, self._flush_now)

    def _flush_now(self) -> None:
        self._flush_scheduled = False
        if self._closed or self._flush is not None or self._stored == self._recorded:
            return
        # Without a task where possible: with many turns, each extra task costs a round of the event loop.
        with suppress(StoreError):
            if self._write_inline():
                return
        self._start_flush()

    def _start_flush(self) -> None:
        if self._flush is None and self._stored < self._recorded:
            self._flush = asyncio.get_running_loop().create_task(self._write())

    async def flushed(self, call_id: str | None = None) -> None:
        target = self._recorded
        while self._stored < target:
            if self._flush is None:
                if self._write_inline():
                    break
                self._start_flush()
            assert self._flush is not None
            # Cancelling the waiter must not cancel the commit.
            failure = await asyncio.shield(self._flush)
            if failure is not None:
                raise failure
        if call_id in self._lost:
            raise self._lost[call_id]

    def _write_inline(self) -> bool:
        """Write all entries at once, without a task. False where that would block, and where several calls are about to
        run: their entries go into one commit when all of them have had their turn."""
        starting = sum(transition.action is CallAction.EXECUTE for transition in self._pending.transitions)
        if self._remote or self._escalations or starting > 1:
            return False
        target, entries = self._recorded, self._take_entries()
        try:
            self._lost |= call_without_waiting(self._service.record, *entries)
        except WouldBlock:
            self._put_back(entries)
            return False
        except BaseException:
            self._put_back(entries)
            raise
        self._stored = target
        return True

    def _take_entries(self) -> _Entries:
        entries, self._pending = self._pending, _Entries([], [], [])
        return entries

    def _put_back(self, entries: _Entries) -> None:
        """Keep entries that could not be written, in their order, until the database is back."""
        pending = self._pending
        self._pending = _Entries(
            entries.transitions + pending.transitions, entries.rules + pending.rules, entries.extra + pending.extra
        )

    async def _write(self) -> Exception | None:
        try:
            while self._stored < self._recorded:
                target = self._recorded
                try:
                    await self._write_entries()
                    await self._write_escalations()
                except Exception as error:
                    return error
                self._stored = target
            return None
        finally:
            self._flush = None

    async def _write_entries(self) -> None:
        entries = self._take_entries()
        if not any(entries):
            return
        try:
            self._lost |= await self._bridge(self._service.record, *entries)
        except BaseException:
            self._put_back(entries)
            raise

    async def _write_escalations(self) -> None:
        while self._escalations:
            await self._bridge(self._service.escalate, self._escalations[0])
            self._escalations.pop(0)

    async def answers(self, call_ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
        return await asyncio.to_thread(self._read_answers, call_ids)

    def _read_answers(self, call_ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
        with self._watch_lock:
            if self._closed:
                return []
            # The first call always reads: an answer can be older than the watch.
            self._watch = self._watch or ChangeWatch(self._store)
            self._unread = self._watch.changed() or self._unread
            # After the last change, the answers of other calls were read: a call may begin to wait at any moment.
            if not self._unread and self._read_for.issuperset(call_ids):
                return []
            found = self._service.answers(call_ids)
            self._unread, self._read_for = False, frozenset(call_ids)
            return found

    def close(self) -> None:
        # The lock waits for a reading thread: closing its connection would crash the process.
        with self._watch_lock:
            self._closed = True
            if self._watch is not None:
                self._watch.__exit__(None, None, None)
