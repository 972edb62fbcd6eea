"""The journal on a ledger: many notes, few commits.

Notes that come while a commit runs go into the next one together. A call waits for its own to be on
record before it runs, and for nobody else's.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from punchlist.errors import Conflict, StoreError
from punchlist.kernel.actors import Actor
from punchlist.storage.async_bridge import call_without_waiting, is_remote, make_bridge
from punchlist.storage.change_watch import ChangeWatch
from punchlist.storage.sqlite import WouldBlock
from punchlist.storage.store import Store
from punchlist.toolcalls.approvals import ApprovalAnswer
from punchlist.toolcalls.model import Transition, WaitingToolCall
from punchlist.toolcalls.policy import Rule
from punchlist.toolcalls.service import ExtraWrite, ToolCallService

FLUSH_DELAY: Final = 0.002


class BatchWriter:
    """A `Journal`. Belongs to one event loop."""

    def __init__(self, ledger: ToolCallService, store: Store) -> None:
        self._ledger = ledger
        self._aside = make_bridge(store)
        self._slow = is_remote(store)
        self._soon = False
        self._watch = ChangeWatch(store)
        self._watching = False
        self._looking = threading.Lock()
        self._closed = False
        self._unread = True
        self._pending: list[Transition] = []
        self._rules: list[tuple[Rule, Actor]] = []
        self._escalations: list[str] = []
        self._along: list[ExtraWrite] = []
        self._noted = 0
        self._recorded = 0
        self._lost: dict[str, Conflict] = {}
        self._flush: asyncio.Task[Exception | None] | None = None

    def record(self, transition: Transition) -> None:
        if transition.call.request.call_id in self._lost:
            return
        self._pending.append(transition)
        self._noticed()

    def record_rules(self, rules: Sequence[Rule], by: Actor) -> None:
        self._rules += [(rule, by) for rule in rules]
        self._noticed()

    def write_with_next(self, write: ExtraWrite) -> None:
        """Something of somebody else's, to be written with what is noted next, or alone by `settled`."""
        self._along.append(write)
        self._noted += 1

    def escalate(self, call: WaitingToolCall) -> None:
        self._escalations.append(call.request.call_id)
        self._noticed()

    def _noticed(self) -> None:
        self._noted += 1
        if self._flush is None and not self._soon:
            # Whoever waits for it writes it, together with all that was noted until then. What nobody waits for is
            # written a moment later.
            self._soon = True
            asyncio.get_running_loop().call_later(FLUSH_DELAY, self._later)

    def _later(self) -> None:
        self._soon = False
        if self._closed or self._flush is not None or self._recorded == self._noted:
            return
        # Here, if that can be: with many turns at work, a task more is a round of all of them more.
        with suppress(StoreError):
            if self._write_here():
                return
        self._begin()

    def _begin(self) -> None:
        if self._flush is None and self._recorded < self._noted:
            self._flush = asyncio.get_running_loop().create_task(self._write())

    async def flushed(self, call_id: str | None = None) -> None:
        mark = self._noted
        while self._recorded < mark:
            if self._flush is None:
                if self._write_here():
                    break
                self._begin()
            assert self._flush is not None
            # Whoever stops waiting must not stop the commit.
            failure = await asyncio.shield(self._flush)
            if failure is not None:
                raise failure
        if call_id in self._lost:
            raise self._lost[call_id]

    def _write_here(self) -> bool:
        """All of it at once, without a task of its own; False where that has to wait for others, or where several
        calls are at work, whose notes go into one commit when they have all had their turn."""
        if self._slow or self._escalations or len({step.call.request.call_id for step in self._pending}) > 1:
            return False
        mark, (steps, rules, along) = self._noted, self._take()
        try:
            self._lost |= call_without_waiting(self._ledger.record, steps, rules, along)
        except WouldBlock:
            self._put_back(steps, rules, along)
            return False
        except BaseException:
            self._put_back(steps, rules, along)
            raise
        self._recorded = mark
        return True

    def _take(self) -> tuple[list[Transition], list[tuple[Rule, Actor]], list[ExtraWrite]]:
        taken = self._pending, self._rules, self._along
        self._pending, self._rules, self._along = [], [], []
        return taken

    def _put_back(self, steps: list[Transition], rules: list[tuple[Rule, Actor]], along: list[ExtraWrite]) -> None:
        """They stay noted, in their order, for when the database is back."""
        self._pending, self._rules, self._along = steps + self._pending, rules + self._rules, along + self._along

    async def _write(self) -> Exception | None:
        try:
            while self._recorded < self._noted:
                mark = self._noted
                try:
                    await self._write_steps()
                    await self._write_escalations()
                except Exception as error:
                    return error
                self._recorded = mark
            return None
        finally:
            self._flush = None

    async def _write_steps(self) -> None:
        steps, rules, along = self._take()
        if not steps and not rules and not along:
            return
        try:
            self._lost |= await self._aside(self._ledger.record, steps, rules, along)
        except BaseException:
            self._put_back(steps, rules, along)
            raise

    async def _write_escalations(self) -> None:
        while self._escalations:
            await self._aside(self._ledger.escalate, self._escalations[0])
            self._escalations.pop(0)

    async def answers(self, call_ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
        return await asyncio.to_thread(self._look, call_ids)

    def _look(self, call_ids: Sequence[str]) -> Sequence[tuple[str, ApprovalAnswer]]:
        with self._looking:
            if self._closed:
                return []
            # The first look reads in any case: the answer may be older than our watching.
            self._unread = self._watch.changed() or self._unread or not self._watching
            if not self._unread:
                return []
            found = self._ledger.answers(call_ids)
            self._watching, self._unread = True, False
            return found

    def close(self) -> None:
        # A thread that looks cannot be stopped: to close the connection under it would crash the process.
        with self._looking:
            self._closed = True
            self._watch.__exit__(None, None, None)
