"""Messages that a person writes while the agent works: they wait, can be edited, and start the next turn (S10).

A message is delivered in the transaction that starts its turn and adds it there as the first message. A process that
dies has either delivered it, and the turn can be resumed, or has not, and the message is still queued. Of two
processes, only one delivers it.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from punchlist.conversations import repository
from punchlist.conversations.lifecycle import QUEUE, QueueAction, TurnAction
from punchlist.conversations.model import DeliveredMessage, MessageRole, QueuedMessage, Scope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations, set_turn_owner
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.kernel.events import Change
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.storage.transitions import transition

REASONS: Final = {
    QueueAction.QUEUE: "written while the agent works",
    QueueAction.EDIT: "edited",
    QueueAction.DELIVER: "the agent is idle",
    QueueAction.WITHDRAW: "withdrawn",
}


def stream(conversation_id: str) -> str:
    return f"queue:{conversation_id}"


def event_data(message: QueuedMessage) -> dict[str, Any]:
    """What events store about a queued message: a hash of the content instead of a second copy."""
    data = {name: value for name, value in message._asdict().items() if name not in ("content", "status")}
    return {**data, "sha256": hashlib.sha256(message.content.encode()).hexdigest()}


class MessageQueue:
    def __init__(self, store: Store, conversations: Conversations | None = None) -> None:
        self._store = store
        self._conversations = conversations or Conversations(store)

    def pending(self, conversation_id: str) -> list[QueuedMessage]:
        """Undelivered messages in the order of delivery."""
        with self._store.read() as tx:
            return repository.queued_messages(tx, conversation_id)

    def started_turn(self, conversation_id: str, turn_id: str) -> bool:
        """Whether a queued message started the turn."""
        with self._store.read() as tx:
            return repository.queued_message_started(tx, conversation_id, turn_id)

    def find(self, conversation_id: str, reference: str) -> QueuedMessage:
        """By id, or by a suffix that only one undelivered message has."""
        with self._store.read() as tx:
            if found := repository.find_queued(tx, conversation_id, reference):
                return found
            queued = repository.queued_messages(tx, conversation_id)
        matches = [message for message in queued if reference and message.id.endswith(reference)]
        if len(matches) > 1:
            raise InvalidInput(f"{text.excerpt(reference)!r} is the end of {len(matches)} ids; give more of it.")
        if not matches:
            raise _not_found(conversation_id, reference)
        return matches[0]

    def add(self, scope: Scope, content: str) -> QueuedMessage:
        content = _checked(content)
        with self._store.write() as tx:
            status = QUEUE.advance(NEW, QueueAction.QUEUE, scope.actor.role)
            self._conversations.ensure(tx, scope)
            added = QueuedMessage(
                id=new_id(),
                conversation_id=scope.conversation_id,
                position=repository.next_queue_position(tx, scope.conversation_id),
                content=content,
                status=status.value,
                said_by=str(scope.actor),
                created_at=tx.now(),
                changed_at=None,
                turn_id=None,
            )
            repository.add_queued(tx, added)
            event_log.append(tx, _change(scope, QueueAction.QUEUE, None, added, event_data(added)))
            return added

    def edit(self, scope: Scope, id: str, content: str) -> QueuedMessage:
        """Replace the content; the message keeps its position."""
        content = _checked(content)
        with self._store.write() as tx:
            return self._advance(tx, scope, self._locked(tx, scope, id), QueueAction.EDIT, content=content)

    def withdraw(self, scope: Scope, id: str) -> QueuedMessage:
        with self._store.write() as tx:
            return self._advance(tx, scope, self._locked(tx, scope, id), QueueAction.WITHDRAW)

    def deliver(self, scope: Scope, *, owner: str | None = None, run_id: str | None = None) -> DeliveredMessage | None:
        """Start a turn with the first queued message; None if the queue is empty or a turn is open.

        `owner` is the process that works on the turn, `run_id` the run that it belongs to.
        """
        if not self.pending(scope.conversation_id):
            return None
        with self._store.write() as tx:
            return self.deliver_next(tx, scope, owner=owner, run_id=run_id)

    def deliver_next(
        self, tx: Transaction, scope: Scope, *, owner: str | None = None, run_id: str | None = None
    ) -> DeliveredMessage | None:
        """As `deliver`, in the caller's transaction."""
        id = scope.conversation_id
        if repository.lock_conversation(tx, id) is None or repository.find_open_turn(tx, id, run_id) is not None:
            return None
        first = next(iter(repository.queued_messages(tx, id, limit=1)), None)
        if first is None:
            return None
        turn = self._conversations.ensure_turn(tx, scope, reason="a queued message", run_id=run_id)
        if owner is not None:
            turn = set_turn_owner(tx, scope, turn, TurnAction.TAKE, owner, reason=f"process {owner} works on it")
        message = repository.add_message(tx, id, MessageRole.USER.value, first.content, turn_id=turn.id)
        extra = repository.fingerprint(message)
        return DeliveredMessage(turn, self._advance(tx, scope, first, QueueAction.DELIVER, extra, turn_id=turn.id))

    def _locked(self, tx: Transaction, scope: Scope, id: str) -> QueuedMessage:
        repository.lock_conversation(tx, scope.conversation_id)
        found = repository.find_queued(tx, scope.conversation_id, id)
        if found is None:
            raise _not_found(scope.conversation_id, id)
        return found

    def _advance(
        self,
        tx: Transaction,
        scope: Scope,
        message: QueuedMessage,
        action: QueueAction,
        extra: dict[str, Any] | None = None,
        **changes: Any,
    ) -> QueuedMessage:
        """`extra` is added to the event's data."""
        return transition(
            tx,
            QUEUE,
            action,
            scope.actor.role,
            lock=lambda _: message,
            update=repository.update_queued,
            event=lambda before, after, _: _change(
                scope, action, before.status, after, {**event_data(after), **(extra or {})}
            ),
            changes={"changed_at": tx.now(), **changes},
        )


def _checked(content: str) -> str:
    if problem := text.raw_problem(content, max_length=MAX_MESSAGE_LENGTH):
        raise InvalidInput(f"content: {problem}")
    if not content.strip():
        raise InvalidInput("content: must not be empty")
    return content.strip()


def _not_found(conversation_id: str, reference: str) -> NotFound:
    return NotFound(
        f"Session {text.excerpt(conversation_id)!r} has no queued message {text.excerpt(reference)!r}. "
        "`punchlist queue` lists the queued messages."
    )


def _change(
    scope: Scope, action: QueueAction, from_status: str | None, after: QueuedMessage, data: dict[str, Any]
) -> Change:
    statuses = {"from_status": from_status, "to_status": after.status}
    return scope.change(stream(scope.conversation_id), action, after.id, REASONS[action], data, **statuses)
