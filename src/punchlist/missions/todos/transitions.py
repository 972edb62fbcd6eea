"""Creates and changes mission todos: row, event and consequences, such as a run, in the caller's transaction.

The event's data contains each changed column, so that `replay.py` can rebuild the
row from its events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from punchlist.claims import repository as claim_repository
from punchlist.claims import service as claims
from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, IllegalTransition, NotFound
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.events import SYSTEM
from punchlist.kernel.text import excerpt
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite, check_active, lock_mission
from punchlist.missions.config.policy import policy_of
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.lifecycle import EscalationAction
from punchlist.missions.escalations.transitions import advance_escalation
from punchlist.missions.model import Mission, MissionScope, MissionTodo, Pillar
from punchlist.missions.recommendations.transitions import settle_recommendations
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import LEADS, MISSION, TodoAction
from punchlist.missions.todos.validation import check_mission, check_pillar
from punchlist.runs import service as runs
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Transaction

CHECK: Final = "check"
"""The event that records the result of a todo's check."""
WORK: Final = "work"
"""The event that records work on a todo."""
_MAX_REASON_LENGTH: Final = 2_000
PILLAR_OWNER: Final = "pillar-owner"
_DAY: Final = timedelta(days=1)


def find_todo(tx: Transaction, mission: Mission, todo_id: str) -> MissionTodo:
    todo = todo_repository.find(tx, todo_id)
    if todo is None or todo.mission_id != mission.id:
        where = "belongs to another mission" if todo else f"is not in mission {mission.slug!r}"
        raise NotFound(f"Todo {excerpt(todo_id)!r} {where}. Call mission_todo_list for the ids of its todos.")
    return todo


def lock_in_scope(tx: Transaction, scope: MissionScope, todo_id: str) -> tuple[MissionWrite, MissionTodo]:
    """A todo and its locked mission, checked against the caller's scope."""
    mission, _ = find_in_scope(tx, scope, todo_id, lock=True)
    # Read again: another writer may have changed it before we held the lock.
    return MissionWrite(tx, scope, mission), find_todo(tx, mission, todo_id)


def lock_todo(
    tx: Transaction, scope: MissionScope, mission_slug: str, todo_id: str
) -> tuple[MissionWrite, MissionTodo, Pillar]:
    """A todo of a mission, its locked mission and its pillar, checked against the caller's scope."""
    check_mission(scope, mission_slug)
    write = lock_mission(tx, scope, mission_slug)
    todo = find_todo(tx, write.mission, todo_id)
    pillar = mission_repository.pillar(tx, todo.pillar_id)
    assert pillar is not None
    check_pillar(scope, pillar.slug)
    return write, todo, pillar


def find_in_scope(
    tx: Transaction, scope: MissionScope, todo_id: str, *, lock: bool = False
) -> tuple[Mission, MissionTodo]:
    """A todo and its mission, checked against the caller's scope; `lock` locks the mission."""
    todo = todo_repository.find(tx, todo_id)
    read_mission = mission_repository.lock_mission if lock else mission_repository.mission
    mission = read_mission(tx, todo.mission_id) if todo else None
    if mission is None or todo is None:
        raise NotFound(f"There is no mission todo {excerpt(todo_id)!r}.")
    check_active(mission)
    check_mission(scope, mission.slug)
    check_pillar_of(tx, scope, todo)
    return mission, todo


def check_pillar_of(tx: Transaction, scope: MissionScope, todo: MissionTodo) -> None:
    if scope.pillar_slug is not None:
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        check_pillar(scope, pillar.slug if pillar else "")


def insert_todo(write: MissionWrite, action: TodoAction, todo: MissionTodo, reason: str, **extra: Any) -> None:
    """`extra` is added to the event's data."""
    todo_repository.insert_todo(write.tx, todo)
    data = {name: value for name, value in todo._asdict().items() if value is not None}
    write.append(action, todo.id, reason, {**data, **extra}, to=todo.status)


def advance_todo(
    write: MissionWrite,
    todo: MissionTodo,
    action: TodoAction,
    reason: str,
    *,
    guard: Callable[[MissionTodo], Mapping[str, Any] | None] | None = None,
    **changes: Any,
) -> MissionTodo:
    """Take a todo one step along its lifecycle. `guard` may refuse, or return data for the event."""
    update, data = todo_repository.update_row, {"title": todo.title}
    changed = write.advance(MISSION, todo, action, reason, update=update, data=data, changes=changes, guard=guard)
    settle_recommendations(write, changed, action, reason)
    return changed


def update_todo(write: MissionWrite, action: str, todo: MissionTodo, reason: str, **changes: Any) -> MissionTodo:
    """Change columns without a step of the lifecycle."""
    changed = todo_repository.update_row(write.tx, todo, changes)
    if changed is None:
        raise Conflict(f"Another writer changed todo {todo.id!r} at the same moment. List it again and retry.")
    data = {"title": todo.title, **changes}
    write.append(action, todo.id, reason, data, from_status=todo.status, to=todo.status)
    return changed


def cancel_todo(write: MissionWrite, todo: MissionTodo, reason: str) -> MissionTodo:
    """Free the slot, end the claim, answer the open questions, stop the run and cancel the open sub-items."""
    tx = write.tx
    ended = {"outcome": reason, "ended_at": tx.now()}
    cancelled = advance_todo(write, todo, TodoAction.CANCEL, reason, guard=lambda _: end_claim(tx, todo), **ended)
    answer_escalations(write, todo, f"cancelled: {reason}")
    runs.stop_for_todo(tx, _permitted_scope(write.scope), todo.id, f"Its todo was cancelled: {excerpt(reason, 500)}")
    for child in open_children(tx, todo):
        cancel_todo(write, child, excerpt(f"Its parent was cancelled: {reason}", _MAX_REASON_LENGTH))
    return cancelled


def open_children(tx: Transaction, todo: MissionTodo) -> list[MissionTodo]:
    children = todo_repository.children(tx, mission_id=todo.mission_id, parent_id=todo.id)
    return [child for child in children if child.ended_at is None]


def end_claim(tx: Transaction, todo: MissionTodo) -> dict[str, Any]:
    """End the claim on a todo that ends; the data for its event."""
    claim = claim_repository.lock(tx, todo.id)
    return claims.end_claim(tx, claim if claim and claim.holder else None)


def answer_escalations(write: MissionWrite, todo: MissionTodo, answer: str, kind: str | None = None) -> None:
    """Answer the open questions about a todo after a change that settles them: those of one kind, or all."""
    permitted = replace(write, scope=_permitted_scope(write.scope))
    given = {"answer": answer, "answered_by": str(write.scope.actor), "answered_at": write.tx.now()}
    for escalation in escalation_repository.unanswered_of_todo(write.tx, todo.id):
        if kind in (None, escalation.kind):
            reason = answer[:_MAX_REASON_LENGTH]
            advance_escalation(permitted, escalation, EscalationAction.ANSWER, reason, **given)


def enqueue_execution(tx: Transaction, scope: Scope, pillar: Pillar, todo: MissionTodo, reason: str) -> Run:
    """Queue the run in which the pillar's owner works on the todo, in the pillar's TODO chat."""
    return runs.enqueue(
        tx,
        scope,
        kind=RunKind.EXECUTE,
        conversation_id=pillar.todo_conversation_id,
        agent=PILLAR_OWNER,
        request={"todoId": todo.id, "title": todo.title},
        mission_id=todo.mission_id,
        pillar_id=todo.pillar_id,
        todo_id=todo.id,
        reason=reason,
    )


def check_daily_limits(write: MissionWrite) -> None:
    """Stops work that creates work: agents start a limited number of todos per day, for a limited cost."""
    tx, mission = write.tx, write.mission
    policy = policy_of(mission)
    since = timestamp(parse_timestamp(tx.now()) - _DAY)
    started, cost = todo_repository.runs_since(tx, mission.id, RunKind.EXECUTE.value, since)
    if started >= policy.max_starts_per_day:
        raise IllegalTransition(
            f"{started} todos of mission {mission.slug!r} were started within a day, the limit (maxStartsPerDay). "
            "Wait, or ask a person to start more."
        )
    if cost >= policy.max_cost_per_day:
        raise IllegalTransition(
            f"The runs of mission {mission.slug!r} have cost ${cost:.2f} within a day, the limit (maxCostPerDay). "
            "Wait, or ask a person to start more."
        )


def _permitted_scope(scope: Scope) -> Scope:
    """Consequences of a change are the system's where the role of the caller does not permit them."""
    return scope if scope.actor.role in LEADS else replace(scope, actor=SYSTEM)
