"""Claims of completion on the lists of a turn: which items a call completes, and their verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from punchlist.agent.completion import ClaimSource, CompletionClaim
from punchlist.agent.definitions import CHECKLIST_TOOL
from punchlist.checklist import identity
from punchlist.checklist import validation as checklist_validation
from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.checklist.model import Checklist, ChecklistChange, ChecklistItem
from punchlist.checklist.service import Checklists, Edit
from punchlist.conversations.model import Scope, TurnScope
from punchlist.errors import PunchlistError
from punchlist.kernel.ids import short_id
from punchlist.models.model import RequestedCall
from punchlist.plan import validation as plan_validation
from punchlist.plan.lifecycle import OPEN, PlanAction
from punchlist.plan.model import EndedTodo
from punchlist.plan.service import Plans
from punchlist.storage.async_bridge import AsyncBridge
from punchlist.verification.model import CheckResult, Verification

_TOOLS: Final = frozenset({"complete_todo", CHECKLIST_TOOL})


class ListClaims(ClaimSource):
    def __init__(self, plans: Plans, checklists: Checklists, scope: TurnScope, bridge: AsyncBridge) -> None:
        self._plans = plans
        self._checklists = checklists
        self._scope = scope
        self._bridge = bridge
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
        failed = replace(claim.verification, result=result)
        await self._bridge(self._checklists.verify, self._scope, claim.id, failed)

    def verified(self, claim: CompletionClaim, verification: Verification) -> None:
        self._verified[claim.reference] = verification

    def of_plan_item(self, reference: str) -> Verification | None:
        return self._verified.get(reference)

    def of_checklist_item(self, item: ChecklistItem, before: Checklist) -> ChecklistItem:
        is_new = all(item.id != old.id for old in before.items)
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


def _claim(old: ChecklistItem | None, new: ChecklistItem) -> CompletionClaim:
    if old is None:
        return CompletionClaim(new.content, new.content, new.content, new.verification, _new_item(new), was_open=False)
    return CompletionClaim(old.id, new.content, new.content, new.verification, new.id, was_open=old.is_open)


def _new_item(item: ChecklistItem) -> str:
    """Refers to an item that gets its id only when the call runs. No id contains a line break."""
    return f"\n{item.content}"
