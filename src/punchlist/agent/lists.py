"""The lists of a turn, as the loop sees them: what is open, and whether anything has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from punchlist.agent.continuation import Open
from punchlist.checklist import rendering
from punchlist.checklist.lifecycle import Status as ChecklistStatus
from punchlist.checklist.model import Item
from punchlist.checklist.service import Checklists
from punchlist.conversations.model import TurnScope
from punchlist.kernel.text import visible
from punchlist.plan.lifecycle import OPEN
from punchlist.plan.lifecycle import Status as PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.plan.service import Plans

MOST_SHOWN = 30
"""Items that a model is shown at most: it can ask for the rest."""


@dataclass(frozen=True, slots=True)
class View:
    """The lists at one moment."""

    open: tuple[Open, ...] = ()
    shown: str = ""
    """As the model is told of them before each request (T11); empty when there are none."""
    mark: object = None
    """Differs after every change of a list, and only then (C5)."""


class Lists(Protocol):
    def look(self) -> View: ...


class TurnLists:
    """The plan of the turn and the checklist of its session, as far as the agent has them."""

    def __init__(self, scope: TurnScope, plans: Plans | None, checklists: Checklists | None) -> None:
        self._scope = scope
        self._plans = plans
        self._checklists = checklists

    def look(self) -> View:
        plan = self._plans.list(self._scope, frozenset(PlanStatus)).items if self._plans else []
        checklist = self._checklists.get(self._scope.conversation_id) if self._checklists else None
        items = checklist.items if checklist else ()
        shown = [_plan_text(plan), f"Checklist:\n{rendering.for_model(checklist)}" if checklist and items else ""]
        return View(
            (*_open_tasks(plan), *_open_items(items)),
            "\n\n".join(part for part in shown if part),
            (checklist.revision if checklist else 0, *((todo.id, todo.status) for todo in plan)),
        )


def _open_tasks(plan: Sequence[TurnTodo]) -> list[Open]:
    return [
        Open(todo.id, todo.title, running=todo.status is PlanStatus.IN_PROGRESS) for todo in plan if todo.status in OPEN
    ]


def _open_items(items: Sequence[Item]) -> list[Open]:
    return [
        Open(item.id, item.content, running=item.status is ChecklistStatus.IN_PROGRESS)
        for item in items
        if item.status is not ChecklistStatus.COMPLETED
    ]


def _plan_text(plan: Sequence[TurnTodo]) -> str:
    if not plan:
        return ""
    left = [todo for todo in plan if todo.status in OPEN]
    lines = [f"Plan: {len(plan) - len(left)} of {len(plan)} tasks ended."]
    for todo in left[:MOST_SHOWN]:
        mark = ">" if todo.status is PlanStatus.IN_PROGRESS else " "
        lines.append(f"[{mark}] {visible(todo.title)} (id {todo.id})")
    if len(left) > MOST_SHOWN:
        lines.append(f"… and {len(left) - MOST_SHOWN} more")
    return "\n".join(lines)
