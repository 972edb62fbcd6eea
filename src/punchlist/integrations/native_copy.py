"""Copies the list that a host agent keeps with its own tools to the session's checklist."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from punchlist.checklist import repository as checklist_repository
from punchlist.checklist.lifecycle import OPEN, ChecklistAction
from punchlist.checklist.model import Checklist, item_json
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict
from punchlist.integrations.native_lists import completed_ids, keep_ended, keep_texts, merge_copy
from punchlist.integrations.session_state import SessionState, is_by_agent, is_by_person
from punchlist.kernel.events import Event
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

COPY_REASON: Final = "copied from the agent's own list"
COMPLETED_REASON: Final = "completed in the agent's own list"
_HISTORY_EVENTS: Final = 300
_MAX_ATTEMPTS: Final = 5


class NativeListCopies:
    _store: Store
    _conversations: Conversations

    def copy_native_list(self, scope: Scope, todos: list[dict[str, Any]], *, only_existing_copy: bool = False) -> bool:
        """Copy the agent's own list to the checklist, keeping what people changed on the copy (X9).

        Items that they added stay, items that they ended stay ended, and texts that they changed stay changed, until
        the agent's own list changes these items itself.

        Returns False if the checklist is not such a copy and has open items of the agent; with `only_existing_copy`
        also if it has none. Then only items that people added are completed, if the agent's own list says so.
        """
        checklists = Checklists(self._store, self._conversations)
        for _ in range(_MAX_ATTEMPTS):
            with self._store.read() as tx:
                previous = checklist_repository.find_checklist(tx, scope.conversation_id)
                open_items = {item.id for item in previous.items if item.is_open}
                last_change, added_by_people = self._authors(tx, scope, previous.revision, open_items)
            before = [item_json(item) for item in previous.items]
            is_copy = last_change is not None and last_change.reason == COPY_REASON
            if not is_copy and (only_existing_copy or open_items - added_by_people):
                for id in completed_ids(todos, before, open_items & added_by_people):
                    checklists.advance(scope, id, ChecklistAction.COMPLETE, reason=COMPLETED_REASON)
                return False
            with self._store.read() as tx:
                changed = _keep_changes(tx, scope, previous, todos)
            items = merge_copy(changed, before, added_by_people)
            try:
                checklists.rewrite(scope, items, reason=COPY_REASON, revision=previous.revision)
                return True
            except Conflict:
                # A person or another hook changed the checklist first.
                continue
        return False

    def _is_copy(self, scope: Scope, state: SessionState) -> bool:
        """Whether the agent keeps the open items of the checklist with its own tool."""
        if not any(item.is_open for item in state.checklist.items):
            return False
        with self._store.read() as tx:
            last_change, _ = self._authors(tx, scope, state.checklist.revision, ())
        return last_change is not None and last_change.reason == COPY_REASON

    def _authors(
        self, tx: Transaction, scope: Scope, revision: int, ids: Collection[str]
    ) -> tuple[Event | None, set[str]]:
        """The checklist's last change by an agent, and those of `ids` that a person added.

        Items older than the history that is read count as added by a person.
        """
        last_change, by_people, unknown = None, set[str](), set(ids)
        for event in _history(tx, scope, revision):
            if last_change is not None and not unknown:
                break
            added = {step["id"] for step in event.payload()["steps"] if step["action"] == ChecklistAction.ADD}
            if is_by_person(event):
                by_people |= added & unknown
            elif last_change is None and is_by_agent(event) and not _only_cancels(event):
                last_change = event
            unknown -= added
        return last_change, by_people | unknown


def _keep_changes(
    tx: Transaction, scope: Scope, previous: Checklist, todos: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The agent's own list with the texts and the ends that people gave its items on the copy."""
    native = {item["content"] for item in todos}
    new = native - {item.content for item in previous.items}
    renamed = [item for item in previous.items if item.content not in native] if new else []
    texts = _earlier_texts(tx, scope, previous, {item.id for item in renamed})
    by_text = {text: item for item in renamed for text in [old for old in texts[item.id] if old in new][:1]}
    todos = keep_texts(todos, {text: item_json(item) for text, item in by_text.items()})
    still_open = {item["content"] for item in todos if item["status"] in OPEN}
    ended = [item for item in previous.items if not item.is_open and item.content in still_open]
    by_people = _ended_by_people(tx, scope, previous.revision, {item.id for item in ended})
    return keep_ended(todos, [item_json(item) for item in ended if item.id in by_people])


def _history(tx: Transaction, scope: Scope, revision: int) -> Iterator[Event]:
    """The checklist's latest events, newest first."""
    for version in range(revision, max(0, revision - _HISTORY_EVENTS), -1):
        event = event_log.at_version(tx, checklist_repository.checklist_stream(scope.conversation_id), version)
        if event is None:
            return
        yield event


def _ended_by_people(tx: Transaction, scope: Scope, revision: int, ids: Collection[str]) -> set[str]:
    """Those of the ended items `ids` whose state a person changed last."""
    by_people, unknown = set[str](), set(ids)
    for event in _history(tx, scope, revision) if ids else ():
        changed = {step["id"] for step in event.payload()["steps"] if step["from_status"] != step["to_status"]}
        if is_by_person(event):
            by_people |= changed & unknown
        unknown -= changed
        if not unknown:
            break
    return by_people


def _earlier_texts(tx: Transaction, scope: Scope, previous: Checklist, ids: Collection[str]) -> dict[str, list[str]]:
    """By item: the texts that people replaced since the agent last changed the item's text, newest first."""
    after, by_person = {item.id: item.content for item in previous.items}, False
    texts: dict[str, list[str]] = {id: [] for id in ids}
    unknown = set(ids)
    for event in _history(tx, scope, previous.revision) if ids else ():
        before = {item["id"]: item["content"] for item in event.payload()["items"]}
        for id in tuple(unknown):
            if id in before and (before[id] == after[id] or by_person):
                texts[id] += [before[id]] if before[id] != after[id] else []
            else:
                unknown.discard(id)
        if not unknown:
            break
        after, by_person = before, is_by_person(event)
    return texts


def _only_cancels(event: Event) -> bool:
    """The agent cancelled items that its own list no longer has, which only our tool can do. It stays a copy."""
    steps = event.payload()["steps"]
    return bool(steps) and all(step["action"] == "cancel" for step in steps)
