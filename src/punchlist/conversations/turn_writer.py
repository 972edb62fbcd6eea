"""Writes the messages and traces of one turn, for the process that works on it.

A model's reply, its trace and the messages before it are one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from punchlist.conversations import repository
from punchlist.conversations.lifecycle import TurnAction
from punchlist.conversations.model import Message, ModelCallRecord, NewMessage, StoredTurn, Trace, TurnScope
from punchlist.conversations.service import (
    MAX_MESSAGE_LENGTH,
    MAX_TITLE_LENGTH,
    conversation_change,
    end_turn,
    message_change,
    set_turn_owner,
)
from punchlist.errors import Conflict, InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.kernel.ids import new_id
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

PAUSE: Final = "pause"
"""The kind of the message that says why a turn is suspended."""


_MODEL_CALL: Final = "model"
"""The kind of a trace."""


class TurnAlreadyEnded(Conflict):
    """The turn has ended or another process has taken it; the worker on it must stop."""


class TurnWriter:
    def __init__(self, store: Store, scope: TurnScope, owner: str | None = None) -> None:
        """`owner` is the writing process; it must stop when another process has taken the turn."""
        self._store = store
        self._scope = scope
        self._owner = owner

    def write(self, messages: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        """Add messages in order, and the model call that produced the last one."""
        if messages or trace:
            with self._store.write() as tx:
                self._lock(tx)
                self._check(tx)
                check_content(messages, trace)
                self.write_in(tx, messages, trace)

    def write_in(self, tx: Transaction, messages: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
        """As `write`, in a transaction of the caller, who has locked the conversation and called `check_content`."""
        scope = self._scope
        added = repository.add_messages(tx, scope.conversation_id, scope.turn_id, messages) if messages else []
        changes = [message_change(scope, message) for message in added]
        if trace is not None:
            row = Trace(new_id(), scope.conversation_id, scope.turn_id, _MODEL_CALL, *trace)
            repository.add_trace(tx, row)
            if changes:
                changes[-1].data["trace"] = row.id
            else:
                data = {"name": row.name, "turn_id": row.turn_id}
                changes.append(conversation_change(scope, "trace", row.id, "model call", data))
        event_log.append(tx, *changes)

    def check_open(self) -> None:
        """Raise `TurnAlreadyEnded` if the turn takes no more messages from this process."""
        with self._store.read() as tx:
            self._check(tx)

    def suspend(self, messages: Sequence[NewMessage], why: str) -> None:
        """Release the turn until its wait is over."""
        with self._store.write() as tx:
            turn = self._locked_turn(tx)
            if self._taken(turn):
                return
            check_content(messages)
            self.write_in(tx, [*messages, NewMessage("system", PAUSE, why)])
            if turn.open:
                reason = text.excerpt(why, MAX_TITLE_LENGTH)
                set_turn_owner(tx, self._scope, turn, TurnAction.SUSPEND, None, reason=reason)

    def end(self, messages: Sequence[NewMessage], reason: str) -> None:
        """End the turn. A turn that has already ended keeps its reason."""
        with self._store.write() as tx:
            turn = self._locked_turn(tx)
            if self._taken(turn):
                return
            if messages:
                check_content(messages)
                self.write_in(tx, messages)
            if turn.open:
                end_turn(tx, self._scope, turn, reason[:MAX_TITLE_LENGTH])

    def read(self) -> list[Message]:
        with self._store.read() as tx:
            return repository.turn_messages(tx, self._scope.turn_id)

    def _lock(self, tx: Transaction) -> None:
        if not tx.exclusive and repository.lock_conversation(tx, self._scope.conversation_id) is None:
            raise NotFound(f"Session {self._scope.conversation_id!r} no longer exists.")

    def _locked_turn(self, tx: Transaction) -> StoredTurn:
        self._lock(tx)
        turn = repository.find_turn(tx, self._scope.turn_id)
        if turn is None:
            raise NotFound(
                f"Turn {self._scope.turn_id} is no longer in the database: another process has removed or replaced it."
            )
        return turn

    def _check(self, tx: Transaction) -> None:
        turn = repository.find_turn(tx, self._scope.turn_id)
        if turn is not None and turn.conversation_id != self._scope.conversation_id:
            raise NotFound(f"Session {self._scope.conversation_id!r} has no turn {self._scope.turn_id!r}.")
        if turn is None or not turn.open:
            raise TurnAlreadyEnded(f"the turn was ended elsewhere ({turn.end_reason if turn else 'deleted'})")
        if self._taken(turn):
            raise TurnAlreadyEnded(f"process {turn.owner} has taken over the turn")

    def _taken(self, turn: StoredTurn) -> bool:
        return self._owner is not None and turn.owner not in (None, self._owner)


def check_content(messages: Sequence[NewMessage], trace: ModelCallRecord | None = None) -> None:
    texts = [("content", message.content) for message in messages]
    if trace is not None:
        texts += [("name", trace.name), ("input", trace.input), ("output", trace.output), ("error", trace.error or "")]
    for name, value in texts:
        if problem := text.raw_problem(value, max_length=MAX_MESSAGE_LENGTH):
            raise InvalidInput(f"{name}: {problem}")
