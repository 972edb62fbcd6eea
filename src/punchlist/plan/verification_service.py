"""Transactions about the verification of a plan's todos: results of checks, and acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import TurnScope
from punchlist.kernel.events import Role
from punchlist.plan.lifecycle import PLAN, PlanAction
from punchlist.plan.model import TurnTodo
from punchlist.plan.repository import find_todo, lock_turn, turn_not_found
from punchlist.plan.transitions import advance_todo
from punchlist.storage.store import Store
from punchlist.verification.model import Check, CheckResult, EvidenceCall


class VerificationService:
    _store: Store

    def record_check(self, scope: TurnScope, todo_id: str, result: CheckResult) -> TurnTodo:
        """Keep the result of a check with its todo, which stays as it is (V2)."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(tx, scope, todo_id)
            changed = replace(todo.verified(), result=result)
            return advance_todo(tx, scope, todo, PlanAction.CHECK, result.outcome, verification=changed.encode())

    def record_evidence(self, scope: TurnScope, todo_id: str, calls: Sequence[EvidenceCall]) -> TurnTodo:
        """Keep the calls that were made for a todo with it (V1)."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(tx, scope, todo_id)
            changed = todo.verified().with_evidence(calls)
            return advance_todo(tx, scope, todo, PlanAction.CHECK, "evidence", verification=changed.encode())

    def reject(self, scope: TurnScope, todo_id: str, result: CheckResult) -> TurnTodo:
        """Open a completed todo again, because its check failed (V2). Its outcome was only a claim."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(tx, scope, todo_id)
            failed = replace(todo.verified().reopened(), result=result)
            return advance_todo(
                tx,
                scope,
                todo,
                PlanAction.REOPEN,
                "its check failed",
                verification=failed.encode(),
                outcome=None,
                started_at=None,
                completed_at=None,
            )

    def accept(self, scope: TurnScope, todo_id: str, *, reason: str = "accept") -> TurnTodo:
        """Accept a completed todo (V4), also after its turn has ended."""
        PLAN.check_role(PlanAction.ACCEPT, scope.actor.role)
        with self._store.write() as tx:
            turn = conversation_repository.lock_turn(tx, scope.turn_id)
            if turn is None or turn.conversation_id != scope.conversation_id:
                raise turn_not_found(scope)
            todo = find_todo(tx, scope, todo_id)
            accepted = replace(todo.verified(), accepted_by=str(scope.actor))
            return advance_todo(tx, scope, todo, PlanAction.ACCEPT, reason, verification=accepted.encode())

    def set_check(self, scope: TurnScope, todo_id: str, check: Check | None, *, reason: str) -> TurnTodo:
        """Set, replace or remove the check of an open todo."""
        with self._store.write() as tx:
            lock_turn(tx, scope)
            todo = find_todo(tx, scope, todo_id)
            if check is not None:
                check = replace(check, by_person=scope.actor.role is Role.PERSON)
            changed = replace(todo.verified(), check=check, result=None)
            return advance_todo(tx, scope, todo, PlanAction.EDIT, reason, verification=changed.encode())
