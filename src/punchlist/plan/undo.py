"""Undo a person's last change of a plan.

What was changed is read from the event log, and the undo is a change of its own: titles and positions are set back, an
item that was added is cancelled, since todos are never deleted (T1), and one that was started or ended is pending
again. The event of an undo names the version that it undoes, so that the next undo goes further back. A change whose
effect is gone, for example since the agent has ended the item, is left out; so are checks and acceptance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition
from punchlist.kernel.events import Event, Role
from punchlist.plan.lifecycle import OPEN, PLAN, PlanAction, PlanStatus
from punchlist.plan.model import TurnTodo, plan_stream
from punchlist.plan.replay import replay_todos
from punchlist.plan.repository import find_todo, lock_turn, read_todos
from punchlist.plan.service import end_todo, move_todo
from punchlist.plan.transitions import advance_todo
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction

UNDOES: Final = "undoes"
TAKEN_BACK: Final = "Taken back by a person."
NOTHING: Final = "There is nothing to undo: no person has changed the plan of this turn."
_LEADS_TO: Final = {
    PlanAction.START: PlanStatus.IN_PROGRESS,
    PlanAction.COMPLETE: PlanStatus.COMPLETED,
    PlanAction.CANCEL: PlanStatus.CANCELLED,
}


@dataclass(frozen=True)
class PlanUndo:
    _store: Store

    def last_change(self, turn_id: str) -> int:
        """The number of the event that `undo` would undo; 0 if there is none."""
        with self._store.read() as tx:
            found = _undoable(tx, turn_id)
        return found[-1].seq if found else 0

    def undo(self, scope: TurnScope, *, reason: str) -> list[TurnTodo]:
        """Undo the last change of a person; the items that it was about."""
        PLAN.check_role(PlanAction.REOPEN, scope.actor.role)
        with self._store.write() as tx:
            lock_turn(tx, scope)
            found = _undoable(tx, scope.turn_id)
            if not found:
                raise IllegalTransition(NOTHING)
            events = event_log.read_stream(tx, plan_stream(scope.turn_id))
            # The item that was added last is cancelled first.
            return [_undo(tx, scope, event, events, reason) for event in reversed(found)]


def _undoable(tx: Transaction, turn_id: str) -> list[Event]:
    """The events of the last change of a person that can be undone."""
    todos = {todo.id: todo for todo in read_todos(tx, turn_id)}
    return last_change(event_log.read_stream(tx, plan_stream(turn_id)), todos)


def last_change(events: Sequence[Event], todos: Mapping[str, TurnTodo]) -> list[Event]:
    """The last change of a person that has an effect and was not undone. Items that were added together are one."""
    undone: set[int] = set()
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if f'"{UNDOES}"' in event.data and (version := event.payload().get(UNDOES)) is not None:
            undone.add(version)
        elif _is_by_person(event) and event.version not in undone and _has_effect(event, events[:place], todos):
            return [event] if event.action != PlanAction.CREATE else _added_with(event, events[: place + 1], todos)
    return []


def _added_with(event: Event, events: Sequence[Event], todos: Mapping[str, TurnTodo]) -> list[Event]:
    found: list[Event] = []
    for each in reversed(events):
        if (each.action, each.actor, each.at) != (event.action, event.actor, event.at):
            break
        if todos[each.subject].status in OPEN:
            found.insert(0, each)
    return found


def _is_by_person(event: Event) -> bool:
    return event.actor.partition(":")[0] == Role.PERSON


def _has_effect(event: Event, before: Sequence[Event], todos: Mapping[str, TurnTodo]) -> bool:
    todo = todos.get(event.subject)
    if todo is None:
        return False
    match event.action:
        case PlanAction.CREATE | PlanAction.MOVE:
            return todo.status in OPEN
        case PlanAction.EDIT:
            title = event.payload()["title"]
            return todo.status in OPEN and todo.title == title != _title_before(event, before)
        case PlanAction.START | PlanAction.COMPLETE | PlanAction.CANCEL:
            return todo.status == _LEADS_TO[PlanAction(event.action)]
    return False


def _title_before(event: Event, before: Sequence[Event]) -> str:
    titles = (
        str(each.payload()["title"])
        for each in reversed(before)
        if each.subject == event.subject and each.action in (PlanAction.CREATE, PlanAction.EDIT)
    )
    return next(titles, "")


def _undo(tx: Transaction, scope: TurnScope, event: Event, events: Sequence[Event], reason: str) -> TurnTodo:
    todo, before = find_todo(tx, scope, event.subject), events[: event.version - 1]
    undoes: dict[str, Any] = {UNDOES: event.version}
    match event.action:
        case PlanAction.CREATE:
            return end_todo(tx, scope, todo, PlanAction.CANCEL, reason, outcome=TAKEN_BACK, **undoes)
        case PlanAction.MOVE:
            position = replay_todos(scope.turn_id, before)[todo.id].priority + 1
            return move_todo(tx, scope, todo, position, reason, **undoes)
        case PlanAction.EDIT:
            title = _title_before(event, before)
            return advance_todo(tx, scope, todo, PlanAction.EDIT, reason, guard=lambda _: undoes, title=title)
    return advance_todo(
        *(tx, scope, todo, PlanAction.REOPEN, reason),
        guard=lambda _: undoes,
        verification=todo.verified().reopened().encode(),
        outcome=None,
        started_at=None,
        completed_at=None,
    )
