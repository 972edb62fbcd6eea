"""Claims on mission todos, so that several agents can work on one mission (X3).

Todos in progress can be claimed, the most urgent first, then the oldest. A claim keeps other agents from the work but
does not limit the Lead, who reviews it. The mission's limit bounds the number of todos in progress, so a search reads
all of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from punchlist.claims import repository as claim_repository
from punchlist.claims import service as claims
from punchlist.claims import validation as claim_rules
from punchlist.claims.lifecycle import DEFAULT_LEASE_SECONDS, ClaimAction
from punchlist.claims.model import Claim, Claimant, ClaimGranted, ListKind, NothingToClaim
from punchlist.claims.tools import ClaimableList
from punchlist.errors import IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.text import visible
from punchlist.missions.changes import MissionWrite, find_pillar, lock_mission
from punchlist.missions.model import Mission, MissionScope, MissionTodo
from punchlist.missions.todos import pagination
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import MEMBERS, TodoStatus
from punchlist.missions.todos.tools import todo_json
from punchlist.missions.todos.transitions import check_pillar_of, find_in_scope, find_todo, lock_in_scope
from punchlist.missions.todos.validation import check_mission, check_pillar
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
            write = lock_mission(tx, scope, mission_slug)
            mission = write.mission
            if todo_id is None:
                found = _next_free(tx, mission, pillar or scope.pillar_slug)
            else:
                found = _find_claimable(tx, scope, mission, todo_id)
            if isinstance(found, NothingToClaim):
                return found
            todo, before = found
            claim = claims.take(tx, before, _label(todo), todo.id, (ListKind.MISSION, mission.id), by, seconds)
            _append_event(write, ClaimAction.CLAIM, todo, reason, claim, until=claim.lease_until)
            return ClaimGranted(todo, claim)

    def renew_claim(
        self, scope: MissionScope, at: str, todo_id: str, fence: int, seconds: int = DEFAULT_LEASE_SECONDS
    ) -> Claim:
        """Extend the lease; writes no event."""
        by = _claimant(scope, at, ClaimAction.RENEW)
        with self._store.write() as tx:
            _, todo = find_in_scope(tx, scope, todo_id)
            return claims.renew(tx, _label(todo), todo.id, by, fence, seconds)

    def release_claim(
        self, scope: MissionScope, at: str, todo_id: str, fence: int | None, *, reason: str = "release_claim"
    ) -> Claim:
        """End a claim and return it as it was. A person can release the claim of any holder."""
        by = _claimant(scope, at, ClaimAction.RELEASE)
        with self._store.write() as tx:
            write, todo = lock_in_scope(tx, scope, todo_id)
            claim = claims.release(tx, _label(todo), todo.id, by, fence)
            _append_event(write, ClaimAction.RELEASE, todo, reason, claim)
            return claim


def run_holder(run_id: str) -> str:
    """Identifies a run as the holder of a claim."""
    return f"run {run_id}"


def release_run_claim(write: MissionWrite, todo: MissionTodo, run_id: str) -> None:
    """End the claim that a run holds on its todo; claims of other holders stay."""
    claim = claim_repository.lock(write.tx, todo.id)
    if claim is not None and (claim.holder or "").endswith(f"({run_holder(run_id)})"):
        claim_repository.clear_holder(write.tx, claim)
        _append_event(write, ClaimAction.RELEASE, todo, "its run has ended", claim)


def claimable_mission(claims: MissionClaims, scope: MissionScope, at: str) -> ClaimableList:
    """The todos of missions, for the claim tools. `at` identifies the caller's process or connection."""

    def claim(
        todo_id: str | None, seconds: int, mission_slug: str | None
    ) -> ClaimGranted[MissionTodo] | NothingToClaim:
        slug = mission_slug or scope.mission_slug
        if slug is None:
            raise InvalidInput("missionSlug: is required to claim a mission todo")
        return claims.claim(scope, at, slug, todo_id, seconds)

    return ClaimableList(
        claim, partial(claims.renew_claim, scope, at), partial(claims.release_claim, scope, at), todo_json
    )


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
    write: MissionWrite, action: ClaimAction, todo: MissionTodo, reason: str, claim: Claim, **data: Any
) -> None:
    data = {"title": todo.title, **claims.claim_event_data(claim), **data}
    write.append(action, todo.id, reason, data, from_status=todo.status, to=todo.status)
