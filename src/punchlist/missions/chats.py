"""The chats of a mission: one for the mission, and for each pillar one for planning and one for work (M1).

An agent's text inside a system message is quoted line by line, so that none of it can pass for the system's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Final

from punchlist.conversations import repository as conversation_records
from punchlist.conversations import service as conversations_service
from punchlist.conversations.model import Conversation, Message, MessageRole, NoticeKind, Scope
from punchlist.conversations.service import MAX_MESSAGE_LENGTH, Conversations
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.events import canonical_json
from punchlist.kernel.text import ELLIPSIS, raw_problem, visible_block
from punchlist.missions import repository as mission_repository
from punchlist.missions.model import ChatChannel
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

_MAX_ATTEMPTS: Final = 1_000


def post(
    tx: Transaction, scope: Scope, conversation_id: str, kind: NoticeKind, content: str, todo_id: str | None = None
) -> Message:
    """Post a message. The caller owns the transaction; the chat stays locked until its end."""
    if problem := raw_problem(content, max_length=MAX_MESSAGE_LENGTH):
        raise InvalidInput(f"content: {problem}")
    if conversation_records.lock_conversation(tx, conversation_id) is None:
        raise NotFound(f"There is no session {conversation_id!r}.")
    message = conversation_records.add_message(
        tx,
        conversation_id,
        MessageRole.SYSTEM.value,
        content,
        kind=kind.value,
        posted_by=str(scope.actor),
        todo_id=todo_id,
    )
    chat_scope = Scope(conversation_id, scope.actor)
    data = conversation_records.fingerprint(message)
    event_log.append(
        tx, conversations_service.conversation_change(chat_scope, "say", message.id, f"{kind} message", data)
    )
    return message


def post_once(
    store: Store, scope: Scope, conversation_id: str, kind: NoticeKind, content: str, todo_id: str | None = None
) -> None:
    """Post unless a recent message is identical, so that a repeated workflow step does not post twice."""
    with store.write() as tx:
        conversation_records.lock_conversation(tx, conversation_id)
        if not mission_repository.was_posted(tx, conversation_id, kind, content):
            post(tx, scope, conversation_id, kind, content, todo_id)


def chat_metadata(
    channel: ChatChannel,
    mission_id: str,
    mission_slug: str,
    pillar_id: str | None = None,
    pillar_slug: str | None = None,
) -> dict[str, str]:
    values = {"channel": channel.value, "missionId": mission_id, "missionSlug": mission_slug}
    if pillar_id is not None and pillar_slug is not None:
        values |= {"pillarId": pillar_id, "pillarSlug": pillar_slug}
    return values


def create_chat(
    tx: Transaction,
    conversations: Conversations,
    scope: Scope,
    preferred_id: str,
    title: str,
    metadata: Mapping[str, str],
) -> Conversation:
    """Create a conversation. When the id is taken, `-2` is appended, and so on."""
    for id in _candidates(preferred_id):
        chat_scope = Scope(id, scope.actor)
        made = conversations.ensure(
            tx, chat_scope, title=title, metadata=dict(metadata), reason="a chat of the mission"
        )
        # The metadata contains the ids of the new mission and pillar, so an older conversation cannot match.
        if made.metadata == canonical_json(dict(metadata)):
            return made
    raise InvalidInput(f"slug: {_MAX_ATTEMPTS} sessions named {preferred_id!r} already exist; choose another slug")


def chat_id(mission_slug: str, pillar_slug: str | None = None, *, todos: bool = False) -> str:
    parts = [f"mission-{mission_slug}", *([pillar_slug] if pillar_slug else []), *(["todos"] if todos else [])]
    return ".".join(parts)


def _candidates(preferred_id: str) -> Iterator[str]:
    numbered = (f"{preferred_id}-{number}" for number in count(2))
    return (id for _, id in zip(range(_MAX_ATTEMPTS), chain([preferred_id], numbered), strict=False))


# --- quotes -----------------------------------------------------------------------------------------------

MAX_LENGTH: Final = 20_000
MAX_STORED_LENGTH: Final = 200_000
"""For messages stored in a chat."""


def block_quote(text: str, max_length: int = MAX_LENGTH) -> str:
    stripped = text.strip().replace("\r\n", "\n")
    if not stripped:
        return ""
    cut = stripped if len(stripped) <= max_length else stripped[: max_length - 1] + ELLIPSIS
    return "\n".join(f"> {line}".rstrip() for line in visible_block(cut).split("\n"))


def quote_verbatim(text: str) -> str:
    """Unescaped, for a message stored in a chat."""
    cut = text if len(text) <= MAX_STORED_LENGTH else text[: MAX_STORED_LENGTH - 1] + ELLIPSIS
    return "\n".join(f"> {line}" for line in cut.split("\n"))


def unquote(text: str) -> str:
    return "\n".join(line.removeprefix("> ") for line in text.split("\n"))


_HEADING: Final = re.compile(r"\[(?:TODO|cycle|run|[\w-]+, run) [^\]\n]+\]\n")


def without_heading(text: str) -> str:
    """A notice for people: without the ids of todo and run that it begins with, and without quotation marks."""
    return unquote(text[found.end() :]) if (found := _HEADING.match(text)) else text
