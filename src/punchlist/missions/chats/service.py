"""The chats of a mission: one for itself, and for each pillar one to plan in and one to work in (M1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Final

from punchlist.conversations import repository as conversation_records
from punchlist.conversations import service as conversations_service
from punchlist.conversations.model import Conversation, Message, MessageRole, NoticeKind, Scope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.events import canonical_json
from punchlist.kernel.text import raw_problem
from punchlist.missions.chats.model import ChatChannel
from punchlist.storage import event_log
from punchlist.storage.store import Transaction

# The kinds of messages that are posted to them.
TODO_DELEGATION: Final = NoticeKind.TODO_DELEGATION.value
TODO_RESULT: Final = NoticeKind.TODO_RESULT.value
TODO_ERROR: Final = NoticeKind.TODO_ERROR.value
TODO_FEEDBACK: Final = NoticeKind.TODO_FEEDBACK.value
RECOMMENDATION: Final = NoticeKind.RECOMMENDATION.value
PLANNING: Final = NoticeKind.PLANNING.value
DEADLINE_WARNING: Final = NoticeKind.DEADLINE_WARNING.value
ESCALATION: Final = NoticeKind.ESCALATION.value
REMINDER: Final = NoticeKind.REMINDER.value
CYCLE_REPORT: Final = NoticeKind.CYCLE_REPORT.value
WORKER_RESULT: Final = NoticeKind.WORKER_RESULT.value
NOTE: Final = NoticeKind.NOTE.value

_MOST_TRIES: Final = 1_000


def post(
    tx: Transaction,
    scope: Scope,
    conversation_id: str,
    kind: str,
    content: str,
    role: MessageRole = MessageRole.SYSTEM,
) -> Message:
    """Say something in a chat, inside a transaction; the chat is locked for its rest."""
    if problem := raw_problem(content, max_length=MAX_MESSAGE_LENGTH):
        raise InvalidInput(f"content: {problem}")
    if conversation_records.lock_conversation(tx, conversation_id) is None:
        raise NotFound(f"There is no session {conversation_id!r}.")
    message = conversation_records.add_message(tx, conversation_id, role.value, content, kind=kind)
    there = Scope(conversation_id, scope.actor)
    told = conversation_records.fingerprint(message)
    event_log.append(tx, conversations_service.conversation_change(there, "say", message.id, f"{kind} message", told))
    return message


def chat_metadata(
    channel: ChatChannel,
    mission_id: str,
    mission_slug: str,
    pillar_id: str | None = None,
    pillar_slug: str | None = None,
) -> dict[str, str]:
    told = {"channel": channel.value, "missionId": mission_id, "missionSlug": mission_slug}
    if pillar_id is not None and pillar_slug is not None:
        told |= {"pillarId": pillar_id, "pillarSlug": pillar_slug}
    return told


def create_chat(
    tx: Transaction,
    conversations: Conversations,
    scope: Scope,
    wanted_id: str,
    title: str,
    metadata: Mapping[str, str],
) -> Conversation:
    """A new conversation. Somebody may have one by that name already: then `-2` is added, and so on."""
    for id in _candidates(wanted_id):
        there = Scope(id, scope.actor)
        made = conversations.ensure(tx, there, title=title, metadata=dict(metadata), reason="a chat of the mission")
        # The metadata names the mission and the pillar, which are new: nobody else's is like it.
        if made.metadata == canonical_json(dict(metadata)):
            return made
    raise InvalidInput(f"slug: {_MOST_TRIES} sessions are called {wanted_id!r} already; choose another slug")


def chat_id(mission_slug: str, pillar_slug: str | None = None, *, todos: bool = False) -> str:
    parts = [f"mission-{mission_slug}", *([pillar_slug] if pillar_slug else []), *(["todos"] if todos else [])]
    return ".".join(parts)


def _candidates(wanted_id: str) -> Iterator[str]:
    numbered = (f"{wanted_id}-{number}" for number in count(2))
    return (id for _, id in zip(range(_MOST_TRIES), chain([wanted_id], numbered), strict=False))
