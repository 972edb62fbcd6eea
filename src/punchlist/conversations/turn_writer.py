"""What is said in one turn, written down by the process that works on it.

A reply of a model, what it cost and whatever came before it is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.lifecycle import TurnAction
from punchlist.conversations.model import Message, ModelCallRecord, NewMessage, StoredTurn, Trace, TraceKind, TurnScope
from punchlist.conversations.service import (
    MAX_MESSAGE_LENGTH,
    MAX_TITLE_LENGTH,
    conversation_change,
    end_turn,
    set_turn_owner,
)
from punchlist.errors import Conflict, InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.kernel.ids import new_id
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

PAUSE: Final = "pause"
"""The kind of the message that says why a turn waits."""


class TurnAlreadyEnded(Conflict):
    """Somebody has ended the turn; whoever works on it has to stop."""


class TurnWriter:
    def __init__(self, store: Store, scope: TurnScope, owner: str | None = None) -> None:
        """`owner` is the process that writes; when another has taken the turn, it has to stop."""
        self._store = store
        self._scope = scope
        self._owner = owner

    def write(self, said: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        """Messages in their order, and the call to a model that the last of them came from."""
        if said or trace:
            with self._store.write() as tx:
                self._lock(tx)
                self._check(tx)
                check_content(said)
                self._write(tx, said, trace)

    def check_open(self) -> None:
        """Raises `TurnOver` when there is no more to write."""
        with self._store.read() as tx:
            self._check(tx)

    def _check(self, tx: Transaction) -> None:
        turn = conversation_repository.find_turn(tx, self._scope.turn_id)
        if turn is None or not turn.open:
            raise TurnAlreadyEnded(f"somebody ended the turn ({turn.end_reason if turn else 'it is gone'})")
        if self._taken(turn):
            raise TurnAlreadyEnded(f"process {turn.owner} has taken the turn over")

    def _taken(self, turn: StoredTurn) -> bool:
        return self._owner is not None and turn.owner not in (None, self._owner)

    def suspend(self, said: Sequence[NewMessage], why: str) -> None:
        """Nobody works on the turn until what it waits for is there."""
        with self._store.write() as tx:
            self._lock(tx)
            turn = conversation_repository.find_turn(tx, self._scope.turn_id)
            assert turn is not None
            if self._taken(turn):
                return
            check_content(said)
            self._write(tx, [*said, NewMessage("system", PAUSE, why)])
            if turn.open:
                set_turn_owner(
                    tx, self._scope, turn, TurnAction.SUSPEND, None, reason=text.excerpt(why, MAX_TITLE_LENGTH)
                )

    def end(self, said: Sequence[NewMessage], reason: str) -> None:
        """The turn is over; one that somebody has ended already stays as it is."""
        with self._store.write() as tx:
            self._lock(tx)
            turn = conversation_repository.find_turn(tx, self._scope.turn_id)
            assert turn is not None
            if self._taken(turn):
                return
            if said:
                check_content(said)
                self._write(tx, said)
            if turn.open:
                end_turn(tx, self._scope, turn, reason[:MAX_TITLE_LENGTH])

    def read(self) -> list[Message]:
        with self._store.read() as tx:
            return [Message(*row) for row in tx.all(conversation_repository.OF_TURN, turn_id=self._scope.turn_id)]

    def _lock(self, tx: Transaction) -> None:
        if not tx.exclusive and conversation_repository.lock_conversation(tx, self._scope.conversation_id) is None:
            raise NotFound(f"There is no session {self._scope.conversation_id!r} any more.")

    def write_in(self, tx: Transaction, said: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        """As `write`, inside of somebody's transaction that has locked the conversation; after
        `check_content`, since there it is too late to refuse."""
        self._write(tx, said, trace)

    def _write(self, tx: Transaction, said: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        scope = self._scope
        added = conversation_repository.add_messages(tx, scope.conversation_id, scope.turn_id, said) if said else []
        changes = [
            conversation_change(
                scope, "say", message.id, f"message of {message.role}", conversation_repository.fingerprint(message)
            )
            for message in added
        ]
        if trace is not None:
            id = new_id()
            row = Trace(id, scope.conversation_id, scope.turn_id, TraceKind.MODEL.value, *trace)
            tx.run(conversation_repository.INSERT_TRACE, **row._asdict())
            if changes:
                changes[-1].data["trace"] = id
            else:
                changes.append(
                    conversation_change(scope, "trace", id, "model call", {"name": row.name, "turn_id": row.turn_id})
                )
        event_log.append(tx, *changes)


def check_content(said: Sequence[NewMessage]) -> None:
    for line in said:
        if problem := text.raw_problem(line.content, max_length=MAX_MESSAGE_LENGTH):
            raise InvalidInput(f"content: {problem}")
