"""Claims of completion on the lists of a turn: which items a call completes, and their verification."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from punchlist.agent.completion import ClaimSource, CompletionClaim
from punchlist.agent.definitions import CHECKLIST_TOOL
from punchlist.checklist import identity
from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistChange, ChecklistItem
from punchlist.checklist.service import Checklists, Edit
from punchlist.checklist.similarity import is_same_task
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, NotFound, PunchlistError
from punchlist.kernel.events import SYSTEM
from punchlist.kernel.ids import short_id
from punchlist.models.model import RequestedCall
from punchlist.plan import validation as plan_validation
from punchlist.plan.lifecycle import OPEN, PlanAction, PlanStatus
from punchlist.plan.model import CreatedTodos, EndedTodo, NewTodo, TurnTodo
from punchlist.plan.service import Plans
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.verification.model import CheckOutcome, CheckResult, Verification

_TOOLS: Final = frozenset({"complete_todo", CHECKLIST_TOOL})


class ListClaims(ClaimSource):
    def __init__(
        self, conversations: Conversations, plans: Plans, checklists: Checklists, scope: TurnScope, bridge: AsyncBridge
    ) -> None:
        self._conversations = conversations
        self._plans = plans
        self._checklists = checklists
        self._scope = scope
        self._bridge = bridge
        self._failed: dict[str, Verification] = {}
        """Of the items of the checklist whose checks have failed in this turn, by content."""
        self._verified: dict[str, Verification] = {}
        """Of the items that the next call completes, by what the call names them."""

    def is_claim(self, call: RequestedCall) -> bool:
        return call.tool in _TOOLS and not isinstance(call.arguments, str)

    async def claims(self, call: RequestedCall) -> Sequence[CompletionClaim]:
        self._verified = {}
        find = self._of_checklist if call.tool == CHECKLIST_TOOL else self._of_plan
        try:
            return await self._bridge(find, call.arguments)
        except PunchlistError:
            # The tool refuses the call, with a message for the model.
            return ()

    def _of_plan(self, arguments: Any) -> Sequence[CompletionClaim]:
        if plan_validation.parse_end_action(arguments.get("status")) is not PlanAction.COMPLETE:
            return ()
        plan_validation.parse_outcome(arguments.get("outcome"))
        reference = plan_validation.parse_id(arguments.get("todoId"))
        todo = self._plans.find_completable(self._scope, reference)
        if todo.status not in OPEN:
            return ()
        return [CompletionClaim(todo.id, todo.id, todo.title, todo.verified(), reference=reference)]

    def _of_checklist(self, arguments: Any) -> Sequence[CompletionClaim]:
        before = self._checklists.get(self._scope.conversation_id).items
        sent = checklist_validation.parse_todos(arguments.get("todos"))
        after = identity.assign_ids(sent, before, short_id)
        # The agent may send an item with an id of its own, which the item has from then on.
        return [
            _claim(old, new)
            for old, new in identity.match_items(before, after)
            if new and new.status is ChecklistStatus.COMPLETED and (old is None or old.status is not new.status)
        ]

    def left_open(self, call: RequestedCall, claims: Sequence[CompletionClaim]) -> RequestedCall:
        claimed = {claim.title for claim in claims}
        arguments: Any = call.arguments
        todos = [
            {**item, "status": ChecklistStatus.PENDING.value} if item["content"].strip() in claimed else item
            for item in arguments["todos"]
        ]
        return replace(call, arguments={**arguments, "todos": todos})

    async def check_failed(self, claim: CompletionClaim, result: CheckResult) -> None:
        if not claim.was_open:
            return
        if claim.key == claim.id:
            await self._bridge(self._plans.record_check, self._scope, claim.id, result)
            return
        failed = self._failed[claim.title] = replace(claim.verification, result=result)
        await self._bridge(self._checklists.verify, self._scope, claim.id, failed)

    async def with_checks(self) -> Sequence[CompletionClaim]:
        return await self._bridge(self._with_checks)

    def _with_checks(self) -> Sequence[CompletionClaim]:
        turn = self._conversations.turn(self._scope.turn_id)
        found = [
            CompletionClaim(todo.id, todo.id, todo.title, todo.verified())
            for todo in self._plans.snapshot(self._scope).todos
            if todo.status is PlanStatus.COMPLETED and todo.verification is not None
        ]
        found += [
            CompletionClaim(item.id, item.content, item.content, item.verification)
            for item in (self._checklist_items() if turn.parent_turn_id is None else ())
            if item.status is ChecklistStatus.COMPLETED
        ]
        return [
            claim
            for claim in found
            if claim.verification.needs_check or claim.verification.passed_since(turn.started_at)
        ]

    async def rechecked(self, claim: CompletionClaim, result: CheckResult) -> None:
        # A person can have changed the item meanwhile: then theirs counts.
        with suppress(Conflict, IllegalTransition, NotFound):
            await self._bridge(self._rechecked, claim, result)

    def _rechecked(self, claim: CompletionClaim, result: CheckResult) -> None:
        failed = result.outcome is CheckOutcome.FAILED
        if claim.key == claim.id and not claim.is_new:
            of_turn = replace(self._scope, actor=SYSTEM)
            (self._plans.reject if failed else self._plans.record_check)(of_turn, claim.id, result)
            return
        of_session = Scope(self._scope.conversation_id, SYSTEM)
        item = next(each for each in self._checklist_items() if claim.id in (each.id, each.content))
        if failed:
            self._checklists.reject(of_session, item.id, result)
        else:
            self._checklists.verify(of_session, item.id, replace(item.verification, result=result))

    def _checklist_items(self) -> Sequence[ChecklistItem]:
        return self._checklists.get(self._scope.conversation_id).items

    def verified(self, claim: CompletionClaim, verification: Verification) -> None:
        self._verified[claim.reference] = verification
        self._failed.pop(claim.title, None)

    def failed_plan_items(self) -> Sequence[TurnTodo]:
        """The items of the plan whose checks have failed."""
        todos = self._plans.snapshot(self._scope).todos
        return [todo for todo in todos if todo.verification is not None and todo.verified().has_failed]

    def failed_checklist_item(self, content: str) -> Verification | None:
        failed = (found for text, found in self._failed.items() if is_same_task(text, content))
        return next(failed, None)

    def of_plan_item(self, reference: str) -> Verification | None:
        return self._verified.get(reference)

    def of_checklist_item(self, item: ChecklistItem, before: Checklist) -> ChecklistItem:
        is_new = all(item.id != old.id for old in before.items)
        if is_new and (failed := self.failed_checklist_item(item.content)) is not None:
            item = replace(item, verification=failed)
        found = self._verified.get(_new_item(item) if is_new else item.id)
        if found is None or item.status is not ChecklistStatus.COMPLETED:
            return item
        return replace(item, verification=found)


class VerifiedPlans(Plans):
    """The plans of one turn, whose completed items carry the verification of their claim."""

    def __init__(self, plans: Plans, claims: ListClaims) -> None:
        self._store = plans._store
        self._indexes = plans._indexes
        self._claims = claims

    def create(self, scope: TurnScope, items: Sequence[NewTodo], *, reason: str = "create_todo") -> CreatedTodos:
        """An item that is planned again after its check has failed keeps this check."""
        failed = self._claims.failed_plan_items()
        return super().create(scope, [_with_failed_check(item, failed) for item in items], reason=reason)

    def end(
        self,
        scope: TurnScope,
        todo_id: str,
        outcome: str,
        action: PlanAction = PlanAction.COMPLETE,
        *,
        fence: int | None = None,
        verification: Verification | None = None,
    ) -> EndedTodo:
        verification = verification or self._claims.of_plan_item(todo_id)
        return super().end(scope, todo_id, outcome, action, fence=fence, verification=verification)


class VerifiedChecklists(Checklists):
    """The checklist of one turn, whose completed items carry the verification of their claim."""

    def __init__(self, checklists: Checklists, claims: ListClaims) -> None:
        super().__init__(checklists._store, checklists._conversations)
        object.__setattr__(self, "_claims", claims)

    def _edit(self, scope: Scope, reason: str, edit: Edit) -> ChecklistChange:
        claims: ListClaims = self._claims  # type: ignore[attr-defined]

        def verified(before: Checklist) -> Sequence[ChecklistItem]:
            return [claims.of_checklist_item(item, before) for item in edit(before)]

        return super()._edit(scope, reason, verified)


def _with_failed_check(item: NewTodo, failed: Sequence[TurnTodo]) -> NewTodo:
    same = next((todo for todo in failed if is_same_task(todo.title, item.title)), None)
    if same is None:
        return item
    check = same.verified().check
    # A copy keeps the author of its check.
    copied_from = same.id if check is not None and check.by_person else item.copied_from
    return replace(item, check=check, copied_from=copied_from)


def _claim(old: ChecklistItem | None, new: ChecklistItem) -> CompletionClaim:
    if old is None:
        name = new.content
        return CompletionClaim(name, name, name, new.verification, _new_item(new), was_open=False, is_new=True)
    return CompletionClaim(old.id, old.content, new.content, new.verification, new.id, was_open=old.is_open)


def _new_item(item: ChecklistItem) -> str:
    """Refers to an item that gets its id only when the call runs. No id contains a line break."""
    return f"\n{item.content}"
