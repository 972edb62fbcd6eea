"""Transactions of the checklist: replace it, change one item, undo a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from punchlist.checklist import render
from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.lifecycle import CHECKLIST, ChecklistAction, ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistChange, ChecklistItem, item_json
from punchlist.checklist.repository import checklist_stream, find_checklist, find_revision, save_checklist
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition
from punchlist.kernel.ids import short_id
from punchlist.kernel.lifecycle import NEW
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

UPDATE_KIND: Final = "todo_update"
"""The kind of the message that a change adds to the conversation."""

Edit = Callable[[Checklist], Sequence[ChecklistItem]]


@dataclass(frozen=True)
class Checklists:
    _store: Store
    _conversations: Conversations

    def get(self, conversation_id: str) -> Checklist:
        with self._store.read() as tx:
            return find_checklist(tx, conversation_id)

    def rewrite(
        self, scope: Scope, todos: Any, *, reason: str = "TodoWrite", revision: int | None = None
    ) -> ChecklistChange:
        """Replace the whole list (W1 to W3); with `revision`, only if that is still the current one."""
        new = checklist_validation.parse_todos(todos)

        def rewritten(before: Checklist) -> Sequence[ChecklistItem]:
            if revision is not None and before.revision != revision:
                raise Conflict("Another writer changed the checklist meanwhile. Nothing was changed; try again.")
            return checklist_validation.assign_ids(new, before.items, short_id)

        return self._edit(scope, reason, rewritten)

    def add(self, scope: Scope, *contents: str, active_form: str | None = None, reason: str) -> ChecklistChange:
        """Append items, all or none."""
        status = ChecklistStatus.PENDING.value
        new = checklist_validation.parse_todos(
            [{"content": content, "activeForm": active_form or content, "status": status} for content in contents]
        )

        def added(before: Checklist) -> Sequence[ChecklistItem]:
            kept = [
                checklist_validation.NewChecklistItem(item.content, item.active_form, item.status, item.id)
                for item in before.items
            ]
            return checklist_validation.assign_ids([*kept, *new], before.items, short_id)

        return self._edit(scope, reason, added)

    def advance(self, scope: Scope, reference: str, action: ChecklistAction, *, reason: str) -> ChecklistChange:
        """Take one item, referenced by number or id, one step along its lifecycle."""

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
            (parsed,) = checklist_validation.parse_todos([raw])
            new = replace(chosen, content=parsed.content, active_form=parsed.active_form)
            return [new if item is chosen else item for item in before.items]

        return self._edit(scope, reason, edited)

    def move(self, scope: Scope, reference: str, position: int, *, reason: str) -> ChecklistChange:
        """Move an item to a 1-indexed position; a position past the end means the end."""

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
        """Restore the list from before the last change that was not undone yet."""
        with self._store.write() as tx:
            before = self._lock(tx, scope)
            if not before.items and before.undo_to == 0:
                raise IllegalTransition("There is nothing to undo: the list has not been changed yet.")
            items, undo_to = find_revision(tx, scope.conversation_id, before.undo_to)
            return _save(tx, scope, "undo", reason, before, items, undo_to)

    def _edit(self, scope: Scope, reason: str, edit: Edit) -> ChecklistChange:
        with self._store.write() as tx:
            before = self._lock(tx, scope)
            items = tuple(edit(before))
            if items == before.items:
                return ChecklistChange(before, ())
            return _save(tx, scope, "rewrite", reason, before, items, before.revision)

    def _lock(self, tx: Transaction, scope: Scope) -> Checklist:
        self._conversations.ensure(tx, scope)
        return find_checklist(tx, scope.conversation_id)


def _save(
    tx: Transaction,
    scope: Scope,
    action: str,
    reason: str,
    before: Checklist,
    items: tuple[ChecklistItem, ...],
    undo_to: int,
) -> ChecklistChange:
    """Write the row, the message in the conversation, and the event."""
    checklist_validation.check_list(items)
    changes = checklist_validation.item_changes(before.items, items)
    for change in changes:
        if isinstance(change.action, ChecklistAction):
            CHECKLIST.advance(change.from_status or NEW, change.action, scope.actor.role)
    after = Checklist(items, before.revision + 1, undo_to, tx.now())
    save_checklist(tx, scope.conversation_id, after)
    turn = conversation_repository.find_open_turn(tx, scope.conversation_id)
    message = conversation_repository.add_message(
        tx,
        scope.conversation_id,
        MessageRole.SYSTEM,
        render.update_message(after),
        kind=UPDATE_KIND,
        turn_id=turn.id if turn else None,
    )
    data = {
        "items": [item_json(item) for item in items],
        "revision": after.revision,
        "undo_to": after.undo_to,
        "steps": [asdict(change) for change in changes],
        **conversation_repository.fingerprint(message),
    }
    session = scope.conversation_id
    event_log.append(tx, scope.change(checklist_stream(session), action, session, reason, data))
    return ChecklistChange(after, checklist_validation.dropped_items(before.items, items))
