"""What every change of a mission's todo has in common, inside its transaction: row, event, and what follows.

The caller has locked the mission. The event's data has each column that changed, so that the row
can be told again from its events (`replay.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from punchlist.claims import repository as claim_records
from punchlist.claims import service as claims
from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, NotFound
from punchlist.kernel.actors import SYSTEM
from punchlist.kernel.text import excerpt
from punchlist.missions.changes import mission_event
from punchlist.missions.model import Mission, MissionTodo
from punchlist.missions.todos import repository as records
from punchlist.missions.todos.lifecycle import ESCALATION, LEADS, MISSION, EscalationAction, TodoAction
from punchlist.runs import service as runs
from punchlist.storage import event_log
from punchlist.storage.store import Transaction

CHECK: Final = "check"
"""The event that says what came of a todo's check."""
WORK: Final = "work"
"""The event that says that somebody has worked on a todo."""


def find_todo(tx: Transaction, mission: Mission, todo_id: str) -> MissionTodo:
    todo = records.find(tx, todo_id)
    if todo is None or todo.mission_id != mission.id:
        where = "belongs to another mission" if todo else f"is not in mission {mission.slug!r}"
        raise NotFound(f"Todo {excerpt(todo_id)!r} {where}. Call mission_todo_list for the ids of its todos.")
    return todo


def insert_todo(
    tx: Transaction, scope: Scope, mission: Mission, action: TodoAction, todo: MissionTodo, reason: str, **told: Any
) -> None:
    """Put a new todo on the list. `told` is what the event says besides."""
    records.insert_todo(tx, todo)
    said = {name: value for name, value in todo._asdict().items() if value is not None}
    event_log.append(tx, mission_event(scope, mission, action, todo.id, reason, {**said, **told}, to=todo.status))


def update_todo(
    tx: Transaction,
    scope: Scope,
    mission: Mission,
    action: str,
    todo: MissionTodo,
    reason: str,
    told: dict[str, Any] | None = None,
    **changes: Any,
) -> MissionTodo:
    """Change a todo that is still as it was read. `told` is what the event says besides."""
    changed = records.update_row(tx, todo, changes)
    if changed is None:
        raise Conflict(f"Todo {todo.id!r} was changed by somebody else at the same moment. List it again and retry.")
    data = {"title": todo.title, **changes, **(told or {})}
    event = mission_event(scope, mission, action, todo.id, reason, data, came_from=todo.status, to=changed.status)
    event_log.append(tx, event)
    return changed


def cancel_todo(tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, reason: str) -> MissionTodo:
    """It will not be done: its slot is free, its run is asked to stop, nobody is asked about it any more."""
    status = MISSION.advance(todo.status, TodoAction.CANCEL, scope.actor.role)
    told = end_claim(tx, todo)
    changes: dict[str, Any] = {"status": status, "outcome": reason, "ended_at": tx.now()}
    ended = update_todo(tx, scope, mission, TodoAction.CANCEL, todo, reason, told, **changes)
    answer_escalations(tx, scope, mission, todo, f"cancelled: {reason}")
    runs.stop_for_todo(tx, _permitted_scope(scope), todo.id, f"Its todo was cancelled: {excerpt(reason, 500)}")
    return ended


def end_claim(tx: Transaction, todo: MissionTodo) -> dict[str, Any]:
    """A todo that ends is nobody's any more; what its event says of that."""
    claim = claim_records.lock(tx, todo.id)
    return claims.end_claim(tx, claim if claim and claim.holder else None)


def answer_escalations(
    tx: Transaction, scope: Scope, mission: Mission, todo: MissionTodo, answer: str, kind: str | None = None
) -> None:
    """What was done to a todo answers what a person is asked about it; of one kind, or all."""
    by = _permitted_scope(scope)
    for asked in records.asked(tx, todo.id):
        if kind not in (None, asked.kind):
            continue
        status = ESCALATION.advance(asked.status, EscalationAction.ANSWER, by.actor.role)
        told: dict[str, Any] = {
            "status": status.value,
            "answer": answer,
            "answered_by": str(scope.actor),
            "answered_at": tx.now(),
        }
        if records.answer(tx, asked, asked._replace(**told)):
            told["todo_id"] = todo.id
            action = EscalationAction.ANSWER
            event = mission_event(
                by, mission, action, asked.id, answer[:2_000], told, came_from=asked.status, to=status
            )
            event_log.append(tx, event)


def _permitted_scope(scope: Scope) -> Scope:
    """What follows from a change by itself is the system's doing, where the one who made it may not do that."""
    return scope if scope.actor.role in LEADS else replace(scope, actor=SYSTEM)
