"""Our lists as exchange items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.import_export.item import ExchangeItem
from punchlist.missions.todos import pagination
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan import condition_repository
from punchlist.plan.lifecycle import ConditionKind, ConditionStatus, PlanStatus
from punchlist.verification.model import Verification, check_json

if TYPE_CHECKING:
    from punchlist.checklist.model import Checklist
    from punchlist.conversations.model import TurnScope
    from punchlist.missions.model import MissionTodo
    from punchlist.missions.todos.service import MissionTodos
    from punchlist.plan.model import Condition, TurnTodo
    from punchlist.plan.service import Plans
    from punchlist.storage.store import Store


PAGE_SIZE = pagination.MAX_LIMIT


def checklist_items(checklist: Checklist) -> list[ExchangeItem]:
    return [
        ExchangeItem(
            item.content,
            item.id,
            # Other lists know no dropped items; they are open.
            status=TodoStatus.PENDING if item.status is ChecklistStatus.DROPPED else TodoStatus(item.status.value),
            active_form=item.active_form if item.active_form != item.content else "",
            outcome=item.reason,
            check=_check(item.verification),
        )
        for item in checklist.items
    ]


def turn_items(plans: Plans, store: Store, scope: TurnScope) -> list[ExchangeItem]:
    """The whole plan of a turn."""
    todos = plans.list(scope, frozenset(PlanStatus)).items
    with store.read() as tx:
        return plan_items(todos, condition_repository.read_conditions(tx, scope.turn_id))


def plan_items(todos: Sequence[TurnTodo], conditions: Iterable[Condition]) -> list[ExchangeItem]:
    """Resolved conditions are left out; dependencies on other todos are kept, ended or not."""
    ids = {todo.id for todo in todos}
    by_todo: dict[str, list[Condition]] = {}
    for condition in conditions:
        by_todo.setdefault(condition.todo_id, []).append(condition)
    return [_plan_item(todo, by_todo.get(todo.id, ()), ids) for todo in todos]


def _plan_item(todo: TurnTodo, conditions: Sequence[Condition], ids: set[str]) -> ExchangeItem:
    subjects: dict[ConditionKind, list[str]] = {}
    for condition in conditions:
        subjects.setdefault(condition.kind, []).append(condition.subject)
    return ExchangeItem(
        title=todo.title,
        id=todo.id,
        details=todo.context,
        status=TodoStatus(todo.status.value),
        blocked_by=tuple(subject for subject in subjects.get(ConditionKind.TODO, ()) if subject in ids),
        acceptance=todo.completion_criteria,
        owner=todo.agent_type or "",
        outcome=todo.outcome or "",
        waits=tuple(
            (condition.kind.value, condition.subject)
            for condition in conditions
            if condition.kind not in (ConditionKind.TODO, ConditionKind.RESOURCE)
            and condition.status is ConditionStatus.OPEN
        ),
        resources=tuple(subjects.get(ConditionKind.RESOURCE, ())),
        check=_check(todo.verified()),
        created_at=todo.created_at,
        started_at=todo.started_at or "",
        ended_at=todo.completed_at or "",
    )


def _check(verification: Verification) -> dict[str, Any] | None:
    """The check as an object, which the format has also for commands."""
    if verification.check is None:
        return None
    written = check_json(verification.check)
    return {"command": written} if isinstance(written, str) else written


def mission_items(todos: MissionTodos, mission: str, pillar: str | None) -> list[ExchangeItem]:
    return [_mission_item(todo, slug) for todo, slug in all_todos(todos, mission, pillar)]


def all_todos(todos: MissionTodos, mission: str, pillar: str | None = None) -> Iterator[tuple[MissionTodo, str | None]]:
    """All todos of a mission or pillar, including archived ones, with their pillars."""
    cursor = None
    while True:
        page = todos.list(mission, pillar=pillar, archived=True, limit=PAGE_SIZE, cursor=cursor)
        yield from ((todo, page.pillars.get(todo.pillar_id)) for todo in page.items)
        cursor = page.cursor
        if cursor is None:
            return


def _mission_item(todo: MissionTodo, pillar: str | None) -> ExchangeItem:
    check: dict[str, Any] | None = json.loads(todo.completion_check) if todo.completion_check else None
    return ExchangeItem(
        title=todo.title,
        id=todo.id,
        details=todo.description,
        status=todo.status,
        priority=todo.priority,
        acceptance=todo.completion_criteria,
        owner=todo.assigned_agent or "",
        outcome=todo.outcome or "",
        justification=todo.justification,
        deadline=todo.deadline or "",
        also_affects=tuple(json.loads(todo.also_affects)),
        check=check,
        created_at=todo.created_at,
        started_at=todo.started_at or "",
        ended_at=todo.ended_at or "",
        extra={"pillar": pillar} if pillar else {},
    )
