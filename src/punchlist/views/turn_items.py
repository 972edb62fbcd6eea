"""The items that count in one turn: its plan, and those of the session's checklist that the turn had to clear."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from punchlist.checklist.model import ChecklistItem, item_json, items_from_json
from punchlist.checklist.repository import checklist_stream
from punchlist.conversations.model import Scope, TurnScope
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.tools import condition_json, todo_json
from punchlist.views import repository

if TYPE_CHECKING:
    from punchlist.app import Services

_UNVERIFIED: Final[dict[str, Any]] = {"mark": None, "check": None, "checkResult": None, "evidence": []}
"""Fields that every item has, so that a program need not test for them."""
TurnItem = dict[str, Any]


def turn_items(services: Services, scope: Scope, turn_id: str, counted: Collection[str]) -> list[TurnItem]:
    """The items of a turn as JSON objects, the plan first.

    `counted` are the ids of all items of the turn's lists. Checklist items that had ended before the turn are left out;
    those that ended in the turn are listed although the agent has removed them from its list since.
    """
    plan = services.plans.list(TurnScope(scope.conversation_id, scope.actor, turn_id), frozenset(PlanStatus))
    items: list[TurnItem] = [
        {"list": "plan", **_UNVERIFIED, **todo_json(todo), **condition_json(plan, todo.id)} for todo in plan.items
    ]
    now = services.checklists.get(scope.conversation_id).items
    removed = _removed(services, scope.conversation_id, turn_id, {item.id for item in now})
    checklist = [*removed, *(item for item in now if item.id in counted)]
    earlier = _ended_before(services, scope.conversation_id, turn_id) if checklist else frozenset[str]()
    for item in checklist:
        if item.is_open or item.id not in earlier:
            items.append({"list": "checklist", "title": item.content, **_UNVERIFIED, **item_json(item)})
    return items


def _ended_before(services: Services, session: str, turn_id: str) -> frozenset[str]:
    """The ids of the checklist items that had ended when the turn began."""
    with services.store.read() as tx:
        data = repository.checklist_before(tx, checklist_stream(session), turn_id)
    return frozenset(item.id for item in _items(data) if not item.is_open)


def _removed(services: Services, session: str, turn_id: str, present: Collection[str]) -> list[ChecklistItem]:
    """The items that had ended when the agent removed them from the checklist, since the turn began."""
    with services.store.read() as tx:
        changes = repository.checklist_during(tx, checklist_stream(session), turn_id)
    last = {item.id: item for data in changes for item in _items(data)}
    return [item for item in last.values() if item.id not in present and not item.is_open]


def _items(data: str | None) -> Sequence[ChecklistItem]:
    try:
        return items_from_json(json.loads(data)["items"]) if data else ()
    except (ValueError, TypeError, KeyError):
        # Not what Punchlist writes; `db check` reports it.
        return ()


def all_cancelled(items: Collection[TurnItem]) -> bool:
    """Whether there were items and none of them was done."""
    return bool(items) and all(item["status"] == PlanStatus.CANCELLED for item in items)
