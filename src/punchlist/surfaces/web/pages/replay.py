"""A list at any of its moments: the todos of a mission, the plan of a turn, or the checklist of a session.

`?at=` is the number of a change, `?time=` a time. Without them the list is shown as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from punchlist.checklist.lifecycle import ChecklistStatus
from punchlist.errors import InvalidInput
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.plan.lifecycle import PlanStatus
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.conversations import read_title
from punchlist.views.moments import Moment, checklist_moment, mission_moment, plan_moment

if TYPE_CHECKING:
    from enum import StrEnum


def mission_replay(request: PageRequest) -> Page:
    services, slug = request.services, request.parameters["mission"]
    mission = services.missions.get(slug)
    moment = mission_moment(services.store, slug, **_chosen(request))
    values = {**_values(request, moment, list(TodoStatus)), "mission": mission}
    return Page("replay.html", f"History of {mission.name}", values, section=f"mission:{slug}", mission=slug)


def plan_replay(request: PageRequest) -> Page:
    services = request.services
    turn = services.conversations.turn(request.parameters["turn"])
    moment = plan_moment(services.store, turn.id, **_chosen(request))
    values = {"crumb": f"Turn of {turn.agent_id}", "back": f"/turns/{turn.id}", "name": "Plan"}
    values |= _values(request, moment, list(PlanStatus))
    return Page("replay.html", "History of the plan", values, section="conversations")


def checklist_replay(request: PageRequest) -> Page:
    services = request.services
    found = services.conversations.get(request.parameters["chat"])
    moment = checklist_moment(services.store, found.id, **_chosen(request))
    values = {"crumb": read_title(services.store, found), "back": f"/chats/{found.id}/todos", "name": "Checklist"}
    values |= _values(request, moment, list(ChecklistStatus))
    return Page("replay.html", "History of the checklist", values, section="conversations")


def _chosen(request: PageRequest) -> dict[str, Any]:
    given, time = request.get("at"), request.get("time")
    if given.isdecimal() and len(given) < 10:
        return {"version": int(given)}
    if not time:
        return {}
    try:
        return {"at": timestamp(parse_timestamp(time))}
    except ValueError:
        raise InvalidInput("time: must be a time such as 2026-11-19T09:30:00Z") from None


def _values(request: PageRequest, moment: Moment, statuses: Sequence[StrEnum]) -> dict[str, Any]:
    def to(version: int) -> str | None:
        return request.link(at=str(version), time=None) if 0 <= version <= moment.newest else None

    return {
        "mission": None,
        "moment": moment,
        "path": request.path,
        "statuses": [status.value for status in statuses],
        "links": {each.version: to(each.version) for each in moment.changes},
        "before": to(moment.version - 1),
        "after": to(moment.version + 1),
        "first": to(0) if moment.version else None,
        "last": to(moment.newest) if moment.version < moment.newest else None,
        "total": sum(moment.counts.values()),
    }
