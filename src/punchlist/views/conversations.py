"""The list of conversations by their last activity, and the status line of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from punchlist.agent.resume import original_request
from punchlist.checklist.repository import find_checklist
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Conversation, MessageRole, StoredTurn
from punchlist.conversations.status_repository import TurnStatusRow, find_status
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.processes import is_running
from punchlist.kernel.text import excerpt
from punchlist.storage.store import Store, Transaction
from punchlist.views import conversation_list_repository as repository
from punchlist.views.conversation_list_repository import ConversationActivity
from punchlist.views.plain_text import message_text, plain_line

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
_NEWEST: Final = 2**62
_LAST_MESSAGES: Final = 6
ConversationState = Literal["working", "waiting", "interrupted", "ended", "new"]
"""Waiting: the turn is open, and nothing works on it until a wait is over. Interrupted: its process died."""


@dataclass(frozen=True, slots=True)
class ListProgress:
    """The plan of the open or last turn and the checklist, together."""

    total: int = 0
    """Without cancelled and dropped items, as `TodoList.progress`."""
    open: int = 0
    done: int = 0
    in_progress: str | None = None
    """The title, or the active form of a checklist item."""


@dataclass(frozen=True, slots=True)
class ConversationLine:
    id: str
    title: str
    """Its title, else the beginning of its first request; empty if it has neither."""
    created_at: str
    active_at: str
    state: ConversationState
    turn: StoredTurn | None
    """The open turn, else the last one."""
    items: ListProgress
    approvals: int
    """Those that wait for an answer."""
    last_text: str = ""
    """The beginning of the last thing that a person or an agent wrote, on one line."""

    def as_json(self) -> dict[str, Any]:
        names = ("id", "parent_turn_id", "started_at", "ended_at", "end_reason")
        turn = {**camel_json(self.turn, *names), "agent": self.turn.agent_id} if self.turn else None
        fields = camel_json(self, "id", "title", "created_at", "active_at", "state", "approvals", "last_text")
        return {**fields, "turn": turn, "items": camel_json(self.items)}


@dataclass(frozen=True, slots=True)
class ConversationList:
    conversations: Sequence[ConversationLine]
    cursor: str | None
    """None on the last page."""

    def as_json(self) -> dict[str, Any]:
        return {"items": [line.as_json() for line in self.conversations], "nextCursor": self.cursor}


def read_conversations(
    store: Store, *, search: str = "", limit: int = DEFAULT_LIMIT, cursor: str | None = None
) -> ConversationList:
    """Conversations by their last activity, newest first; with `search`, those with matching text, best first."""
    limit = max(1, min(limit, MAX_LIMIT))
    if search.strip():
        return _matching(store, search, limit, cursor)
    if cursor is not None and not (cursor.isdecimal() and len(cursor) < 19):
        raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
    with store.read() as tx:
        found = repository.conversations(tx, before=int(cursor or _NEWEST), most=limit + 1)
        lines = [_line(tx, conversation) for conversation in found[:limit]]
    return ConversationList(lines, str(found[limit - 1].last_event) if len(found) > limit else None)


def read_conversation(store: Store, id: str) -> ConversationLine:
    """One conversation, as in the list."""
    with store.read() as tx:
        found = repository.conversation_activity(tx, id)
        if found is None:
            raise NotFound(f"There is no conversation {excerpt(id)!r}.")
        return _line(tx, found)


def _matching(store: Store, search: str, limit: int, cursor: str | None) -> ConversationList:
    from punchlist.views.search import read_search

    page = read_search(store, search, limit=limit, cursor=cursor)
    ids = dict.fromkeys(hit.conversation_id for hit in page.hits)
    with store.read() as tx:
        found = [repository.conversation_activity(tx, id) for id in ids]
        return ConversationList([_line(tx, each) for each in found if each is not None], page.cursor)


def read_title(store: Store, conversation: Conversation, *, length: int = 160) -> str:
    """The title, else the beginning of the first request, else the id."""
    with store.read() as tx:
        title = plain_line(_title(tx, conversation.id, conversation.title))
    return excerpt(title, length) if title else conversation.id


def _title(tx: Transaction, id: str, title: str) -> str:
    return title or original_request(repository.first_request(tx, id) or "")


def _line(tx: Transaction, conversation: ConversationActivity) -> ConversationLine:
    turn = conversation_repository.last_top_turn(tx, conversation.id)
    title = _title(tx, conversation.id, conversation.title)
    return ConversationLine(
        conversation.id,
        excerpt(plain_line(title), repository.MAX_TITLE),
        conversation.created_at,
        repository.event_time(tx, conversation.last_event) or conversation.created_at,
        turn_state(turn),
        turn,
        list_progress(tx, conversation.id, turn),
        repository.waiting_approvals(tx, conversation.id) or 0,
        _last_text(tx, conversation.id),
    )


def _last_text(tx: Transaction, conversation_id: str) -> str:
    """Of the last messages, the newest with text; notices are only read where no person and no agent wrote."""
    messages = repository.last_messages(tx, conversation_id=conversation_id, most=_LAST_MESSAGES)
    written = [message for message in messages if message.role in (MessageRole.USER, MessageRole.ASSISTANT)]
    for message in written or messages:
        if text := message_text(message):
            return excerpt(plain_line(text), repository.MAX_TITLE)
    return ""


def turn_state(turn: StoredTurn | None) -> ConversationState:
    if turn is None:
        return "new"
    if not turn.open:
        return "ended"
    if turn.owner is None:
        return "waiting"
    return "interrupted" if is_running(turn.owner) is False else "working"


def list_progress(tx: Transaction, conversation_id: str, turn: StoredTurn | None) -> ListProgress:
    _, is_open, done = (repository.plan_counts(tx, turn.id) if turn else None) or (0, 0, 0)
    current = repository.plan_in_progress(tx, turn.id) if turn and is_open else None
    items = find_checklist(tx, conversation_id).items
    active = next((item.active_form for item in items if item.status == "in_progress"), None)
    return ListProgress(
        is_open + done + sum(item.status not in ("cancelled", "dropped") for item in items),
        is_open + sum(item.is_open for item in items),
        done + sum(item.status == "completed" for item in items),
        current or active,
    )


@dataclass(frozen=True, slots=True)
class TurnStatusLine:
    """What a status line shows (C15)."""

    conversation_id: str
    state: ConversationState
    turn: StoredTurn | None
    status: TurnStatusRow | None
    """Of the open or last turn; None if its owner has stored nothing, such as a third-party agent."""
    items: ListProgress
    approvals: int
    queued: int


def read_status(store: Store, conversation_id: str) -> TurnStatusLine:
    """The status line of a conversation: of its open turn, else of the last one."""
    with store.read() as tx:
        if conversation_repository.find_conversation(tx, conversation_id) is None:
            raise NotFound(f"There is no session {excerpt(conversation_id)!r}. `punchlist sessions` lists them.")
        turn = conversation_repository.last_top_turn(tx, conversation_id)
        return TurnStatusLine(
            conversation_id,
            turn_state(turn),
            turn,
            find_status(tx, turn.id) if turn else None,
            list_progress(tx, conversation_id, turn),
            repository.waiting_approvals(tx, conversation_id) or 0,
            repository.queued_count(tx, conversation_id) or 0,
        )
