"""Mission todos: transactions, permission and limits.

Each change locks its mission's row, reads, counts and writes in one transaction, so that limits hold exactly under
concurrent writers (M2). The table in `lifecycle.py` says which role may do what; a caller bound to a mission or a
pillar acts nowhere else. The base classes of `MissionTodos` are in `queries.py`, `edits.py`, `links.py`,
`attachments.py` and `reports.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.events import Role
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import display_value, excerpt, visible
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionWrite, check_active, find_mission, find_pillar, lock_mission
from punchlist.missions.escalations.transitions import OVERDUE
from punchlist.missions.metrics import repository as metric_repository
from punchlist.missions.metrics.repository import CompletionMark
from punchlist.missions.metrics.service import COLLECTOR
from punchlist.missions.model import Mission, MissionScope, MissionTodo, NewMissionTodo, Pillar, TodoChange
from punchlist.missions.todos.attachments import TodoAttachments
from punchlist.missions.todos.edits import TodoEdits
from punchlist.missions.todos.lifecycle import LEADS, MEMBERS, MISSION, OPEN, TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.links import TodoLinks, add_link, check_not_blocked
from punchlist.missions.todos.recommend import recommend
from punchlist.missions.todos.reports import TodoReports, send_back
from punchlist.missions.todos.todo_drafts import (
    draft_todo,
    find_repeated_request,
    metric_problem,
    parse_new_deadline,
)
from punchlist.missions.todos.transitions import (
    CHECK,
    WORK,
    advance_todo,
    answer_escalations,
    cancel_todo,
    check_daily_limits,
    end_claim,
    enqueue_execution,
    find_todo,
    insert_todo,
    lock_in_scope,
    lock_todo,
    open_children,
    update_todo,
)
from punchlist.missions.todos.validation import (
    MAX_REASON_LENGTH,
    UPDATES,
    check_mission,
    check_not_passed,
    check_pillar,
    check_result_json,
    check_room,
    choose_list,
    is_backlog_full,
    mismatched_fields,
    parse_block,
    passed_since_work,
)
from punchlist.runs import service as runs
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Transaction

_FIELDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    **dict.fromkeys(UPDATES, ((), ())),
    TodoAction.EXTEND: (("deadline",), ()),
    TodoAction.REPRIORITIZE: (("priority",), ()),
}
OWNER_UPDATES: Final = frozenset({TodoAction.CANCEL})
"""The updates that an owner makes itself; the others become recommendations."""


class MissionTodos(TodoEdits, TodoLinks, TodoAttachments, TodoReports):
    def create(
        self, scope: MissionScope, mission_slug: str, new: NewMissionTodo, *, reason: str = "mission_todo_create"
    ) -> TodoChange:
        """Create a todo: pending while the active list has room, else in the backlog (M2)."""
        MISSION.check_role(TodoAction.CREATE, scope.actor.role)
        check_mission(scope, mission_slug)
        check_pillar(scope, new.pillar_slug)
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            # A request that will be refused must not take the lock and delay other writers.
            if is_backlog_full(mission_repository.capacity(tx, mission)) and isinstance(
                done := _place(tx, scope, mission, new), TodoChange
            ):
                return done
        with self._store.write() as tx:
            return create_todo(lock_mission(tx, scope, mission_slug), scope, new, reason)

    def update(
        self,
        scope: MissionScope,
        mission_slug: str,
        todo_id: str,
        action: TodoAction,
        reason: str,
        *,
        deadline: str | None = None,
        priority: TodoPriority | None = None,
    ) -> TodoChange:
        """Promote, demote, start, cancel, extend or reprioritize a todo, for a reason (M4, M5)."""
        if action not in UPDATES.values():
            raise InvalidInput(f"action: must be one of {', '.join(UPDATES)}, got {display_value(action)}")
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        values = {"deadline": deadline, "priority": priority}
        given = [name for name, value in values.items() if value is not None]
        if problems := mismatched_fields(action, given, _FIELDS):
            raise InvalidInput(problems)
        if scope.actor.role is Role.OWNER and action not in OWNER_UPDATES:
            recommend(self._store, scope, mission_slug, todo_id, action, reason, {n: str(values[n]) for n in given})
        MISSION.check_role(action, scope.actor.role)
        with self._store.write() as tx:
            write, todo, pillar = lock_todo(tx, scope, mission_slug, todo_id)
            return apply_update(write, todo, pillar, action, reason, deadline=deadline, priority=priority)

    def complete(
        self,
        scope: MissionScope,
        mission_slug: str,
        todo_id: str,
        outcome: str,
        *,
        metrics_impacted: Sequence[str] = (),
        override_reason: str | None = None,
    ) -> TodoChange:
        """Complete a todo (M6). Its check must have passed since the last work, unless `override_reason` says why it
        need not (M16)."""
        MISSION.check_role(TodoAction.COMPLETE, scope.actor.role)
        outcome = parse_block("outcome", outcome)
        if override_reason is not None:
            override_reason = parse_block("overrideReason", override_reason, MAX_REASON_LENGTH)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            slugs = list(dict.fromkeys(metrics_impacted))
            passed, now = passed_since_work(todo), tx.now()

            def guard(todo: MissionTodo) -> dict[str, Any]:
                _check_metrics(write, metrics_impacted)
                _check_children(write, todo)
                if not passed and override_reason is None:
                    raise check_not_passed(todo)
                return {**end_claim(tx, todo), **({"metrics_impacted": slugs} if slugs else {})}

            completed = advance_todo(
                write,
                todo,
                TodoAction.COMPLETE,
                outcome,
                guard=guard,
                outcome=outcome,
                completed_at=now,
                ended_at=now,
                override_reason=None if passed else override_reason,
            )
            metrics = {metric.slug: metric.id for metric in mission_repository.metrics_of(tx, todo.mission_id)}
            for slug in slugs:
                metric_repository.INSERT_MARK(tx, CompletionMark(metrics[slug], now, todo.id))
            answer_escalations(write, todo, f"completed: {excerpt(outcome, 500)}")
            run = _enqueue_collection(write, slugs, todo) if slugs else None
            return TodoChange(completed, run_id=run.id if run else None)

    def todo_needing_check(self, scope: MissionScope, mission_slug: str, todo_id: str) -> MissionTodo | None:
        """The todo, when its check must run before the caller can complete it."""
        MISSION.check_role(TodoAction.COMPLETE, scope.actor.role)
        check_mission(scope, mission_slug)
        with self._store.read() as tx:
            todo = find_todo(tx, find_mission(tx, mission_slug), todo_id)
        return todo if todo.status is TodoStatus.IN_PROGRESS and not passed_since_work(todo) else None

    def record_check(self, scope: MissionScope, todo_id: str, passed: bool, detail: str = "") -> MissionTodo:
        """Store the result of a todo's check."""
        if scope.actor.role not in LEADS:
            raise NotAllowed(f"{scope.actor.role.described} may not record the result of a mission todo's check.")
        with self._store.write() as tx:
            write, todo = lock_in_scope(tx, scope, todo_id)
            if todo.completion_check is None:
                raise IllegalTransition(f"“{visible(todo.title)}” ({todo.id}) has no check.")
            if todo.status not in OPEN:
                raise IllegalTransition(
                    f"“{visible(todo.title)}” ({todo.id}) is {todo.status}; its check can no longer change."
                )
            reason = "its check passed" if passed else "its check failed"
            result = check_result_json(passed, detail, tx.now())
            return update_todo(write, CHECK, todo, reason, check_result=result)

    def record_work(self, scope: MissionScope, todo_id: str) -> MissionTodo:
        """Note work on a todo in progress: its check must pass again. Other todos stay unchanged."""
        if scope.actor.role not in MEMBERS:
            raise NotAllowed(
                f"{scope.actor.role.described} may not work on a mission todo; the owner of its pillar may."
            )
        with self._store.write() as tx:
            write, todo = lock_in_scope(tx, scope, todo_id)
            if todo.status is not TodoStatus.IN_PROGRESS:
                return todo
            return update_todo(write, WORK, todo, "it was worked on", worked_at=tx.now())


def apply_update(
    write: MissionWrite,
    todo: MissionTodo,
    pillar: Pillar,
    action: TodoAction,
    reason: str,
    *,
    deadline: str | None = None,
    priority: TodoPriority | None = None,
) -> TodoChange:
    """`MissionTodos.update` inside the caller's transaction."""
    tx, scope = write.tx, write.scope
    advance = partial(advance_todo, write, todo, action, reason)
    match action:
        case TodoAction.CANCEL:
            return TodoChange(cancel_todo(write, todo, reason))
        case TodoAction.START:
            limited = scope.actor.role is not Role.PERSON
            started = advance(guard=lambda todo: _check_start(write, todo, limited), started_at=tx.now())
            return TodoChange(started, run_id=enqueue_execution(tx, scope, pillar, started, reason).id)
        case TodoAction.EXTEND:
            MISSION.advance(todo.status, action, scope.actor.role)
            return TodoChange(extend_todo(write, todo, deadline, reason))
        case TodoAction.REPRIORITIZE:
            return TodoChange(advance(priority=priority))
        case TodoAction.RESUME:
            return send_back(write, todo, pillar, reason)
    capacity = mission_repository.capacity(tx, write.mission)
    return TodoChange(advance(guard=lambda _: check_room(action, capacity)))


class _Placement(NamedTuple):
    """A new todo and the list it goes to."""

    todo: MissionTodo
    action: TodoAction
    target: TodoStatus
    """The requested status."""
    warnings: list[str]


def create_todo(write: MissionWrite, scope: MissionScope, new: NewMissionTodo, reason: str) -> TodoChange:
    """`MissionTodos.create` inside the caller's transaction."""
    placed = _place(write.tx, scope, write.mission, new)
    if isinstance(placed, TodoChange):
        return placed
    todo = placed.todo
    insert_todo(write, placed.action, todo, todo.justification or reason, target=placed.target.value)
    warnings = [*placed.warnings, *(add_link(write, todo, link, reason, scope) for link in new.links)]
    return TodoChange(todo, " ".join(filter(None, warnings)) or None)


def _place(tx: Transaction, scope: MissionScope, mission: Mission, new: NewMissionTodo) -> _Placement | TodoChange:
    """Choose the list of a new todo; the existing todo when the request is repeated."""
    check_active(mission)
    pillar = find_pillar(tx, mission, new.pillar_slug)
    draft, warnings = draft_todo(tx, scope, mission, pillar, new)
    if before := find_repeated_request(tx, mission, draft):
        return TodoChange(before, f"Request {before.request_id!r} was made before; this is the todo it created.")
    requested = TodoAction.SHELVE if draft.status is TodoStatus.BACKLOG else TodoAction.CREATE
    action, warning = choose_list(requested, mission_repository.capacity(tx, mission))
    todo = draft._replace(status=MISSION.advance(NEW, action, scope.actor.role))
    return _Placement(todo, action, draft.status, [warning, *warnings] if warning else warnings)


def _check_start(write: MissionWrite, todo: MissionTodo, limited: bool) -> None:
    check_not_blocked(write.tx, todo)
    if limited:
        check_daily_limits(write)


def _check_children(write: MissionWrite, todo: MissionTodo) -> None:
    if unfinished := open_children(write.tx, todo):
        names = ", ".join(f"“{visible(child.title)}” ({child.status})" for child in unfinished[:5])
        more = f" and {len(unfinished) - 5} more" if len(unfinished) > 5 else ""
        raise IllegalTransition(
            f"“{visible(todo.title)}” cannot be completed: its sub-items {names}{more} are open. Complete or cancel "
            "them first."
        )


def _enqueue_collection(write: MissionWrite, slugs: list[str], todo: MissionTodo) -> Run:
    return runs.enqueue(
        write.tx,
        write.scope,
        kind=RunKind.COLLECT,
        conversation_id=write.mission.conversation_id,
        agent=COLLECTOR,
        request={"metrics": slugs},
        mission_id=write.mission.id,
        reason=f"“{excerpt(todo.title)}” was completed",
    )


def _check_metrics(write: MissionWrite, slugs: Sequence[str]) -> None:
    problems = [
        f"metricsImpacted[{index}]: {problem}"
        for index, slug in enumerate(slugs)
        if (problem := metric_problem(write.tx, write.mission, slug))
    ]
    if problems:
        raise InvalidInput(problems)


def extend_todo(write: MissionWrite, todo: MissionTodo, deadline: str | None, reason: str) -> MissionTodo:
    """Set a new deadline, which must be in the future; that answers the question about the old one."""
    until = parse_new_deadline(write, deadline)
    changed = advance_todo(write, todo, TodoAction.EXTEND, reason, deadline=until, overdue_at=None)
    answer_escalations(write, todo, f"extended to {until}: {reason}", OVERDUE)
    return changed
