"""What was said during the work on a todo, by time: in all rounds, by workers, in delegated runs, and what was posted
about the todo between them.

Unlike the chat of the pillar's todos, without what belongs to other todos. A page reads the turns that it needs: those
that ended before it or begin after it are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import ChatEntry, Message, StoredTurn
from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.missions import repository as mission_repository
from punchlist.storage.store import Store, Transaction
from punchlist.views import mission_repository as view_repository
from punchlist.views.chat_entries import entries_of

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
_FIELDS: Final = ("id", "turn_id", "position", "role", "kind", "content", "created_at", "posted_by")


class _MessagePlace(NamedTuple):
    """The order of messages: by time, then as they follow each other in their conversation."""

    at: str
    position: int
    id: str


_BEGINNING: Final = _MessagePlace("", 0, "")
_END: Final = _MessagePlace("9999", 0, "")


@dataclass(frozen=True, slots=True)
class TodoTranscript:
    todo_id: str
    entries: Sequence[ChatEntry]
    """Oldest first."""
    cursor: str | None = None
    """Where the next page begins; None on the last one."""
    earlier: bool = False
    """Whether there are messages before the first entry."""

    def as_json(self) -> dict[str, Any]:
        more = {"nextCursor": self.cursor} if self.cursor else {}
        return {"items": [entry_json(entry, self.todo_id) for entry in self.entries], **more}


def entry_json(entry: ChatEntry, todo_id: str) -> dict[str, Any]:
    agent = entry.turn.agent_id if entry.turn else None
    return {**camel_json(entry.message, *_FIELDS), "agent": agent, "todoId": todo_id}


def read_todo_transcript(
    store: Store, todo_id: str, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> TodoTranscript:
    """A page of the transcript, from its beginning or after the page before."""
    limit = max(1, min(limit, MAX_LIMIT))
    with store.read() as tx:
        after = _place_of(tx, cursor) if cursor is not None else _BEGINNING
        found = _read(tx, todo_id, after, limit + 1, newest=False)
        entries = entries_of(tx, found[:limit])
    more = found[limit - 1].id if len(found) > limit else None
    return TodoTranscript(todo_id, entries, more, earlier=cursor is not None)


def read_newest(store: Store, todo_id: str, *, limit: int) -> TodoTranscript:
    """The end of the transcript."""
    limit = max(1, min(limit, MAX_LIMIT))
    with store.read() as tx:
        found = _read(tx, todo_id, _END, limit + 1, newest=True)
        return TodoTranscript(todo_id, entries_of(tx, found[:limit][::-1]), earlier=len(found) > limit)


def _read(tx: Transaction, todo_id: str, from_: _MessagePlace, most: int, *, newest: bool) -> list[Message]:
    """The messages next to a place, nearest first."""
    turns = _turns(tx, todo_id)
    place = {**from_._asdict(), "most": most}
    posted, said = (
        (view_repository.posted_before, view_repository.said_before)
        if newest
        else (view_repository.posted_after, view_repository.said_after)
    )
    found = posted(tx, todo_id=todo_id, **place)
    for turn in sorted(turns, key=_end, reverse=True) if newest else turns:
        if _is_beyond(turn, from_, newest):
            continue
        if len(found) == most and _cannot_reach(turn, found[-1], newest):
            break
        found += said(tx, turn_id=turn.id, **place)
        found.sort(key=_place, reverse=newest)
        del found[most:]
    return found


def _is_beyond(turn: StoredTurn, from_: _MessagePlace, newest: bool) -> bool:
    return turn.started_at > from_.at if newest else _end(turn) < from_.at


def _cannot_reach(turn: StoredTurn, last: Message, newest: bool) -> bool:
    """Whether all messages of the turn, and of those that follow in the order, are behind the last one found."""
    return _end(turn) < last.created_at if newest else turn.started_at > last.created_at


def _end(turn: StoredTurn) -> str:
    return turn.ended_at or _END.at


def _place(message: Message) -> _MessagePlace:
    return _MessagePlace(message.created_at, message.position, message.id)


def _turns(tx: Transaction, todo_id: str) -> list[StoredTurn]:
    """The turns of all runs on the todo and of their workers, in the order of their beginning."""
    ids = mission_repository.turn_ids_of_todo(tx, todo_id)
    return mission_repository.turns_with_workers(tx, json.dumps(ids)) if ids else []


def _place_of(tx: Transaction, cursor: str) -> _MessagePlace:
    if (message := conversation_repository.find_message(tx, cursor)) is None:
        raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
    return _place(message)
