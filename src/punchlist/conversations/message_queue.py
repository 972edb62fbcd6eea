"""What a person says while the agent works: it waits, can be changed, and begins the next turn (S10).

A message is delivered in the transaction that begins its turn and puts it there as what was said. So
a process that dies has either delivered it, and the turn can be taken up again, or has not, and it
still waits. There is no moment in between, and of two processes only one finds it waiting.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.lifecycle import TurnAction
from punchlist.conversations.message_lifecycle import QUEUE, QueueAction, QueueStatus
from punchlist.conversations.model import MessageRole, Scope, StoredTurn
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations, set_turn_owner
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.kernel.events import Change
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.storage import event_log
from punchlist.storage.statements import Statement, columns, insert, update
from punchlist.storage.store import Store, Transaction
from punchlist.storage.transitions import transition

REASONS: Final = {
    QueueAction.QUEUE: "said while the agent works",
    QueueAction.EDIT: "said otherwise",
    QueueAction.DELIVER: "the agent is idle",
    QueueAction.WITHDRAW: "taken back",
}


class QueuedMessage(NamedTuple):
    """A row of `queued_messages`."""

    id: str
    conversation_id: str
    position: int
    content: str
    status: str
    said_by: str
    created_at: str
    changed_at: str | None
    turn_id: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "status": self.status,
            "content": self.content,
            "saidBy": self.said_by,
            "createdAt": self.created_at,
            "changedAt": self.changed_at,
            "turnId": self.turn_id,
        }


class DeliveredMessage(NamedTuple):
    """The turn that a message has begun. The message is its first, and on record."""

    turn: StoredTurn
    queued: QueuedMessage


_OF_CONVERSATION: Final = "conversation_id = :conversation_id"
_WAITS: Final = f"status = '{QueueStatus.QUEUED}'"
_ROW: Final = f"SELECT {columns(QueuedMessage._fields)} FROM queued_messages WHERE {_OF_CONVERSATION}"
_CHANGING: Final = ("content", "status", "changed_at", "turn_id")

INSERT: Final = insert("queued_messages", QueuedMessage._fields)
BY_ID: Final = Statement(f"{_ROW} AND id = :id")
WAITING: Final = Statement(f"{_ROW} AND {_WAITS} ORDER BY position LIMIT :most")
BEGAN: Final = Statement(f"SELECT id FROM queued_messages WHERE {_OF_CONVERSATION} AND turn_id = :turn_id LIMIT 1")
ALL_OF: Final = Statement(f"{_ROW} ORDER BY position")
LAST_POSITION: Final = Statement(
    f"SELECT position FROM queued_messages WHERE {_OF_CONVERSATION} ORDER BY position DESC LIMIT 1"
)
UPDATE: Final = update("queued_messages", _CHANGING, where=f"id = :queued_id AND {_WAITS}")
_EVERY: Final = 1_000_000


def stream(conversation_id: str) -> str:
    return f"queue:{conversation_id}"


def all_messages(tx: Transaction, conversation_id: str) -> list[QueuedMessage]:
    """Also those that were delivered or withdrawn."""
    return [QueuedMessage(*row) for row in tx.all(ALL_OF, conversation_id=conversation_id)]


def event_data(queued: QueuedMessage) -> dict[str, Any]:
    """What the trail keeps: enough to prove the content, not a second copy of it."""
    kept = {name: value for name, value in queued._asdict().items() if name not in ("content", "status")}
    return {**kept, "sha256": hashlib.sha256(queued.content.encode()).hexdigest()}


class MessageQueue:
    def __init__(self, store: Store, conversations: Conversations | None = None) -> None:
        self._store = store
        self._conversations = conversations or Conversations(store)

    def pending(self, conversation_id: str) -> list[QueuedMessage]:
        """Those that wait, in the order in which they will be delivered."""
        with self._store.read() as tx:
            return _waiting(tx, conversation_id)

    def started_turn(self, conversation_id: str, turn_id: str) -> bool:
        """Whether a turn was begun by a message that had waited."""
        with self._store.read() as tx:
            return tx.one(BEGAN, conversation_id=conversation_id, turn_id=turn_id) is not None

    def find(self, conversation_id: str, wanted: str) -> QueuedMessage:
        """By its id, or by the end of that, as long as only one that waits ends so."""
        with self._store.read() as tx:
            row = tx.one(BY_ID, id=wanted, conversation_id=conversation_id)
            if row is not None:
                return QueuedMessage(*row)
            ends = [one for one in _waiting(tx, conversation_id) if wanted and one.id.endswith(wanted)]
        if len(ends) > 1:
            raise InvalidInput(f"{text.excerpt(wanted)!r} is the end of {len(ends)} ids; give more of it.")
        if not ends:
            raise NotFound(_no_such(conversation_id, wanted))
        return ends[0]

    def add(self, scope: Scope, content: str) -> QueuedMessage:
        """Put a message at the queue's end."""
        content = _checked(content)
        with self._store.write() as tx:
            status = QUEUE.advance(NEW, QueueAction.QUEUE, scope.actor.role)
            self._conversations.ensure(tx, scope)
            last = tx.one(LAST_POSITION, conversation_id=scope.conversation_id)
            position = last[0] + 1 if last else 1
            made = QueuedMessage(
                new_id(), scope.conversation_id, position, content, status.value, str(scope.actor), tx.now(), None, None
            )
            tx.run(INSERT, **made._asdict())
            event_log.append(tx, _change(scope, QueueAction.QUEUE, made, event_data(made)))
            return made

    def edit(self, scope: Scope, id: str, content: str) -> QueuedMessage:
        """Say it otherwise; it keeps its place."""
        content = _checked(content)
        with self._store.write() as tx:
            found = self._locked(tx, scope, id)
            return self._step(tx, scope, found, QueueAction.EDIT, content=content)

    def withdraw(self, scope: Scope, id: str) -> QueuedMessage:
        with self._store.write() as tx:
            return self._step(tx, scope, self._locked(tx, scope, id), QueueAction.WITHDRAW)

    def deliver(self, scope: Scope, *, owner: str | None = None) -> DeliveredMessage | None:
        """Begin a turn with the first that waits; None when none does, or while a turn is open.

        `owner` is the process that works on the turn.
        """
        if not self.pending(scope.conversation_id):
            return None
        with self._store.write() as tx:
            return self.deliver_next(tx, scope, owner=owner)

    def deliver_next(self, tx: Transaction, scope: Scope, *, owner: str | None = None) -> DeliveredMessage | None:
        """As `deliver`, inside a transaction."""
        here = scope.conversation_id
        if (
            conversation_repository.lock_conversation(tx, here) is None
            or conversation_repository.find_open_turn(tx, here) is not None
        ):
            return None
        first = _waiting(tx, here, most=1)
        if not first:
            return None
        turn = self._conversations.ensure_turn(tx, scope, reason="a queued message")
        if owner is not None:
            turn = set_turn_owner(tx, scope, turn, TurnAction.TAKE, owner, reason=f"process {owner} works on it")
        message = conversation_repository.add_message(
            tx, here, MessageRole.USER.value, first[0].content, turn_id=turn.id
        )
        queued = self._step(
            tx, scope, first[0], QueueAction.DELIVER, conversation_repository.fingerprint(message), turn_id=turn.id
        )
        return DeliveredMessage(turn, queued)

    def _locked(self, tx: Transaction, scope: Scope, id: str) -> QueuedMessage:
        conversation_repository.lock_conversation(tx, scope.conversation_id)
        row = tx.one(BY_ID, id=id, conversation_id=scope.conversation_id)
        if row is None:
            raise NotFound(_no_such(scope.conversation_id, id))
        return QueuedMessage(*row)

    def _step(
        self,
        tx: Transaction,
        scope: Scope,
        found: QueuedMessage,
        action: QueueAction,
        also: dict[str, Any] | None = None,
        **to: Any,
    ) -> QueuedMessage:
        """Take a message one step along its lifecycle: its row, and the event."""
        return transition(
            tx,
            QUEUE,
            action,
            scope.actor.role,
            lock=lambda _: found,
            update=_update,
            event=lambda before, after, _: _change(
                scope, action, after, {**event_data(after), **(also or {})}, came_from=before.status
            ),
            changes={"changed_at": tx.now(), **to},
        )


def _update(tx: Transaction, before: QueuedMessage, changes: dict[str, Any]) -> QueuedMessage | None:
    after = before._replace(**{**changes, "status": changes["status"].value})
    values = {name: getattr(after, name) for name in _CHANGING}
    return after if tx.run(UPDATE, queued_id=before.id, **values) else None


def _waiting(tx: Transaction, conversation_id: str, most: int = _EVERY) -> list[QueuedMessage]:
    return [QueuedMessage(*row) for row in tx.all(WAITING, conversation_id=conversation_id, most=most)]


def _checked(content: str) -> str:
    if problem := text.raw_problem(content, max_length=MAX_MESSAGE_LENGTH):
        raise InvalidInput(f"content: {problem}")
    if not content.strip():
        raise InvalidInput("content: must not be empty")
    return content.strip()


def _no_such(conversation_id: str, wanted: str) -> str:
    return (
        f"Session {text.excerpt(conversation_id)!r} has no queued message {text.excerpt(wanted)!r}. "
        "`punchlist queue` lists those that wait."
    )


def _change(
    scope: Scope, action: QueueAction, after: QueuedMessage, data: dict[str, Any], came_from: str | None = None
) -> Change:
    return Change(
        stream=stream(scope.conversation_id),
        conversation_id=scope.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=after.id,
        from_status=came_from,
        to_status=after.status,
        reason=REASONS[action],
        data=data,
    )
