"""Keeps the search index in step with the event log.

Writers do not touch the index: every change of a message or todo has an event, so that the index is brought up to date
by the events since the last time, before each search. That costs a write nothing, fills the index of an older database,
and gives a search everything that was committed before it began. Documents are replaced by kind and id, so that an
event can be applied twice.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from punchlist.agent.message_kinds import REPLY, TEXT
from punchlist.checklist.repository import find_checklist
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Message, MessageRole, NoticeKind
from punchlist.errors import StoreDamaged
from punchlist.kernel.clock import timestamp
from punchlist.storage.store import Store, Transaction
from punchlist.views import search_repository as repository
from punchlist.views.activity_repository import mission_of_chat
from punchlist.views.plain_text import message_text
from punchlist.views.search_repository import IndexedEvent, SearchDocument

BATCH: Final = 500
"""Events per transaction: other writers wait for one at most."""
CATCH_UP_SECONDS: Final = 2.0
MAX_TEXT: Final = 20_000
UNSETTLED: Final = timedelta(seconds=10)
"""PostgreSQL shows an event after a later one at most this long; younger events are applied again."""
_NOTICES: Final = frozenset(notice.value for notice in NoticeKind)
_WORD: Final = re.compile(r"[^\W_]+")


def catch_up(store: Store, seconds: float = CATCH_UP_SECONDS) -> bool:
    """Apply the events since the last time; False if more of them are left after so many seconds."""
    until = time.monotonic() + seconds
    with store.read() as tx:
        if not repository.events_after(tx, after=repository.progress(tx) or 0, most=1):
            return True
    after = 0
    while True:
        with store.write() as tx:
            after = max(repository.lock_progress(tx) or 0, after)
            events = repository.events_after(tx, after=after, most=BATCH)
            for document in _documents(tx, events):
                _save(tx, document)
            if events:
                after = events[-1].seq
                tx.run(repository.SET_PROGRESS, last_event=_settled(store, events))
        if len(events) < BATCH:
            return True
        if time.monotonic() >= until:
            return False


def words(text: str) -> list[str]:
    """The words of a text as they are compared: without case and accents."""
    return [fold(word) for word in _WORD.findall(text)]


def fold(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _settled(store: Store, events: list[IndexedEvent]) -> int:
    """The last event before which no other can become visible."""
    if store.database.one_writer:
        return events[-1].seq
    old = timestamp(store.clock() - UNSETTLED)
    return max((event.seq for event in events if event.at < old), default=events[0].seq - 1)


# --- from events to documents -----------------------------------------------------------------------------


def _documents(tx: Transaction, events: Iterable[IndexedEvent]) -> Iterator[SearchDocument]:
    checklists: dict[str, str] = {}
    plan_todos: dict[str, None] = {}
    mission_todos: dict[str, str] = {}
    for event in events:
        list_name, _, owner = event.stream.partition(":")
        if '"message":{' in event.data and (message := _message(tx, event)) is not None:
            yield from _of_message(tx, message)
        if list_name == "checklist":
            checklists[owner] = event.at
        elif list_name == "plan":
            plan_todos[event.subject] = None
        elif list_name == "mission":
            mission_todos[event.subject] = event.conversation_id
    for id in plan_todos:
        yield from _of_plan_todo(tx, id)
    for id, conversation_id in mission_todos.items():
        yield from _of_mission_todo(tx, id, conversation_id)
    for conversation_id, at in checklists.items():
        yield from _of_checklist(tx, conversation_id, at)


def _of_plan_todo(tx: Transaction, id: str) -> Iterator[SearchDocument]:
    if (row := repository.plan_todo(tx, id)) is not None:
        conversation_id, turn_id, at, title, more = row
        mission = mission_of_chat(tx, chat=conversation_id)
        yield SearchDocument("plan_todo", id, conversation_id, mission, turn_id, None, at, f"{title}\n{more.strip()}")


def _of_mission_todo(tx: Transaction, id: str, conversation_id: str) -> Iterator[SearchDocument]:
    """Other subjects of a mission's events, such as readings, have no document."""
    if (row := repository.mission_todo(tx, id)) is not None:
        mission_id, at, title, more = row
        text = f"{title}\n{more.strip()}"
        yield SearchDocument("mission_todo", id, conversation_id, mission_id, None, None, at, text)


def _message(tx: Transaction, event: IndexedEvent) -> Message | None:
    try:
        data: Any = json.loads(event.data)
        return conversation_repository.find_message(tx, str(data["message"]["id"]))
    except (ValueError, KeyError, TypeError):
        return None


def _of_message(tx: Transaction, message: Message) -> Iterator[SearchDocument]:
    """Requests and answers; not the results of calls, and not what the loop tells a model."""
    text = message.content
    if message.role == MessageRole.ASSISTANT and message.kind == REPLY:
        text = message_text(message)
    elif message.kind != TEXT and message.kind not in _NOTICES:
        return
    asked = message.role == MessageRole.USER and message.kind == TEXT
    if not text.strip() or (asked and _is_of_worker(tx, message)):
        return
    kind = "request" if asked else "message"
    mission = mission_of_chat(tx, chat=message.conversation_id)
    place = message.conversation_id, mission, message.turn_id, message.position, message.created_at
    yield SearchDocument(kind, message.id, *place, text)


def _is_of_worker(tx: Transaction, message: Message) -> bool:
    """Whether an agent wrote the request, for a worker."""
    turn = conversation_repository.find_turn(tx, message.turn_id) if message.turn_id is not None else None
    return turn is not None and turn.parent_turn_id is not None


def _of_checklist(tx: Transaction, conversation_id: str, at: str) -> Iterator[SearchDocument]:
    try:
        items = find_checklist(tx, conversation_id).items
    except StoreDamaged:
        # `db check` reports it.
        return
    kept = {f"{conversation_id}:{item.id}": item.content for item in items}
    for subject in repository.subjects_of_conversation(tx, conversation_id, "checklist_item"):
        if subject not in kept:
            _remove(tx, "checklist_item", subject)
    mission = mission_of_chat(tx, chat=conversation_id) if kept else None
    for subject, text in kept.items():
        yield SearchDocument("checklist_item", subject, conversation_id, mission, None, None, at, text)


# --- from documents to the index --------------------------------------------------------------------------


def _save(tx: Transaction, document: SearchDocument) -> None:
    document = document._replace(text=document.text[:MAX_TEXT])
    key = {"kind": document.kind, "subject": document.subject}
    indexed = " ".join(words(document.text))
    found = repository.find_document(tx, **key)
    if found is None:
        tx.run(repository.INSERT, words=indexed, **document._asdict())
    elif found[1] != document.text:
        tx.run(repository.REMOVE_FROM_INDEX, id=found[0], text=found[1])
        tx.run(repository.UPDATE, id=found[0], text=document.text, at=document.at, words=indexed)
    else:
        return
    tx.run(repository.ADD_TO_INDEX, **key)


def _remove(tx: Transaction, kind: str, subject: str) -> None:
    found = repository.find_document(tx, kind=kind, subject=subject)
    if found is not None:
        tx.run(repository.REMOVE_FROM_INDEX, id=found[0], text=found[1])
        tx.run(repository.DELETE, id=found[0])
