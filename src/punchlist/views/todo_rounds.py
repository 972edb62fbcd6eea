"""The newest messages about a todo: of the rounds of work on it, and the notices between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import ChatEntry
from punchlist.storage.store import Store
from punchlist.views.todo_detail import MAX_PAGE, read_newest_messages

MAX_LIMIT: Final = MAX_PAGE - 1


@dataclass(frozen=True, slots=True)
class TodoRounds:
    entries: Sequence[ChatEntry]
    """Oldest first."""
    earlier: bool
    """Whether there are messages before the first entry."""


def read_rounds(store: Store, todo_id: str, *, limit: int) -> TodoRounds:
    """Unlike the chat of the pillar's todos, without what belongs to other todos."""
    limit = max(1, min(limit, MAX_LIMIT))
    said = read_newest_messages(store, todo_id, limit=limit + 1)
    with store.read() as tx:
        notices = conversation_repository.about_todo(tx, todo_id=todo_id, since="", limit=limit + 1)
        found = sorted([*notices, *said], key=lambda message: (message.created_at, message.position))
        shown = found[-limit:]
        ids = {message.turn_id for message in shown if message.turn_id is not None}
        turns = {id: conversation_repository.find_turn(tx, id) for id in ids}
    return TodoRounds([ChatEntry(each, turns.get(each.turn_id or "")) for each in shown], len(found) > limit)
