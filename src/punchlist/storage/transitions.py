"""`transition`: the one way an item of a list changes its status.

    lock -> advance -> guarded UPDATE -> event

1. `lock` takes the lock that serialises the list's writers (the row of the turn, conversation, mission or run on
   PostgreSQL; SQLite has one writer) and returns the item as stored now. A caller that already holds the lock and the
   item passes `lambda _: item`.
2. `Lifecycle.advance` checks role and source status, and gives the new status.
3. `guard`, if given, checks what the table cannot express. It raises to refuse; the mapping it returns is added to
   the event's data.
4. `update` runs `UPDATE ... WHERE id = :id AND status = :before`. It returns the changed item, or None when no row
   matched: another writer was first, which raises `Conflict`.
5. `event` builds the `Change`, which is appended to the list's stream in the same transaction.

A list calls it from one place, with its repository's functions:

    def advance_todo(tx, scope, todo, action, reason, **changes):
        return transition(
            tx, PLAN, action, scope.actor.role,
            lock=lambda _: todo,
            update=repository.update,
            event=lambda before, after, data: change(scope, action, before.status, after, reason, data),
            changes=changes,
        )

Creating an item is not a transition: call `lifecycle.advance(NEW, ...)`, insert the row and append the event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from punchlist.errors import Conflict
from punchlist.kernel.events import Change, Role
from punchlist.kernel.lifecycle import Lifecycle
from punchlist.storage import event_log
from punchlist.storage.store import Transaction


class TransitionItem(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def status(self) -> str: ...


S = TypeVar("S", bound=StrEnum)
A = TypeVar("A", bound=StrEnum)
R = TypeVar("R", bound=TransitionItem)


def transition(
    tx: Transaction,
    lifecycle: Lifecycle[S, A],
    action: A,
    role: Role,
    *,
    lock: Callable[[Transaction], R],
    update: Callable[[Transaction, R, dict[str, Any]], R | None],
    event: Callable[[R, R, dict[str, Any]], Change],
    changes: Mapping[str, Any] | None = None,
    guard: Callable[[R], Mapping[str, Any] | None] | None = None,
) -> R:
    """Take one item one step along its lifecycle; the item as it is now.

    `update` and `event` receive `changes` together with the new status, as the key `status`.
    """
    before = lock(tx)
    written: dict[str, Any] = {"status": lifecycle.advance(before.status, action, role)}
    if changes:
        written.update(changes)
    extra = guard(before) if guard else None
    after = update(tx, before, written)
    if after is None:
        raise Conflict(
            f"Another writer changed {lifecycle.name} {before.id!r} at the same moment. Read it again and retry."
        )
    event_log.append(tx, event(before, after, {**written, **extra} if extra else written))
    return after
