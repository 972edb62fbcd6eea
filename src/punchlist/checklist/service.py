"""Transactions of the checklist: replace it, change one item, undo a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from punchlist.checklist import render
from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.identity import (
    ItemChange,
    assign_ids,
    dropped_items,
    item_changes,
    replace_items,
    verification_after,
)
from punchlist.checklist.lifecycle import CHECKLIST, ChecklistAction, ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistChange, ChecklistItem, stored_item
from punchlist.checklist.repository import checklist_stream, find_checklist, find_revision, save_checklist
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition
from punchlist.kernel.events import Role
from punchlist.kernel.ids import short_id
from punchlist.kernel.lifecycle import NEW
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.verification.model import Check, CheckResult, Verification

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
            _check_revision(before, revision)
            return replace_items(new, before.items, short_id, by_person=scope.actor.role is Role.PERSON)

        return self._edit(scope, reason, rewritten)

    def add(
        self,
        scope: Scope,
        *contents: str,
        active_form: str | None = None,
        check: str | None = None,
        reason: str,
    ) -> ChecklistChange:
        """Append pending items, all or none. `check` is the check of each of them."""
        fields = {"status": ChecklistStatus.PENDING.value, "check": check}
        todos = [{"content": content, "activeForm": active_form or content, **fields} for content in contents]
        return self.append(scope, todos, reason=reason)

    def append(
        self, scope: Scope, todos: Sequence[Any], *, reason: str, revision: int | None = None
    ) -> ChecklistChange:
        """Append items of any status, all or none; with `revision`, only if that is still the current one."""
        new = checklist_validation.parse_todos(list(todos))

        def added(before: Checklist) -> Sequence[ChecklistItem]:
            _check_revision(before, revision)
            used = {item.id for item in before.items}
            by_person = scope.actor.role is Role.PERSON
            return [*before.items, *assign_ids(new, (), lambda: _unused_id(used), by_person=by_person)]

        return self._edit(scope, reason, added)

    def cancel(self, scope: Scope, reference: str, why: str, *, reason: str) -> ChecklistChange:
        """Cancel an item for the reason `why`, which people see."""
        return self.advance(
            scope, reference, ChecklistAction.CANCEL, why=checklist_validation.parse_reason(why), reason=reason
        )

    def advance(
        self, scope: Scope, reference: str, action: ChecklistAction, *, reason: str, why: str = ""
    ) -> ChecklistChange:
        """Take one item, referenced by number or id, one step along its lifecycle. To cancel it, call `cancel`."""

        def advanced(before: Checklist) -> Sequence[ChecklistItem]:
            chosen = checklist_validation.find_item(before.items, reference)
            status = CHECKLIST.advance(chosen.status, action, scope.actor.role)
            running = before.in_progress
            if status is ChecklistStatus.IN_PROGRESS and running:
                raise IllegalTransition(
                    f"{checklist_validation.ONE_AT_A_TIME}: {render.quoted_contents([running])} is. "
                    "Mark it done or reopen it first."
                )
            verification = verification_after(chosen, status)
            if status is ChecklistStatus.COMPLETED and scope.actor.role is Role.PERSON:
                # A person who completes an item accepts it (V4).
                verification = replace(verification, accepted_by=str(scope.actor))
            new = replace(chosen, status=status, verification=verification, reason=why)
            return [new if item is chosen else item for item in before.items]

        return self._edit(scope, reason, advanced)

    def verify(
        self, scope: Scope, item_id: str, verification: Verification, *, reason: str = "verify"
    ) -> ChecklistChange:
        """Keep a check's result or the evidence with an item. Not a change that `undo` undoes."""
        return self._set_verification(scope, item_id, ChecklistAction.CHECK, reason, lambda _: verification)

    def reject(self, scope: Scope, item_id: str, result: CheckResult) -> ChecklistChange:
        """Open a completed item again, because its check failed (V2)."""

        def rejected(before: Checklist) -> Sequence[ChecklistItem]:
            chosen = checklist_validation.find_item(before.items, item_id)
            status = CHECKLIST.advance(chosen.status, ChecklistAction.REOPEN, scope.actor.role)
            failed = replace(chosen.verification.reopened(), result=result)
            new = replace(chosen, status=status, verification=failed)
            return [new if item is chosen else item for item in before.items]

        return self._edit(scope, "its check failed", rejected)

    def set_check(self, scope: Scope, reference: str, check: Check | None, *, reason: str) -> ChecklistChange:
        """Set, replace or remove the check of an item."""
        if check is not None:
            check = replace(check, by_person=scope.actor.role is Role.PERSON)
        return self._set_verification(
            scope,
            reference,
            ChecklistAction.CHECK,
            reason,
            lambda item: replace(item.verification, check=check, result=None),
        )

    def accept(self, scope: Scope, reference: str, *, reason: str = "accept") -> ChecklistChange:
        """Accept a completed item (V4)."""
        accepted_by = str(scope.actor)
        return self._set_verification(
            scope,
            reference,
            ChecklistAction.ACCEPT,
            reason,
            lambda item: replace(item.verification, accepted_by=accepted_by),
        )

    def _set_verification(
        self,
        scope: Scope,
        reference: str,
        action: ChecklistAction,
        reason: str,
        change: Callable[[ChecklistItem], Verification],
    ) -> ChecklistChange:
        CHECKLIST.check_role(action, scope.actor.role)
        with self._store.write() as tx:
            before = self._lock(tx, scope)
            chosen = checklist_validation.find_item(before.items, reference)
            CHECKLIST.advance(chosen.status, action, scope.actor.role)
            new = replace(chosen, verification=change(chosen))
            if new == chosen:
                return ChecklistChange(before, ())
            items = tuple(new if item is chosen else item for item in before.items)
            after = Checklist(items, before.revision + 1, before.undo_to, tx.now())
            save_checklist(tx, scope.conversation_id, after)
            steps = [ItemChange(new.id, action, new.status, new.status, new.content)]
            _record(tx, scope, action, reason, after, steps)
            return ChecklistChange(after, ())

    def edit(
        self, scope: Scope, reference: str, content: str, *, active_form: str | None = None, reason: str
    ) -> ChecklistChange:
        def edited(before: Checklist) -> Sequence[ChecklistItem]:
            chosen = checklist_validation.find_item(before.items, reference)
            raw = {"content": content, "activeForm": active_form or content, "status": ChecklistStatus.PENDING.value}
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
            items = _dropped_last(edit(before))
            if items == before.items:
                return ChecklistChange(before, ())
            return _save(tx, scope, "rewrite", reason, before, items, before.revision)

    def _lock(self, tx: Transaction, scope: Scope) -> Checklist:
        self._conversations.ensure(tx, scope)
        return find_checklist(tx, scope.conversation_id)


def _check_revision(before: Checklist, revision: int | None) -> None:
    if revision is not None and before.revision != revision:
        raise Conflict("Another writer changed the checklist meanwhile. Nothing was changed; try again.")


def _unused_id(used: set[str]) -> str:
    new = short_id()
    while new in used:
        new = short_id()
    return new


def _dropped_last(items: Sequence[ChecklistItem]) -> tuple[ChecklistItem, ...]:
    """Stable, so that the number of an item is its place in the list that people and models see."""
    return tuple(sorted(items, key=lambda item: item.status is ChecklistStatus.DROPPED))


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
    changes = item_changes(before.items, items)
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
    _record(tx, scope, action, reason, after, changes, **conversation_repository.fingerprint(message))
    return ChecklistChange(after, dropped_items(before.items, items))


def _record(
    tx: Transaction,
    scope: Scope,
    action: str,
    reason: str,
    after: Checklist,
    steps: Sequence[ItemChange],
    **more: Any,
) -> None:
    """Append the event, which contains the whole list."""
    data = {
        "items": [stored_item(item) for item in after.items],
        "revision": after.revision,
        "undo_to": after.undo_to,
        "steps": [asdict(step) for step in steps],
        **more,
    }
    session = scope.conversation_id
    event_log.append(tx, scope.change(checklist_stream(session), action, session, reason, data))
