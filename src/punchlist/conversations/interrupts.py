"""Interrupting a turn from another process (C14).

A request is a row that the process that works on the turn looks for several times a second: it may run on another
machine, where no signal reaches it. It then ends the turn as cancelled itself, so that nothing is half written. A turn
that no process works on is ended at once, and so is one whose owner did not react to an earlier request.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Final

from punchlist.conversations import repository
from punchlist.conversations.lifecycle import TURN, TurnAction
from punchlist.conversations.model import Scope, StoredTurn, TurnInterrupt
from punchlist.conversations.service import MAX_TITLE_LENGTH, conversation_change, end_turn
from punchlist.errors import InvalidInput, StoreError
from punchlist.kernel import text
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.processes import current_process, is_running
from punchlist.storage import event_log
from punchlist.storage.async_bridge import make_bridge
from punchlist.storage.store import Store, Transaction

REACTION_TIME: Final = timedelta(seconds=3)
"""An owner that has not ended its turn by then is treated as dead by the next request."""
WATCH_INTERVAL: Final = 0.25
"""Seconds between two looks, one indexed read each. A shorter turn does not look at all."""


def request_interrupt(store: Store, scope: Scope, reason: str) -> StoredTurn | None:
    """Interrupt the open turn of a conversation. None if no turn is open.

    The returned turn has ended if no process works on it; otherwise its owner ends it within a second.
    """
    if problem := text.line_problem(reason, max_length=MAX_TITLE_LENGTH):
        raise InvalidInput(f"reason: {problem}")
    with store.write() as tx:
        if repository.lock_conversation(tx, scope.conversation_id) is None:
            return None
        turn = repository.find_open_turn(tx, scope.conversation_id)
        if turn is None:
            return None
        if turn.owner is None or is_running(turn.owner) is False or _ignored(tx, turn):
            return end_turn(tx, scope, turn, text.excerpt(f"cancelled: {reason}", MAX_TITLE_LENGTH))
        _request(tx, scope, turn, reason)
        return turn


def interruption(store: Store, turn_id: str, owner: str) -> str | None:
    """Why `owner` must stop its work on a turn; None if it may go on."""
    with store.read() as tx:
        turn, request = repository.find_turn(tx, turn_id), repository.find_interrupt(tx, turn_id)
    if turn is None:
        return "the turn was deleted"
    if not turn.open:
        return f"the turn was ended from outside ({turn.end_reason})"
    if turn.owner not in (None, owner):
        return f"process {turn.owner} has taken over the turn"
    return request.reason if request is not None else None


def _request(tx: Transaction, scope: Scope, turn: StoredTurn, reason: str) -> None:
    status = TURN.advance(turn.status, TurnAction.INTERRUPT, scope.actor.role)
    if repository.add_interrupt(tx, TurnInterrupt(turn.id, str(scope.actor), reason, tx.now())):
        change = conversation_change(
            scope, TurnAction.INTERRUPT, turn.id, reason, {}, from_status=turn.status, to_status=status
        )
        event_log.append(tx, change)


def _ignored(tx: Transaction, turn: StoredTurn) -> bool:
    """Whether the owner had time to react to an earlier request and did not."""
    request = repository.find_interrupt(tx, turn.id)
    if request is None:
        return False
    return datetime.fromisoformat(tx.now()) - datetime.fromisoformat(request.requested_at) >= REACTION_TIME


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
            await asyncio.sleep(WATCH_INTERVAL)
            # During an outage of the database the turn goes on; its own writes report the outage.
            with suppress(StoreError):
                if (reason := await call(interruption, self._store, self._turn.id, owner)) is not None:
                    self.signal.set(reason)
