"""Conversations and turns: create, read, end, and add messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from punchlist.conversations import repository
from punchlist.conversations.lifecycle import TURN, TurnAction, TurnStatus
from punchlist.conversations.model import (
    ChatEntry,
    Conversation,
    LastMessage,
    Message,
    MessageRole,
    NewMessage,
    Scope,
    StoredSummary,
    StoredTurn,
    TurnScope,
)
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from punchlist.kernel import text
from punchlist.kernel.events import Change, canonical_json
from punchlist.kernel.ids import new_id
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.processes import is_running
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.storage.transitions import transition

Fence = Callable[[Transaction], None]
"""Called with the conversation locked; raises if another worker has replaced the caller."""
MAX_ID_LENGTH: Final = 200
MAX_TITLE_LENGTH: Final = 500
MAX_MESSAGE_LENGTH: Final = 1_000_000


def stream(conversation_id: str) -> str:
    return f"conversation:{conversation_id}"


def turn_stream(turn_id: str) -> str:
    """Holds no events: a name for `Transaction.mark_appended`, which tells this process that a turn has changed."""
    return f"turn:{turn_id}"


class Conversations:
    def __init__(self, store: Store) -> None:
        self._store = store

    # --- conversations -----------------------------------------------------------------------------------------

    def ensure(
        self,
        tx: Transaction,
        scope: Scope,
        *,
        title: str = "",
        metadata: dict[str, Any] | None = None,
        reason: str = "",
    ) -> Conversation:
        """The conversation of `scope`, created if it does not exist; locked until the caller's transaction ends."""
        found = repository.lock_conversation(tx, scope.conversation_id)
        if found:
            return found
        _check_id(scope.conversation_id)
        if problem := text.line_problem(title, max_length=MAX_TITLE_LENGTH, min_length=0):
            raise InvalidInput(f"title: {problem}")
        created = Conversation(scope.conversation_id, title.strip(), canonical_json(metadata or {}), tx.now())
        if not repository.add_conversation(tx, created):
            # Another process created it at the same moment.
            return repository.lock_conversation(tx, created.id) or created
        event_log.append(tx, conversation_change(scope, "start", created.id, reason or "first use", created._asdict()))
        return created

    def get(self, conversation_id: str) -> Conversation:
        with self._store.read() as tx:
            found = repository.find_conversation(tx, conversation_id)
        if not found:
            raise NotFound(f"There is no session {text.excerpt(conversation_id)!r}. `punchlist sessions` lists them.")
        return found

    # --- turns -------------------------------------------------------------------------------------------------

    def open_turn(self, scope: Scope, *, reason: str = "first use") -> StoredTurn:
        """The open turn of a conversation; started if there is none."""
        with self._store.read() as tx:
            found = repository.find_open_turn(tx, scope.conversation_id)
        if found:
            return found
        with self._store.write() as tx:
            return self.ensure_turn(tx, scope, reason=reason)

    def current_turn(self, conversation_id: str, run_id: str | None = None) -> StoredTurn | None:
        """The open turn of a session, or of a run in a chat; None if no turn is open."""
        with self._store.read() as tx:
            return repository.find_open_turn(tx, conversation_id, run_id)

    def ensure_turn(
        self, tx: Transaction, scope: Scope, *, reason: str = "first use", run_id: str | None = None
    ) -> StoredTurn:
        """As `open_turn`, in the caller's transaction."""
        self.ensure(tx, scope)
        found = repository.find_open_turn(tx, scope.conversation_id, run_id)
        return found or self._begin(tx, scope, reason, run_id=run_id)

    def begin_turn(
        self,
        scope: Scope,
        *,
        reason: str,
        begun: str | None = None,
        parent: str | None = None,
        owner: str | None = None,
        request: NewMessage | None = None,
        abandoned: bool = False,
        fence: Fence | None = None,
        run_id: str | None = None,
    ) -> StoredTurn:
        """Start a turn: below `parent`, or after ending the open one of the session or the run.

        `reason` is why the open turn ends, and why the new one begins unless `begun` says that. `owner` is the process
        that works on the new turn, `request` its first message. `abandoned` means that no process works
        on the open turn, whatever its owner says.
        """
        with self._store.write() as tx:
            self.ensure(tx, scope)
            if fence is not None:
                fence(tx)
            if parent is not None:
                run_id = self._own_turn(tx, scope, parent).run_id
            elif open_turn := repository.find_open_turn(tx, scope.conversation_id, run_id):
                if not abandoned:
                    check_unowned(open_turn)
                end_turn(tx, scope, open_turn, reason)
            turn = self._begin(tx, scope, begun or reason, parent, owner, run_id)
            if request is not None:
                [message] = repository.add_messages(tx, scope.conversation_id, turn.id, [request])
                event_log.append(tx, message_change(scope, message))
            return turn

    def take_turn(
        self, scope: Scope, turn_id: str, owner: str, *, abandoned: bool = False, fence: Fence | None = None
    ) -> StoredTurn:
        """Resume a turn that no process works on. `abandoned` means that the caller knows its owner is dead."""
        with self._store.write() as tx:
            self.ensure(tx, scope)
            if fence is not None:
                fence(tx)
            turn = self._own_turn(tx, scope, turn_id)
            if not turn.open:
                raise IllegalTransition(f"Turn {turn_id} has ended ({turn.end_reason}).")
            if not abandoned:
                check_unowned(turn)
            return set_turn_owner(tx, scope, turn, TurnAction.TAKE, owner, reason=f"process {owner} resumes it")

    def end_turn(self, scope: Scope, *, reason: str, run_id: str | None = None) -> StoredTurn | None:
        """End the open turn; its unfinished items keep their status (T14). None if no turn is open."""
        if problem := text.line_problem(reason, max_length=MAX_TITLE_LENGTH):
            raise InvalidInput(f"reason: {problem}")
        with self._store.write() as tx:
            if not repository.lock_conversation(tx, scope.conversation_id):
                return None
            turn = repository.find_open_turn(tx, scope.conversation_id, run_id)
            return end_turn(tx, scope, turn, reason.strip()) if turn else None

    def turn(self, turn_id: str) -> StoredTurn:
        with self._store.read() as tx:
            found = repository.find_turn(tx, turn_id)
        if found is None:
            raise NotFound(f"There is no turn {text.excerpt(turn_id)!r}.")
        return found

    def begin_reason(self, turn: StoredTurn) -> str:
        """Why a turn was begun."""
        with self._store.read() as tx:
            row = tx.one(repository.BEGIN_REASON, stream=stream(turn.conversation_id), turn_id=turn.id)
        return str(row[0]) if row else ""

    def turns(self, conversation_id: str, limit: int = 50) -> list[StoredTurn]:
        """Newest first."""
        with self._store.read() as tx:
            return repository.newest_turns(tx, conversation_id, limit)

    def last_turn(self, conversation_id: str) -> StoredTurn | None:
        """The newest turn that is not a worker's."""
        with self._store.read() as tx:
            return repository.last_top_turn(tx, conversation_id)

    def child_turns(self, scope: TurnScope) -> list[StoredTurn]:
        """The turns directly below a turn, newest first."""
        with self._store.read() as tx:
            return repository.child_turns(tx, scope.conversation_id, scope.turn_id)

    def _begin(
        self,
        tx: Transaction,
        scope: Scope,
        reason: str,
        parent: str | None = None,
        owner: str | None = None,
        run_id: str | None = None,
    ) -> StoredTurn:
        status = TURN.advance(NEW, TurnAction.BEGIN, scope.actor.role)
        turn = StoredTurn(new_id(), scope.conversation_id, parent, scope.agent_id, None, tx.now(), None, owner, run_id)
        repository.add_turn(tx, turn)
        begun = conversation_change(scope, TurnAction.BEGIN, turn.id, reason, turn._asdict(), to_status=status)
        event_log.append(tx, begun)
        return turn

    def _own_turn(self, tx: Transaction, scope: Scope, turn_id: str) -> StoredTurn:
        turn = repository.find_turn(tx, turn_id)
        if not turn or turn.conversation_id != scope.conversation_id:
            raise NotFound(f"Session {scope.conversation_id!r} has no turn {text.excerpt(turn_id)!r}.")
        return turn

    # --- messages -----------------------------------------------------------------------------------

    def add_message(
        self, scope: Scope, role: MessageRole, content: str, *, kind: str = "text", turn_id: str | None = None
    ) -> Message:
        if problem := text.raw_problem(content, max_length=MAX_MESSAGE_LENGTH):
            raise InvalidInput(f"content: {problem}")
        with self._store.write() as tx:
            self.ensure(tx, scope)
            if turn_id is not None:
                self._own_turn(tx, scope, turn_id)
            message = repository.add_message(tx, scope.conversation_id, role, content, kind=kind, turn_id=turn_id)
            event_log.append(tx, message_change(scope, message))
            return message

    def messages(self, conversation_id: str) -> list[Message]:
        with self._store.read() as tx:
            return repository.all_messages(tx, conversation_id)

    def messages_outside_turns(self, conversation_id: str, limit: int = 200) -> list[Message]:
        """The last messages that were posted outside any turn, oldest first."""
        with self._store.read() as tx:
            return repository.messages_outside_turns(tx, conversation_id, limit)[::-1]

    def turn_messages(self, turn_id: str) -> list[Message]:
        with self._store.read() as tx:
            return repository.turn_messages(tx, turn_id)

    def recent(self, conversation_id: str, limit: int) -> list[Message]:
        """The last messages of top-level turns, oldest first."""
        with self._store.read() as tx:
            found = repository.recent_messages(tx, conversation_id, limit)
        return found[::-1]

    def earlier_texts(self, conversation_id: str, turns: int, except_turn: str) -> list[ChatEntry]:
        """The messages of the last top-level turns, without results of calls, turn by turn, oldest first."""
        with self._store.read() as tx:
            found = repository.newest_top_turns(tx, conversation_id, except_turn, turns)
            groups = [[ChatEntry(text, turn) for text in repository.turn_texts(tx, turn.id)] for turn in found]
        ordered = sorted(filter(None, groups), key=lambda group: group[0].message.position)
        return [entry for group in ordered for entry in group]

    def entries_of_agent(
        self, conversation_id: str, agent: str, after: int, except_turn: str, limit: int
    ) -> list[ChatEntry]:
        """A page of a conversation that several agents share: the agent's own turns, and the notices for all."""
        with self._store.read() as tx:
            return repository.entries_of_agent(tx, conversation_id, agent, after, except_turn, limit)

    def first_position(self, turn_id: str) -> int | None:
        """The position of a turn's first message; None if it has none yet."""
        with self._store.read() as tx:
            return repository.first_position(tx, turn_id)

    def summary(self, conversation_id: str, agent: str) -> StoredSummary | None:
        with self._store.read() as tx:
            return repository.find_summary(tx, conversation_id, agent)

    def save_summary(self, conversation_id: str, agent: str, position: int, content: str) -> None:
        """Derived from the messages, so it is no event of the chat."""
        with self._store.write() as tx:
            tx.run(
                repository.SAVE_SUMMARY,
                conversation_id=conversation_id,
                agent_id=agent,
                position=position,
                content=content,
                updated_at=tx.now(),
            )

    def last_message(self, conversation_id: str) -> LastMessage | None:
        with self._store.read() as tx:
            return repository.last_message(tx, conversation_id)

    def about_todo(self, todo_id: str, *, since: str = "", limit: int = 200) -> list[Message]:
        """The last reports, errors and feedback about a mission todo, oldest first."""
        with self._store.read() as tx:
            return repository.about_todo(tx, todo_id=todo_id, since=since, limit=limit)[::-1]


PARENT_ENDED: Final = "cancelled: the turn that delegated it has ended"


def end_turn(tx: Transaction, scope: Scope, turn: StoredTurn, reason: str) -> StoredTurn:
    """End a turn and the turns of its workers, with their open calls. The caller has locked its conversation.

    A worker's turn is open here if its process died before the turn had a message, so that it could not be resumed, or
    if the turn is ended from outside.
    """
    for child in repository.open_child_turns(tx, turn):
        end_turn(tx, scope, child, PARENT_ENDED)
    if repository.has_open_calls(tx, turn):
        # The only import of a package above: the calls must end in the transaction that ends their turn.
        from punchlist.toolcalls.call_endings import end_calls_of_turn

        end_calls_of_turn(tx, turn.id, scope.actor, reason)
    tx.mark_appended(turn_stream(turn.id))
    changes = {"ended_at": tx.now(), "end_reason": reason, "owner": None}
    return _advance_turn(tx, scope, turn, TurnAction.END, reason, changes)


def set_turn_owner(
    tx: Transaction, scope: Scope, turn: StoredTurn, action: TurnAction, owner: str | None, *, reason: str
) -> StoredTurn:
    """Record the process that works on a turn; None when no process does. The caller has locked its conversation."""
    return _advance_turn(tx, scope, turn, action, reason, {"owner": owner})


def _advance_turn(
    tx: Transaction, scope: Scope, turn: StoredTurn, action: TurnAction, reason: str, changes: dict[str, Any]
) -> StoredTurn:
    return transition(
        tx,
        TURN,
        action,
        scope.actor.role,
        lock=lambda _: turn,
        update=repository.update_turn,
        event=lambda before, after, _: conversation_change(
            scope, action, turn.id, reason, changes, from_status=before.status, to_status=after.status
        ),
        changes=changes,
    )


def check_unowned(turn: StoredTurn) -> None:
    """Raise if a process works on the turn: two of them must not."""
    if turn.owner is not None and is_running(turn.owner) is not False:
        raise Conflict(
            f"Process {turn.owner} works on turn {turn.id} of session {turn.conversation_id!r}. Leave it a message "
            "with `punchlist queue add`, work in another session (--session), or end the turn with "
            "`punchlist sessions end`."
        )


def _check_id(conversation_id: str) -> None:
    if problem := text.line_problem(conversation_id, max_length=MAX_ID_LENGTH):
        raise InvalidInput(f"session id: {problem}")
    if not re.fullmatch(r"[^\s]+", conversation_id):
        raise InvalidInput("session id: must not contain blanks")


def message_change(scope: Scope, message: Message) -> Change:
    """The event of a new message."""
    data = repository.fingerprint(message)
    return conversation_change(scope, "say", message.id, f"message of {message.role}", data)


def conversation_change(
    scope: Scope, action: str, subject: str, reason: str, data: dict[str, Any], **statuses: TurnStatus | None
) -> Change:
    """`statuses` are `from_status` and `to_status`."""
    return scope.change(stream(scope.conversation_id), action, subject, reason, data, **statuses)
