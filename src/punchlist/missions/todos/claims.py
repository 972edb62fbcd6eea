"""Claims on mission todos, so that several agents can work on one mission (X3).

Todos in progress can be claimed, the most urgent first, then the oldest. A claim keeps other agents from the work but
does not limit the Lead, who reviews it. The mission's limit bounds the number of todos in progress, so a search reads
all of them.
"""

from __future__ import annotations

from typing import Any

from punchlist.claims import repository as claim_repository
from punchlist.claims import service as claims
from punchlist.claims import validation as claim_rules
from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS, ClaimAction
from punchlist.claims.model import Claim, Claimant, ClaimGranted, ListKind, NothingToClaim
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.text import visible
from punchlist.missions.changes import find_pillar, lock_mission, mission_event
from punchlist.missions.model import Mission, MissionScope, MissionTodo
from punchlist.missions.todos import pagination
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import MEMBERS, TodoStatus
from punchlist.missions.todos.tools import todo_json
from punchlist.missions.todos.transitions import check_pillar_of, find_in_scope, find_todo
from punchlist.missions.todos.validation import check_mission, check_pillar
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction


class MissionClaims:
    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(
        self,
        scope: MissionScope,
        at: str,
        mission_slug: str,
        todo_id: str | None = None,
        seconds: int = DEFAULT_LEASE_SECONDS,
        *,
        pillar: str | None = None,
        reason: str = "claim_todo",
    ) -> ClaimGranted[MissionTodo] | NothingToClaim:
        """Claim an unclaimed todo in progress; without an id, the most urgent one.

        A caller bound to a pillar gets only todos of that pillar. `at` identifies the caller's process or connection.
        """
        by = _claimant(scope, at, ClaimAction.CLAIM)
        check_mission(scope, mission_slug)
        if pillar is not None:
            check_pillar(scope, pillar)
        with self._store.write() as tx:
            mission = lock_mission(tx, mission_slug)
            if todo_id is None:
                found = _next_free(tx, mission, pillar or scope.pillar_slug)
            else:
                found = _find_claimable(tx, scope, mission, todo_id)
            if isinstance(found, NothingToClaim):
                return found
            todo, before = found
            claim = claims.take(tx, before, _label(todo), todo.id, (ListKind.MISSION, mission.id), by, seconds)
            _append_event(
                tx,
                scope,
                mission,
                ClaimAction.CLAIM,
                todo,
                reason,
                until=claim.lease_until,
                **claims.claim_event_data(claim),
            )
            return ClaimGranted(todo, claim)

    def renew_claim(
        self, scope: MissionScope, at: str, todo_id: str, fence: int, seconds: int = DEFAULT_LEASE_SECONDS
    ) -> Claim:
        """Extend the lease; writes no event."""
        by = _claimant(scope, at, ClaimAction.RENEW)
        with self._store.write() as tx:
            _, todo = find_in_scope(tx, scope, todo_id, lock=False)
            return claims.renew(tx, _label(todo), todo.id, by, fence, seconds)

    def release_claim(
        self, scope: MissionScope, at: str, todo_id: str, fence: int | None, *, reason: str = "release_claim"
    ) -> Claim:
        """End a claim and return it as it was. A person can release the claim of any holder."""
        by = _claimant(scope, at, ClaimAction.RELEASE)
        with self._store.write() as tx:
            mission, todo = find_in_scope(tx, scope, todo_id, lock=True)
            claim = claims.release(tx, _label(todo), todo.id, by, fence)
            _append_event(tx, scope, mission, ClaimAction.RELEASE, todo, reason, **claims.claim_event_data(claim))
            return claim


class ClaimableMission:
    """Adapts `MissionClaims` to the claim tools."""

    def __init__(self, claims: MissionClaims, scope: MissionScope, at: str) -> None:
        """`at` identifies the caller's process or connection."""
        self._claims = claims
        self._scope = scope
        self._at = at

    def claim(
        self, todo_id: str | None, seconds: int, mission_slug: str | None
    ) -> tuple[dict[str, Any], Claim] | NothingToClaim:
        slug = mission_slug or self._scope.mission_slug
        if slug is None:
            raise InvalidInput("missionSlug: is required to claim a mission todo")
        claimed = self._claims.claim(self._scope, self._at, slug, todo_id, seconds)
        return (todo_json(claimed.todo), claimed.claim) if isinstance(claimed, ClaimGranted) else claimed

    def renew(self, todo_id: str, fence: int, seconds: int) -> Claim:
        return self._claims.renew_claim(self._scope, self._at, todo_id, fence, seconds)

    def release(self, todo_id: str, fence: int) -> Claim:
        return self._claims.release_claim(self._scope, self._at, todo_id, fence)


def _claimant(scope: MissionScope, at: str, action: ClaimAction) -> Claimant:
    if scope.actor.role not in MEMBERS:
        roles = " or ".join(sorted(MEMBERS))
        raise NotAllowed(f"{scope.actor.role.described} may not {action} a mission todo; {roles} may.")
    return Claimant(scope, at)


def _next_free(
    tx: Transaction, mission: Mission, pillar_slug: str | None
) -> tuple[MissionTodo, Claim | None] | NothingToClaim:
    """The most urgent unclaimed todo, and its expired claim."""
    pillar = find_pillar(tx, mission, pillar_slug) if pillar_slug is not None else None
    started = [
        todo
        for todo in todo_repository.open_in_mission(tx, mission.id)
        if todo.status is TodoStatus.IN_PROGRESS and (pillar is None or todo.pillar_id == pillar.id)
    ]
    held: list[Claim] = []
    for todo in sorted(started, key=pagination.sort_key):
        before = claim_repository.lock(tx, todo.id)
        if before is None or not claim_rules.is_held(before, tx.now()):
            return todo, before
        held.append(before)
    return NothingToClaim(len(held), 0, min((claim.lease_until for claim in held), default=None))


def _find_claimable(
    tx: Transaction, scope: MissionScope, mission: Mission, todo_id: str
) -> tuple[MissionTodo, Claim | None]:
    todo = find_todo(tx, mission, todo_id)
    check_pillar_of(tx, scope, todo)
    if todo.status is not TodoStatus.IN_PROGRESS:
        raise IllegalTransition(
            f"Cannot claim {_label(todo)}: it is {todo.status}; only todos in progress can be claimed."
        )
    return todo, claim_repository.lock(tx, todo.id)


def _label(todo: MissionTodo) -> str:
    return f"“{visible(todo.title)}” (id {todo.id})"


def _append_event(
    tx: Transaction,
    scope: MissionScope,
    mission: Mission,
    action: ClaimAction,
    todo: MissionTodo,
    reason: str,
    **data: Any,
) -> None:
    data = {"title": todo.title, **data}
    event_log.append(
        tx, mission_event(scope, mission, action, todo.id, reason, data, from_status=todo.status, to=todo.status)
    )
