"""The todos of missions: their transactions, permission and limits.

Each change locks its mission's row, looks, counts and writes in one transaction: limits hold exactly,
whoever else writes (M2). Who may do what is in the table of `lifecycle.py`, and a caller that is bound
to a mission or a pillar acts nowhere else. Reading is in `todo_lists.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from punchlist.claims import service as claims
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.actors import Role
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt, visible
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import check_active, find_mission, find_pillar, lock_mission
from punchlist.missions.chats import service as chat_service
from punchlist.missions.chats.quote import block_quote, quote_verbatim
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.escalations.transitions import OVERDUE
from punchlist.missions.model import Mission, MissionScope, MissionTodo, NewMissionTodo, Pillar, TodoChange
from punchlist.missions.todos import deadlines
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos import validation as todo_validation
from punchlist.missions.todos.capacity import check_room, is_full, room_for_new
from punchlist.missions.todos.completion import check_not_passed, check_result_json, passed_since_work
from punchlist.missions.todos.execution import check_daily_limits, enqueue_execution
from punchlist.missions.todos.lifecycle import LEADS, MEMBERS, MISSION, OPEN, TodoAction, TodoPriority, TodoStatus
from punchlist.missions.todos.queries import TodoQueries
from punchlist.missions.todos.todo_drafts import draft_todo, find_repeated_request, metric_problem
from punchlist.missions.todos.transitions import (
    CHECK,
    WORK,
    answer_escalations,
    cancel_todo,
    end_claim,
    find_todo,
    insert_todo,
    update_todo,
)
from punchlist.missions.todos.validation import check_mission, check_pillar
from punchlist.runs import service as runs
from punchlist.runs.model import Run, RunKind
from punchlist.storage.store import Transaction

COLLECTOR: Final = "collector"
REPORTERS: Final = frozenset({Role.OWNER, Role.PERSON, Role.SYSTEM})


class MissionTodos(TodoQueries):
    def create(
        self, scope: MissionScope, mission_slug: str, new: NewMissionTodo, *, reason: str = "mission_todo_create"
    ) -> TodoChange:
        """A new todo: pending if there is a slot, else in the backlog, if there is room (M2)."""
        MISSION.check_role(TodoAction.CREATE, scope.actor.role)
        check_mission(scope, mission_slug)
        check_pillar(scope, new.pillar_slug)
        with self._store.read() as tx:
            mission = find_mission(tx, mission_slug)
            # To be refused takes no lock: those who ask in vain do not keep others waiting.
            if is_full(mission_repository.capacity(tx, mission)) and isinstance(
                done := _place(tx, scope, mission, new), TodoChange
            ):
                return done
        with self._store.write() as tx:
            mission = lock_mission(tx, mission_slug)
            placed = _place(tx, scope, mission, new)
            if isinstance(placed, TodoChange):
                return placed
            todo, told = placed.todo, placed.todo.justification or reason
            insert_todo(tx, scope, mission, placed.action, todo, told, target=placed.target.value)
            return TodoChange(todo, " ".join(placed.warnings) or None)

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
        if action not in todo_validation.UPDATES.values():
            raise InvalidInput(
                f"action: must be one of {', '.join(todo_validation.UPDATES)}, "
                f"got {todo_validation.display_value(action)}"
            )
        reason = todo_validation.parse_reason(reason)
        if problems := todo_validation.mismatched_fields(action, deadline is not None, priority is not None):
            raise InvalidInput(problems)
        if scope.actor.role is Role.OWNER and action in (TodoAction.PROMOTE, TodoAction.DEMOTE):
            self._recommend(scope, mission_slug, todo_id, action, reason)
        MISSION.check_role(action, scope.actor.role)
        with self._store.write() as tx:
            mission, todo, pillar = self._lock_todo(tx, scope, mission_slug, todo_id)
            status = MISSION.advance(todo.status, action, scope.actor.role)
            match action:
                case TodoAction.CANCEL:
                    return TodoChange(cancel_todo(tx, scope, mission, todo, reason))
                case TodoAction.START:
                    if scope.actor.role is not Role.PERSON:
                        check_daily_limits(tx, mission)
                    changed = update_todo(tx, scope, mission, action, todo, reason, status=status, started_at=tx.now())
                    return TodoChange(changed, run_id=enqueue_execution(tx, scope, pillar, changed, reason).id)
                case TodoAction.EXTEND:
                    until = _parse_deadline(tx, mission, deadline or "")
                    changed = update_todo(tx, scope, mission, action, todo, reason, deadline=until, overdue_at=None)
                    answer_escalations(tx, scope, mission, todo, f"extended to {until}: {reason}", OVERDUE)
                    return TodoChange(changed)
                case TodoAction.REPRIORITIZE:
                    return TodoChange(update_todo(tx, scope, mission, action, todo, reason, priority=priority))
            check_room(action, mission_repository.capacity(tx, mission))
            return TodoChange(update_todo(tx, scope, mission, action, todo, reason, status=status))

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
        """Call a todo done (M6). A check that has not passed since the last work is in the way, unless the Lead says
        why it is not (M16)."""
        MISSION.check_role(TodoAction.COMPLETE, scope.actor.role)
        outcome, override_reason = (
            todo_validation.parse_outcome(outcome),
            todo_validation.parse_override(override_reason),
        )
        with self._store.write() as tx:
            mission, todo, _ = self._lock_todo(tx, scope, mission_slug, todo_id)
            status = MISSION.advance(todo.status, TodoAction.COMPLETE, scope.actor.role)
            slugs = _known_metrics(tx, mission, metrics_impacted)
            passed = passed_since_work(todo)
            if not passed and override_reason is None:
                raise check_not_passed(todo)
            done = _complete(tx, scope, mission, todo, outcome, status, slugs, None if passed else override_reason)
            return TodoChange(done, run_id=_enqueue_collection(tx, scope, mission, slugs, todo).id if slugs else None)

    def todo_needing_check(self, scope: MissionScope, mission_slug: str, todo_id: str) -> MissionTodo | None:
        """The todo, if somebody who may complete it would have to have its check run first."""
        MISSION.check_role(TodoAction.COMPLETE, scope.actor.role)
        check_mission(scope, mission_slug)
        with self._store.read() as tx:
            todo = find_todo(tx, find_mission(tx, mission_slug), todo_id)
        return todo if todo.status is TodoStatus.IN_PROGRESS and not passed_since_work(todo) else None

    def record_check(self, scope: MissionScope, todo_id: str, passed: bool, detail: str = "") -> MissionTodo:
        """Keep what came of a todo's check."""
        if scope.actor.role not in LEADS:
            raise NotAllowed(
                f"{scope.actor.role.described} may not say whether the check of a mission todo has passed."
            )
        with self._store.write() as tx:
            mission, todo = _lock_todo_by_id(tx, scope, todo_id)
            if todo.completion_check is None:
                raise IllegalTransition(f"“{visible(todo.title)}” ({todo.id}) has no check.")
            if todo.status not in OPEN:
                raise IllegalTransition(f"“{visible(todo.title)}” ({todo.id}) is {todo.status}; its check is over.")
            told = "its check passed" if passed else "its check failed"
            result = check_result_json(passed, detail, tx.now())
            return update_todo(tx, scope, mission, CHECK, todo, told, check_result=result)

    def record_work(self, scope: MissionScope, todo_id: str) -> MissionTodo:
        """Somebody has worked on it: a check must pass anew. One that is not in progress stays as it is."""
        if scope.actor.role not in MEMBERS:
            raise NotAllowed(f"{scope.actor.role.described} may not work on a mission todo; its pillar's owner does.")
        with self._store.write() as tx:
            mission, todo = _lock_todo_by_id(tx, scope, todo_id)
            if todo.status is not TodoStatus.IN_PROGRESS:
                return todo
            return update_todo(tx, scope, mission, WORK, todo, "it was worked on", worked_at=tx.now())

    def report(
        self, scope: MissionScope, mission_slug: str, todo_id: str, result: str, *, fence: int | None = None
    ) -> TodoChange:
        """What came of the work, said in the TODO chat for the Lead to review (M8)."""
        if scope.actor.role not in REPORTERS:
            raise NotAllowed(f"{scope.actor.role.described} may not report on a mission todo; its pillar's owner does.")
        result = todo_validation.parse_result(result)
        with self._store.write() as tx:
            mission, todo, pillar = self._lock_todo(tx, scope, mission_slug, todo_id)
            if todo.status is not TodoStatus.IN_PROGRESS:
                raise IllegalTransition(
                    f"“{visible(todo.title)}” ({todo.id}) is {todo.status}; only work that is in progress is reported."
                )
            if scope.actor.role is Role.OWNER:
                claims.check_use(tx, f"“{visible(todo.title)}” ({todo.id})", todo.id, fence, scope.actor.role)
            changed = update_todo(tx, scope, mission, WORK, todo, "its result was reported", worked_at=tx.now())
            chat_service.post(
                tx,
                scope,
                pillar.todo_conversation_id,
                chat_service.TODO_RESULT,
                f"[TODO {todo.id}]\n{quote_verbatim(result)}",
            )
            return TodoChange(changed)

    def _recommend(self, scope: MissionScope, mission_slug: str, todo_id: str, action: TodoAction, reason: str) -> None:
        """An owner does not promote or demote: it is said to the Lead, and the owner is told so (M4)."""
        with self._store.write() as tx:
            mission, todo, pillar = self._lock_todo(tx, scope, mission_slug, todo_id)
            possible = action in MISSION.actions_from(todo.status)
            if possible:
                content = (
                    f"The owner of {visible(pillar.name)} recommends to {action} “{visible(todo.title)}” ({todo.id}), "
                    f"which is {todo.status}.\n{block_quote(reason)}"
                )
                chat_service.post(tx, scope, mission.conversation_id, chat_service.RECOMMENDATION, content)
        said = "It was posted to the mission chat as a recommendation." if possible else f"It is {todo.status} anyway."
        raise NotAllowed(f"An owner may not {action} a mission todo; the Lead decides. {said}")

    def _lock_todo(
        self, tx: Transaction, scope: MissionScope, mission_slug: str, todo_id: str
    ) -> tuple[Mission, MissionTodo, Pillar]:
        mission = _lock(tx, scope, mission_slug)
        todo = find_todo(tx, mission, todo_id)
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        assert pillar is not None
        check_pillar(scope, pillar.slug)
        return mission, todo, pillar


class _Placed(NamedTuple):
    """A new todo that there is room for."""

    todo: MissionTodo
    action: TodoAction
    target: TodoStatus
    """Where it was to go."""
    warnings: list[str]


def _place(tx: Transaction, scope: MissionScope, mission: Mission, new: NewMissionTodo) -> _Placed | TodoChange:
    """Where a new todo goes, or what the same request has made before."""
    check_active(mission)
    pillar = find_pillar(tx, mission, new.pillar_slug)
    draft, warnings = draft_todo(tx, scope, mission, pillar, new)
    if before := find_repeated_request(tx, mission, draft):
        return TodoChange(before, f"The request {before.request_id!r} was made before; this is the todo it made.")
    wanted = TodoAction.SHELVE if draft.status is TodoStatus.BACKLOG else TodoAction.CREATE
    action, warning = room_for_new(wanted, mission_repository.capacity(tx, mission))
    todo = draft._replace(status=MISSION.advance(NEW, action, scope.actor.role))
    return _Placed(todo, action, draft.status, [warning, *warnings] if warning else warnings)


def _lock(tx: Transaction, scope: MissionScope, mission_slug: str) -> Mission:
    check_mission(scope, mission_slug)
    return lock_mission(tx, mission_slug)


def _lock_todo_by_id(tx: Transaction, scope: MissionScope, todo_id: str) -> tuple[Mission, MissionTodo]:
    """A todo and its mission, which is locked."""
    before = todo_repository.find(tx, todo_id)
    mission = mission_repository.lock_mission(tx, before.mission_id) if before else None
    # Read again: somebody may have changed it before the lock was ours.
    todo = todo_repository.find(tx, todo_id)
    if mission is None or todo is None:
        raise NotFound(f"There is no mission todo {excerpt(todo_id)!r}.")
    check_active(mission)
    check_mission(scope, mission.slug)
    if scope.pillar_slug is not None:
        pillar = mission_repository.pillar(tx, todo.pillar_id)
        check_pillar(scope, pillar.slug if pillar else "")
    return mission, todo


def _enqueue_collection(
    tx: Transaction, scope: MissionScope, mission: Mission, slugs: list[str], todo: MissionTodo
) -> Run:
    return runs.enqueue(
        tx,
        scope,
        kind=RunKind.COLLECT,
        conversation_id=mission.conversation_id,
        agent=COLLECTOR,
        request={"metrics": slugs},
        mission_id=mission.id,
        reason=f"“{excerpt(todo.title)}” was completed",
    )


def _complete(
    tx: Transaction,
    scope: MissionScope,
    mission: Mission,
    todo: MissionTodo,
    outcome: str,
    status: TodoStatus,
    slugs: list[str],
    override_reason: str | None,
) -> MissionTodo:
    now = tx.now()
    done = update_todo(
        tx,
        scope,
        mission,
        TodoAction.COMPLETE,
        todo,
        outcome,
        {**end_claim(tx, todo), **({"metrics_impacted": slugs} if slugs else {})},
        status=status,
        outcome=outcome,
        completed_at=now,
        ended_at=now,
        override_reason=override_reason,
    )
    answer_escalations(tx, scope, mission, todo, f"completed: {excerpt(outcome, 500)}")
    return done


def _known_metrics(tx: Transaction, mission: Mission, slugs: Sequence[str]) -> list[str]:
    problems = [
        f"metricsImpacted[{index}]: {problem}"
        for index, slug in enumerate(slugs)
        if (problem := metric_problem(tx, mission, slug))
    ]
    if problems:
        raise InvalidInput(problems)
    return list(dict.fromkeys(slugs))


def _parse_deadline(tx: Transaction, mission: Mission, deadline: str) -> str:
    return deadlines.parse_future_deadline(deadline, cadence_of(mission).timezone, parse_timestamp(tx.now()))
