"""The transactions of claims on a plan, so that several agents can work on one (X3).

A claim changes nothing about its todo. Writers of the plan's trail take turns on the turn's row, so do
those who claim: two never see the same todo as free. The next free one is found by an index over what is
pending; what waits for something is looked at only in plans that have conditions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from punchlist.claims import repository as claim_records
from punchlist.claims import service as claims
from punchlist.claims import validation as claim_rules
from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS, ClaimAction
from punchlist.claims.model import Claim, Claimant, ClaimGranted, ListKind, NothingToClaim
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Change
from punchlist.plan import snapshot as plan_snapshot
from punchlist.plan.conditions import title_with_id, waiting_reasons
from punchlist.plan.lifecycle import OPEN, PLANNERS, PlanStatus
from punchlist.plan.model import TurnTodo, todo_from_row
from punchlist.plan.repository import COLUMNS, TurnTodoRepository
from punchlist.plan.transitions import check_open, find_todo, lock_turn, plan_stream
from punchlist.storage import event_log
from punchlist.storage.statements import Statement, columns
from punchlist.storage.store import Store, Transaction

_PRIORITY: Final = COLUMNS.index("priority")
PAGE: Final = 50
# A few at a time, with their claims: most that are held are at the beginning. To leave out what is held in the same
# statement lets PostgreSQL, as long as it knows little of the tables, look at all of them for each. The status is
# written out, so that the index over what is pending is seen to serve.
NEXT: Final = Statement(
    f"SELECT {columns(COLUMNS, of='few')}, claims.holder, claims.lease_until FROM ("
    f"SELECT {columns(COLUMNS)} FROM turn_todos "
    f"WHERE turn_id = :turn_id AND status = '{PlanStatus.PENDING}' AND priority > :after ORDER BY priority LIMIT {PAGE}"
    ") AS few LEFT JOIN claims ON claims.todo_id = few.id ORDER BY few.priority"
)
ANY_CONDITIONS: Final = Statement("SELECT id FROM todo_conditions WHERE turn_id = :turn_id LIMIT 1")


class PlanClaims:
    """Who works on which todo."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(
        self,
        scope: TurnScope,
        at: str,
        todo_id: str | None = None,
        seconds: int = DEFAULT_LEASE_SECONDS,
        *,
        reason: str = "claim_todo",
    ) -> ClaimGranted[TurnTodo] | NothingToClaim:
        """Take a todo that is open and nobody's; without an id, the first of the plan that is free.

        `at` is the process or the connection that the caller works in.
        """
        by = _claimant(scope, at, ClaimAction.CLAIM)
        with self._store.write() as tx:
            lock_turn(tx, scope)
            found = _next(tx, scope) if todo_id is None else _named(tx, scope, todo_id, by)
            if found is None:
                return _nothing(tx, scope)
            todo, before = found
            of = (ListKind.PLAN, scope.turn_id)
            claim = claims.take(tx, before, title_with_id(todo), todo.id, of, by, seconds)
            told = {**claims.claim_event_data(claim), "until": claim.lease_until}
            event_log.append(tx, _change(scope, ClaimAction.CLAIM, todo, reason, told))
            return ClaimGranted(todo, claim)

    def renew_claim(
        self, scope: TurnScope, at: str, todo_id: str, fence: int, seconds: int = DEFAULT_LEASE_SECONDS
    ) -> Claim:
        """Keep a todo for longer. Leaves no event: what matters is who took it, not how often it was kept."""
        by = _claimant(scope, at, ClaimAction.RENEW)
        with self._store.write() as tx:
            check_open(conversation_repository.find_turn(tx, scope.turn_id), scope)
            todo = find_todo(TurnTodoRepository(tx), scope, todo_id)
            return claims.renew(tx, title_with_id(todo), todo.id, by, fence, seconds)

    def release_claim(
        self, scope: TurnScope, at: str, todo_id: str, fence: int | None, *, reason: str = "release_claim"
    ) -> Claim:
        """Give a todo back; a person can take it from anybody. The claim as it was."""
        by = _claimant(scope, at, ClaimAction.RELEASE)
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(TurnTodoRepository(tx), scope, todo_id)
            claim = claims.release(tx, title_with_id(todo), todo.id, by, fence)
            event_log.append(tx, _change(scope, ClaimAction.RELEASE, todo, reason, claims.claim_event_data(claim)))
            return claim


def check_claim(tx: Transaction, scope: TurnScope, todo: TurnTodo, fence: int | None) -> Claim | None:
    """The claim on a todo that is about to be started or ended, when the caller may do that."""
    return claims.check_use(tx, title_with_id(todo), todo.id, fence, scope.actor.role)


def with_claimed_in_progress(todos: Sequence[TurnTodo], claimed: Collection[str]) -> list[TurnTodo]:
    """As `waits` is to see them: what somebody holds is worked on, and has the resources that it needs."""
    if not claimed:
        return list(todos)
    return [
        todo._replace(status=PlanStatus.IN_PROGRESS)
        if todo.id in claimed and todo.status is PlanStatus.PENDING
        else todo
        for todo in todos
    ]


def waiting_reasons_for(tx: Transaction, todo: TurnTodo) -> list[str]:
    """What one todo waits for; the plan is only read for it when it has conditions."""
    conditions = plan_snapshot.read_conditions(tx, todo.turn_id)
    if all(one.todo_id != todo.id for one in conditions):
        return []
    live = claim_records.find_live(tx, ListKind.PLAN, todo.turn_id)
    return waiting_reasons(
        with_claimed_in_progress(plan_snapshot.read_todos(tx, todo.turn_id), live), conditions, tx.now()
    ).get(todo.id, [])


def _claimant(scope: TurnScope, at: str, action: ClaimAction) -> Claimant:
    if scope.actor.role not in PLANNERS:
        who = " or ".join(sorted(PLANNERS))
        raise NotAllowed(f"{scope.actor.role.described} may not {action} a plan todo; {who} may.")
    return Claimant(scope, at)


def _next(tx: Transaction, scope: TurnScope) -> tuple[TurnTodo, Claim | None] | None:
    """The first that is free, and the claim that was on it."""
    while (todo := _first_free(tx, scope)) is not None:
        before = claim_records.lock(tx, todo.id)
        # Whoever renews does not wait for the plan's lock, and may have done so at the last moment.
        if not claim_rules.is_held(before, tx.now()):
            return todo, before
    return None


def _first_free(tx: Transaction, scope: TurnScope) -> TurnTodo | None:
    if tx.one(ANY_CONDITIONS, turn_id=scope.turn_id) is None:
        after, now = -1, tx.now()
        while rows := tx.all(NEXT, turn_id=scope.turn_id, after=after):
            for *todo, holder, lease_until in rows:
                if holder is None or lease_until <= now:
                    return todo_from_row(tuple(todo))
            after = rows[-1][_PRIORITY]
        return None
    live = claim_records.find_live(tx, ListKind.PLAN, scope.turn_id)
    todos = plan_snapshot.read_todos(tx, scope.turn_id)
    waiting = waiting_reasons(
        with_claimed_in_progress(todos, live), plan_snapshot.read_conditions(tx, scope.turn_id), tx.now()
    )
    free = (t for t in todos if t.status is PlanStatus.PENDING and t.id not in live and t.id not in waiting)
    return next(free, None)


def _named(tx: Transaction, scope: TurnScope, todo_id: str, by: Claimant) -> tuple[TurnTodo, Claim | None]:
    todo = find_todo(TurnTodoRepository(tx), scope, todo_id)
    if todo.status not in OPEN:
        raise IllegalTransition(f"Cannot claim {title_with_id(todo)}: it is {todo.status}.")
    claim = claim_records.lock(tx, todo.id)
    if claim is not None and claim_rules.is_held(claim, tx.now()):
        raise claim_rules.already_claimed(claim, title_with_id(todo), by)
    if waits_for := waiting_reasons_for(tx, todo):
        raise IllegalTransition(
            f"{title_with_id(todo)} cannot be claimed yet. It waits for {'; for '.join(waits_for)}."
        )
    return todo, claim


def _nothing(tx: Transaction, scope: TurnScope) -> NothingToClaim:
    live = claim_records.find_live(tx, ListKind.PLAN, scope.turn_id)
    open_ones = sum(1 for _, status, _ in TurnTodoRepository(tx).find_titles(scope.turn_id) if status in OPEN)
    until = min((claim.lease_until for claim in live.values()), default=None)
    return NothingToClaim(len(live), max(open_ones - len(live), 0), until)


def _change(scope: TurnScope, action: ClaimAction, todo: TurnTodo, reason: str, told: dict[str, object]) -> Change:
    return Change(
        stream=plan_stream(scope.turn_id),
        conversation_id=scope.conversation_id,
        actor=str(scope.actor),
        action=action,
        subject=todo.id,
        from_status=todo.status,
        to_status=todo.status,
        reason=reason,
        data={"title": todo.title, **told},
    )
