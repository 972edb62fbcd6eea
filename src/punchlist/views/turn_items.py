"""The items that count in one turn: its plan, and those of the session's checklist that the turn had to clear."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from punchlist.checklist.model import ChecklistItem, item_json, items_from_json
from punchlist.checklist.repository import checklist_stream
from punchlist.conversations.model import Scope, TurnScope
from punchlist.kernel.events import Event, Role
from punchlist.plan.lifecycle import PlanAction, PlanStatus
from punchlist.plan.model import plan_stream
from punchlist.plan.tools import condition_json, todo_json
from punchlist.storage import event_log
from punchlist.verification.model import CheckOutcome, Mark
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


def given_up(services: Services, scope: Scope, turn_id: str, items: Collection[TurnItem]) -> dict[str, str]:
    """Why a cancelled item was more than the agent's to give up, by id: its check had failed, or a person added it."""
    cancelled = [item for item in items if item["status"] == PlanStatus.CANCELLED]
    if not cancelled:
        return {}
    streams = (plan_stream(turn_id), checklist_stream(scope.conversation_id))
    with services.store.read() as tx:
        events = [event for stream in streams for event in event_log.read_stream(tx, stream)]
    added = {id for event in events if _is_by_person(event) for id in _ids(event, "from_status", None)}
    ended = {id: _is_by_person(event) for event in events for id in _ids(event, "to_status", PlanStatus.CANCELLED)}
    # Another item can have passed the same check instead.
    passed = [item["check"] for item in items if item["mark"] in (Mark.CHECKED, Mark.ACCEPTED)]
    found: dict[str, str] = {}
    for item in cancelled:
        if ended.get(item["id"]):
            continue
        if (item["checkResult"] or {}).get("outcome") == CheckOutcome.FAILED and item["check"] not in passed:
            found[item["id"]] = "its check had failed"
        if item["id"] in added:
            found[item["id"]] = "a person added it"
    return found


def _ids(event: Event, field: str, status: str | None) -> Collection[str]:
    """The items that an event adds or takes to a status."""
    steps = event.payload().get("steps")
    if isinstance(steps, list):
        return {step["id"] for step in steps if step[field] == status and step["from_status"] != step["to_status"]}
    action = PlanAction.CREATE if status is None else PlanAction.CANCEL
    return {event.subject} if event.action == action else set()


def _is_by_person(event: Event) -> bool:
    return event.actor.startswith(f"{Role.PERSON}:")


def all_cancelled(items: Collection[TurnItem]) -> bool:
    """Whether there were items and none of them was done."""
    return bool(items) and all(item["status"] == PlanStatus.CANCELLED for item in items)
