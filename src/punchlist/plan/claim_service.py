"""Transactions of claims on plan todos, so that several agents can work on one plan (X3).

A claim does not change its todo. Claiming locks the turn, as every writer of the plan does, so that
two agents never see the same todo as free.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from punchlist.claims import repository as claim_repository
from punchlist.claims import service as claim_steps
from punchlist.claims import validation as claim_validation
from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS, ClaimAction
from punchlist.claims.model import Claim, Claimant, ClaimGranted, ListKind, NothingToClaim
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Role
from punchlist.plan import condition_repository, repository
from punchlist.plan.conditions import reasons_without_resources, waiting_reasons
from punchlist.plan.lifecycle import OPEN, PLANNERS, PlanStatus
from punchlist.plan.model import TurnTodo, title_for, todo_change
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction


class PlanClaims:
    _store: Store

    def claim(
        self,
        scope: TurnScope,
        origin: str,
        todo_id: str | None = None,
        seconds: int = DEFAULT_LEASE_SECONDS,
        *,
        reason: str = "claim_todo",
    ) -> ClaimGranted[TurnTodo] | NothingToClaim:
        """Claim an open, unclaimed todo; without an id, the first one that is free.

        `origin` identifies the caller's process or connection.
        """
        by = _claimant(scope, origin, ClaimAction.CLAIM)
        with self._store.write() as tx:
            repository.lock_turn(tx, scope)
            found = _lock_next_free(tx, scope) if todo_id is None else _lock_free(tx, scope, todo_id, by)
            if found is None:
                return _nothing_to_claim(tx, scope)
            todo, before = found
            owner = (ListKind.PLAN, scope.turn_id)
            claim = claim_steps.take(tx, before, title_for(scope.actor.role)(todo), todo.id, owner, by, seconds)
            _append_event(tx, scope, ClaimAction.CLAIM, todo, reason, claim, until=claim.lease_until)
            return ClaimGranted(todo, claim)

    def renew_claim(
        self, scope: TurnScope, origin: str, todo_id: str, fence: int, seconds: int = DEFAULT_LEASE_SECONDS
    ) -> Claim:
        """Extend a claim. Writes no event: the log records who claimed a todo, not how often it was renewed."""
        by = _claimant(scope, origin, ClaimAction.RENEW)
        with self._store.write() as tx:
            repository.check_open(conversation_repository.find_turn(tx, scope.turn_id), scope)
            todo = repository.find_todo(tx, scope, todo_id)
            return claim_steps.renew(tx, title_for(scope.actor.role)(todo), todo.id, by, fence, seconds)

    def release_claim(
        self, scope: TurnScope, origin: str, todo_id: str, fence: int | None, *, reason: str = "release_claim"
    ) -> Claim:
        """Release a claim; a person can release any. Returns the claim as it was before."""
        by = _claimant(scope, origin, ClaimAction.RELEASE)
        with self._store.write() as tx:
            repository.lock_turn(tx, scope)
            todo = repository.find_todo(tx, scope, todo_id)
            claim = claim_steps.release(tx, title_for(scope.actor.role)(todo), todo.id, by, fence)
            _append_event(tx, scope, ClaimAction.RELEASE, todo, reason, claim)
            return claim


def with_claimed_in_progress(todos: Sequence[TurnTodo], claimed: Collection[str]) -> list[TurnTodo]:
    """For `waiting_reasons`: a claimed todo counts as in progress and holds the resources it needs."""
    if not claimed:
        return list(todos)
    return [
        todo._replace(status=PlanStatus.IN_PROGRESS)
        if todo.id in claimed and todo.status is PlanStatus.PENDING
        else todo
        for todo in todos
    ]


def waiting_reasons_for(tx: Transaction, scope: TurnScope, todo: TurnTodo) -> list[str]:
    """What one todo waits for; reads the plan only if the todo has conditions."""
    conditions = condition_repository.read_conditions(tx, todo.turn_id)
    if all(condition.todo_id != todo.id for condition in conditions):
        return []
    live = claim_repository.find_live(tx, ListKind.PLAN, todo.turn_id)
    todos = with_claimed_in_progress(repository.read_todos(tx, todo.turn_id), live)
    return waiting_reasons(todos, conditions, tx.now(), title_for(scope.actor.role)).get(todo.id, [])


def check_not_waiting(tx: Transaction, scope: TurnScope, todo: TurnTodo, ended: str = "completed") -> None:
    """Raise if the todo waits for a person, a time, an event or another todo (C10)."""
    by_id = {each.id: each for each in repository.read_todos(tx, todo.turn_id)}
    conditions = condition_repository.read_conditions(tx, todo.turn_id)
    name = title_for(scope.actor.role)
    if reasons := reasons_without_resources(by_id, conditions, tx.now(), name).get(todo.id):
        raise IllegalTransition(
            f"{name(todo)} cannot be {ended}: it waits for {'; for '.join(reasons)}. {while_waiting(scope)}"
        )


def while_waiting(scope: TurnScope) -> str:
    """What can be done about a todo that waits."""
    if scope.actor.role is Role.PERSON:
        return "Run `punchlist answer` to answer a question, or cancel the todo."
    return (
        "Leave it waiting and continue with another todo, or cancel it with a reason (status cancelled); when all "
        "remaining todos wait, end your turn."
    )


def _claimant(scope: TurnScope, origin: str, action: ClaimAction) -> Claimant:
    if scope.actor.role not in PLANNERS:
        roles = " or ".join(sorted(PLANNERS))
        raise NotAllowed(f"{scope.actor.role.described} may not {action} a plan todo; {roles} may.")
    return Claimant(scope, origin)


def _lock_next_free(tx: Transaction, scope: TurnScope) -> tuple[TurnTodo, Claim | None] | None:
    """The first free todo, and the lapsed or released claim on it."""
    while (todo := _first_free(tx, scope)) is not None:
        before = claim_repository.lock(tx, todo.id)
        # Renewal does not take the turn's lock and may have happened since the read.
        if not claim_validation.is_held(before, tx.now()):
            return todo, before
    return None


def _first_free(tx: Transaction, scope: TurnScope) -> TurnTodo | None:
    if not repository.has_conditions(tx, scope.turn_id):
        return repository.first_unclaimed(tx, scope.turn_id)
    live = claim_repository.find_live(tx, ListKind.PLAN, scope.turn_id)
    todos = repository.read_todos(tx, scope.turn_id)
    conditions = condition_repository.read_conditions(tx, scope.turn_id)
    waiting = waiting_reasons(with_claimed_in_progress(todos, live), conditions, tx.now())
    free = (t for t in todos if t.status is PlanStatus.PENDING and t.id not in live and t.id not in waiting)
    return next(free, None)


def _lock_free(tx: Transaction, scope: TurnScope, todo_id: str, by: Claimant) -> tuple[TurnTodo, Claim | None]:
    todo = repository.find_todo(tx, scope, todo_id)
    if todo.status not in OPEN:
        raise IllegalTransition(f"Cannot claim {title_for(scope.actor.role)(todo)}: it is {todo.status}.")
    claim = claim_repository.lock(tx, todo.id)
    if claim is not None and claim_validation.is_held(claim, tx.now()):
        raise claim_validation.already_claimed(claim, title_for(scope.actor.role)(todo), by)
    if reasons := waiting_reasons_for(tx, scope, todo):
        raise IllegalTransition(
            f"{title_for(scope.actor.role)(todo)} cannot be claimed yet. It waits for {'; for '.join(reasons)}."
        )
    return todo, claim


def _nothing_to_claim(tx: Transaction, scope: TurnScope) -> NothingToClaim:
    live = claim_repository.find_live(tx, ListKind.PLAN, scope.turn_id)
    counts = repository.TurnTodoRepository(tx).count_by_status(scope.turn_id)
    open_todos = counts[PlanStatus.PENDING] + counts[PlanStatus.IN_PROGRESS]
    until = min((claim.lease_until for claim in live.values()), default=None)
    return NothingToClaim(len(live), max(open_todos - len(live), 0), until)


def _append_event(
    tx: Transaction, scope: TurnScope, action: ClaimAction, todo: TurnTodo, reason: str, claim: Claim, **data: object
) -> None:
    data = {"title": todo.title, **claim_steps.claim_event_data(claim), **data}
    event_log.append(tx, todo_change(scope, action, todo.status, todo, reason, data))
