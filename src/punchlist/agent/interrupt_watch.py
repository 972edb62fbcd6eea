"""Cancels a turn that another process interrupts, ends or takes over."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Final

from punchlist.conversations.interrupts import interruption
from punchlist.conversations.model import StoredTurn
from punchlist.errors import StoreError
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.processes import current_process
from punchlist.storage.async_bridge import make_bridge
from punchlist.storage.store import Store

INTERVAL: Final = 0.25
"""Seconds between two looks, one indexed read each. A shorter turn does not look at all."""


class InterruptWatch:
    """While it is entered, `signal` is set as soon as this process must stop its work on the turn.

    The turns of workers are cancelled with the turn at the top.
    """

    def __init__(self, store: Store, turn: StoredTurn, parent: CancelSignal) -> None:
        self.signal = CancelSignal(parent)
        self._store = store
        self._turn = turn
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._turn.parent_turn_id is None:
            self._task = asyncio.create_task(self._watch())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        call, owner = make_bridge(self._store), current_process()
        while not self.signal.is_set:
            await asyncio.sleep(INTERVAL)
            # During an outage of the database the turn goes on; its own writes report the outage.
            with suppress(StoreError):
                if (reason := await call(interruption, self._store, self._turn.id, owner)) is not None:
                    self.signal.set(reason)
