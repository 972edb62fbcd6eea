"""The checklist's transactions: read it, rewrite it, change one item, take a change back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from punchlist.checklist import render
from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.lifecycle import CHECKLIST, ChecklistAction, ChecklistStatus
from punchlist.checklist.model import EMPTY_CHECKLIST, Checklist, ChecklistChange, ChecklistItem, item_json
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, StoreDamaged
from punchlist.kernel.events import Change
from punchlist.kernel.ids import short_id
from punchlist.kernel.lifecycle import NEW
from punchlist.storage import event_log
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store, Transaction

UPDATE_KIND: Final = "todo_update"
"""The kind of the message that a change leaves in the conversation."""

_READ: Final = Statement(
    "SELECT items, revision, undo_to, updated_at, checksum FROM checklists WHERE conversation_id = :conversation_id"
)
# The revision in the condition is what makes a lost update impossible, whatever the caller locked.
_WRITE: Final = Statement(
    "INSERT INTO checklists (conversation_id, items, revision, undo_to, updated_at, checksum) "
    "VALUES (:conversation_id, :items, :revision, :undo_to, :updated_at, :checksum) "
    "ON CONFLICT (conversation_id) DO UPDATE SET items = excluded.items, revision = excluded.revision, "
    "undo_to = excluded.undo_to, updated_at = excluded.updated_at, checksum = excluded.checksum "
    "WHERE checklists.revision = :revision - 1"
)

Edit = Callable[[Checklist], Sequence[ChecklistItem]]


def checklist_stream(conversation_id: str) -> str:
    return f"checklist:{conversation_id}"


class Checklists:
    def __init__(self, store: Store, conversations: Conversations) -> None:
        self._store = store
        self._conversations = conversations

    def get(self, conversation_id: str) -> Checklist:
        with self._store.read() as tx:
            return read(tx, conversation_id)

    def rewrite(self, scope: Scope, todos: Any, *, reason: str = "TodoWrite", at: int | None = None) -> ChecklistChange:
        """Replace the whole list by what the caller sent (W1 to W3); with `at`, only if that is still its revision."""
        wanted = checklist_validation.parse_todos(todos)

        def rewritten(before: Checklist) -> Sequence[ChecklistItem]:
            if at is not None and before.revision != at:
                raise Conflict("The checklist was changed by somebody else meanwhile. Nothing was changed; try again.")
            return checklist_validation.assign_ids(wanted, before.items, short_id)

        return self._edit(scope, reason, rewritten)

    def add(self, scope: Scope, *contents: str, active_form: str | None = None, reason: str) -> ChecklistChange:
        """Append items, all or none."""
        status = ChecklistStatus.PENDING.value
        wanted = checklist_validation.parse_todos(
            [{"content": content, "activeForm": active_form or content, "status": status} for content in contents]
        )

        def added(before: Checklist) -> Sequence[ChecklistItem]:
            kept = [
                checklist_validation.NewChecklistItem(item.content, item.active_form, item.status, item.id)
                for item in before.items
            ]
            return checklist_validation.assign_ids([*kept, *wanted], before.items, short_id)

        return self._edit(scope, reason, added)

    def advance(self, scope: Scope, reference: str, action: ChecklistAction, *, reason: str) -> ChecklistChange:
        """Take one item, named by its number or id, one step along its lifecycle."""

        def advanced(before: Checklist) -> Sequence[ChecklistItem]:
            chosen = checklist_validation.find_item(before.items, reference)
            status = CHECKLIST.advance(chosen.status, action, scope.actor.role)
            running = before.in_progress
            if status is ChecklistStatus.IN_PROGRESS and running:
                raise IllegalTransition(
                    f"{checklist_validation.ONE_AT_A_TIME}: {render.quoted_contents([running])} is. "
                    "Mark it done or reopen it first."
                )
            return [replace(item, status=status) if item is chosen else item for item in before.items]

        return self._edit(scope, reason, advanced)

    def edit(
        self, scope: Scope, reference: str, content: str, *, active_form: str | None = None, reason: str
    ) -> ChecklistChange:
        def edited(before: Checklist) -> Sequence[ChecklistItem]:
            chosen = checklist_validation.find_item(before.items, reference)
            raw = {"content": content, "activeForm": active_form or content, "status": chosen.status.value}
            (wanted,) = checklist_validation.parse_todos([raw])
            new = replace(chosen, content=wanted.content, active_form=wanted.active_form)
            return [new if item is chosen else item for item in before.items]

        return self._edit(scope, reason, edited)

    def move(self, scope: Scope, reference: str, position: int, *, reason: str) -> ChecklistChange:
        """Put an item at a position, counted from 1; a position past the end is the end."""

        def moved(before: Checklist) -> Sequence[ChecklistItem]:
            chosen = checklist_validation.find_item(before.items, reference)
            items = [item for item in before.items if item is not chosen]
            items.insert(position - 1, chosen)
            return items

        return self._edit(scope, reason, moved)

    def remove(self, scope: Scope, reference: str, *, reason: str) -> ChecklistChange:
        def removed(before: Checklist) -> Sequence[ChecklistItem]:
            chosen = checklist_validation.find_item(before.items, reference)
            return [item for item in before.items if item is not chosen]

        return self._edit(scope, reason, removed)

    def clear(self, scope: Scope, *, reason: str) -> ChecklistChange:
        return self._edit(scope, reason, lambda _: ())

    def undo(self, scope: Scope, *, reason: str) -> ChecklistChange:
        """Bring back the list as it was before the last change that was not undone yet."""
        with self._store.write() as tx:
            before = self._lock(tx, scope)
            if not before.items and before.undo_to == 0:
                raise IllegalTransition("There is nothing to undo: the list has not been changed yet.")
            items, undo_to = _revision(tx, scope.conversation_id, before.undo_to)
            return self._save(tx, scope, "undo", reason, before, items, undo_to)

    def _edit(self, scope: Scope, reason: str, edit: Edit) -> ChecklistChange:
        with self._store.write() as tx:
            before = self._lock(tx, scope)
            items = tuple(edit(before))
            if items == before.items:
                return ChecklistChange(before, ())
            return self._save(tx, scope, "rewrite", reason, before, items, before.revision)

    def _lock(self, tx: Transaction, scope: Scope) -> Checklist:
        self._conversations.ensure(tx, scope)
        return read(tx, scope.conversation_id)

    def _save(
        self,
        tx: Transaction,
        scope: Scope,
        action: str,
        reason: str,
        before: Checklist,
        items: tuple[ChecklistItem, ...],
        undo_to: int,
    ) -> ChecklistChange:
        checklist_validation.check_list(items)
        steps = checklist_validation.item_changes(before.items, items)
        for step in steps:
            if isinstance(step.action, ChecklistAction):
                CHECKLIST.advance(step.from_status or NEW, step.action, scope.actor.role)
        after = Checklist(items, before.revision + 1, undo_to, tx.now())
        write(tx, scope.conversation_id, after)
        turn = conversation_repository.find_open_turn(tx, scope.conversation_id)
        message = conversation_repository.add_message(
            tx,
            scope.conversation_id,
            MessageRole.SYSTEM,
            render.update_message(after),
            kind=UPDATE_KIND,
            turn_id=turn.id if turn else None,
        )
        event_log.append(
            tx,
            Change(
                stream=checklist_stream(scope.conversation_id),
                conversation_id=scope.conversation_id,
                actor=str(scope.actor),
                action=action,
                subject=scope.conversation_id,
                from_status=None,
                to_status=None,
                reason=reason,
                data={
                    "items": [item_json(item) for item in items],
                    "revision": after.revision,
                    "undo_to": after.undo_to,
                    "steps": [asdict(step) for step in steps],
                    **conversation_repository.fingerprint(message),
                },
            ),
        )
        return ChecklistChange(after, checklist_validation.dropped_items(before.items, items))


def read(tx: Transaction, conversation_id: str) -> Checklist:
    row = tx.one(_READ, conversation_id=conversation_id)
    if row is None:
        return EMPTY_CHECKLIST
    items, revision, undo_to, updated_at, checksum = row
    if checksum != _checksum(conversation_id, items, revision, undo_to):
        raise StoreDamaged.not_as_written(f"The checklist of session {conversation_id!r}")
    return Checklist(items_from_json(json.loads(items)), revision, undo_to, updated_at)


def write(tx: Transaction, conversation_id: str, checklist: Checklist) -> None:
    items = json.dumps([item_json(item) for item in checklist.items], ensure_ascii=False)
    changed = tx.run(
        _WRITE,
        conversation_id=conversation_id,
        items=items,
        revision=checklist.revision,
        undo_to=checklist.undo_to,
        updated_at=checklist.updated_at,
        checksum=_checksum(conversation_id, items, checklist.revision, checklist.undo_to),
    )
    if not changed:
        raise Conflict("The checklist was changed by somebody else at the same moment. Read it again and retry.")


def items_from_json(raw: Sequence[dict[str, str]]) -> tuple[ChecklistItem, ...]:
    return tuple(
        ChecklistItem(item["id"], item["content"], item["activeForm"], ChecklistStatus(item["status"])) for item in raw
    )


def _revision(tx: Transaction, conversation_id: str, revision: int) -> tuple[tuple[ChecklistItem, ...], int]:
    """The items of an earlier revision and what an undo led to from there: the trail remembers."""
    if revision == 0:
        return (), 0
    event = event_log.at_version(tx, checklist_stream(conversation_id), revision)
    if event is None:
        raise StoreDamaged(f"Revision {revision} of the checklist is missing from the trail. Run `punchlist db check`.")
    data = event.payload()
    return items_from_json(data["items"]), data["undo_to"]


def _checksum(conversation_id: str, items: str, revision: int, undo_to: int) -> int:
    return zlib.crc32(f"{conversation_id}\x1f{items}\x1f{revision}\x1f{undo_to}".encode())
