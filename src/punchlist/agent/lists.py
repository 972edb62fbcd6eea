"""The lists of a turn, as the loop sees them: what is open, and whether anything has changed."""

from __future__ import annotations

from typing import Protocol

from punchlist.agent.continuation import Open
from punchlist.checklist import rendering
from punchlist.checklist.lifecycle import Status as ChecklistStatus
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import TurnScope
from punchlist.kernel.text import visible
from punchlist.plan.lifecycle import Status as PlanStatus
from punchlist.plan.service import Plans

MOST_SHOWN = 30
"""Items that a model is shown at most: it can ask for the rest."""


class Lists(Protocol):
    def open(self) -> list[Open]: ...

    def mark(self) -> object:
        """Differs after every change of a list, and only then (C5)."""

    def shown(self) -> str:
        """The lists as the model is told of them before each request (T11); empty when there are none."""


class TurnLists:
    """The plan of the turn and the checklist of its session, as far as the agent has them."""

    def __init__(self, scope: TurnScope, plans: Plans | None, checklists: Checklists | None) -> None:
        self._scope = scope
        self._plans = plans
        self._checklists = checklists

    def open(self) -> list[Open]:
        return [*self._open_plan(), *self._open_checklist()]

    def _open_plan(self) -> list[Open]:
        if self._plans is None:
            return []
        items = self._plans.list(self._scope).items
        return [Open(todo.id, todo.title, running=todo.status is PlanStatus.IN_PROGRESS) for todo in items]

    def _open_checklist(self) -> list[Open]:
        if self._checklists is None:
            return []
        items = self._checklists.get(self._scope.conversation_id).items
        return [
            Open(item.id, item.content, running=item.status is ChecklistStatus.IN_PROGRESS)
            for item in items
            if item.status is not ChecklistStatus.COMPLETED
        ]

    def mark(self) -> object:
        plan = self._plans.list(self._scope, frozenset(PlanStatus)).items if self._plans else []
        revision = self._checklists.get(self._scope.conversation_id).revision if self._checklists else 0
        return (revision, *((todo.id, todo.status) for todo in plan))

    def shown(self) -> str:
        parts = [self._shown_plan(), self._shown_checklist()]
        return "\n\n".join(part for part in parts if part)

    def _shown_plan(self) -> str:
        plan = self._plans.list(self._scope) if self._plans else None
        if plan is None or not sum(plan.counts.values()):
            return ""
        ended = sum(plan.counts.values()) - plan.remaining
        lines = [f"Plan: {ended} of {sum(plan.counts.values())} tasks ended."]
        for todo in plan.items[:MOST_SHOWN]:
            mark = ">" if todo.status is PlanStatus.IN_PROGRESS else " "
            lines.append(f"[{mark}] {visible(todo.title)} (id {todo.id})")
        if len(plan.items) > MOST_SHOWN:
            lines.append(f"… and {len(plan.items) - MOST_SHOWN} more")
        return "\n".join(lines)

    def _shown_checklist(self) -> str:
        checklist = self._checklists.get(self._scope.conversation_id) if self._checklists else None
        return f"Checklist:\n{rendering.for_model(checklist)}" if checklist and checklist.items else ""
