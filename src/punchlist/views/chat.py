"""A chat: its messages before or after one of them, which runs are open in it, and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import ChatEntry, Conversation, QueuedMessage
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.directives.model import Directive
from punchlist.missions.directives.service import in_force
from punchlist.runs.model import Run
from punchlist.storage.store import Store, Transaction
from punchlist.views import activity_repository
from punchlist.views.chat_entries import entries_of

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 500
MAX_DISTANCE: Final = 5_000
"""Messages among which an earlier change of the list is looked for."""
_END: Final = 2**31 - 1


class ChatRequest(NamedTuple):
    """An approval or a question that waits for a person."""

    kind: str
    id: str
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class ChatPage:
    conversation: Conversation
    entries: Sequence[ChatEntry]
    """Oldest first."""
    earlier: bool
    """Whether there are messages before the first entry."""
    later: bool
    """Whether there are messages after the last entry."""
    runs: Sequence[Run]
    """The open runs of the chat, oldest first; one at a time works in it."""
    queued: Sequence[QueuedMessage]
    """Messages that wait for delivery."""
    requests: Sequence[ChatRequest]
    directives: Sequence[Directive]
    """Those that hold in the mission of the chat, oldest first."""

    def as_json(self) -> dict[str, Any]:
        fields = ("id", "turn_id", "position", "role", "kind", "content", "created_at", "posted_by", "todo_id")
        return {
            "conversation": camel_json(self.conversation, "id", "title", "created_at"),
            "messages": [
                {**camel_json(entry.message, *fields), "agent": entry.turn.agent_id if entry.turn else None}
                for entry in self.entries
            ],
            "earlier": self.earlier,
            "later": self.later,
            "runs": [camel_json(run, "id", "kind", "status", "agent", "todo_id", "why") for run in self.runs],
            "waiting": [message.as_json() for message in self.queued],
            "requests": [request._asdict() for request in self.requests],
            "directives": [camel_json(each, "number", "content", "holds_until") for each in self.directives],
        }


def read_chat(
    store: Store,
    conversation_id: str,
    *,
    before: int | None = None,
    after: int | None = None,
    limit: int = DEFAULT_LIMIT,
) -> ChatPage:
    """The newest messages, or those next to a message, which is named by its position."""
    if before is not None and after is not None:
        raise InvalidInput("before, after: only one of them can be given")
    limit = max(1, min(limit, MAX_LIMIT))
    with store.read() as tx:
        conversation = conversation_repository.find_conversation(tx, conversation_id)
        if conversation is None:
            raise NotFound(f"There is no session {excerpt(conversation_id)!r}.")
        near = {"conversation_id": conversation_id, "most": limit + 1}
        if after is not None:
            found = activity_repository.messages_after(tx, position=after, **near)
            messages, earlier, later = found[:limit], after > 0, len(found) > limit
        else:
            found = activity_repository.messages_before(tx, position=_END if before is None else before, **near)
            messages, earlier, later = found[:limit][::-1], len(found) > limit, before is not None
        return ChatPage(
            conversation,
            entries_of(tx, messages),
            earlier,
            later,
            activity_repository.open_runs_in_chat(tx, conversation_id),
            conversation_repository.queued_messages(tx, conversation_id, MAX_LIMIT),
            [ChatRequest(*row) for row in activity_repository.open_requests_in_chat(tx, conversation_id)],
            _directives(tx, conversation_id),
        )


def _directives(tx: Transaction, conversation_id: str) -> Sequence[Directive]:
    mission_id = activity_repository.mission_of_chat(tx, chat=conversation_id)
    mission = mission_repository.mission(tx, mission_id) if mission_id is not None else None
    return in_force(tx, mission, parse_timestamp(tx.now())) if mission is not None else []


def list_message_before(store: Store, conversation_id: str, position: int) -> str:
    """The newest message about a change of the list before a position; empty if none is near."""
    with store.read() as tx:
        found = activity_repository.list_message_before(
            tx, conversation_id=conversation_id, position=position, first=position - MAX_DISTANCE
        )
    return found or ""
