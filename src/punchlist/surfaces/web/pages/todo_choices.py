"""What the forms of a mission todo offer: checks, metrics, pillars, and the todos it can be a part of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from punchlist.missions.todos.lifecycle import OPEN
from punchlist.surfaces.web.pages.check_fields import BOUNDS, check_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from punchlist.app import Services
    from punchlist.missions.model import Mission, MissionTodo
    from punchlist.views.todo_detail import TodoDetail

_MAX_PARENTS: Final = 300


def new_todo_choices(services: Services, mission: Mission) -> dict[str, Any]:
    states = services.missions.pillars(mission)
    metrics = {metric.slug: metric.name for state in states for metric in state.metrics if metric.status == "active"}
    todos = services.mission_todos.list(mission.slug, status=OPEN, limit=_MAX_PARENTS).items
    groups = [
        (state.pillar.name, [todo for todo in todos if todo.pillar_id == state.pillar.id and todo.parent_id is None])
        for state in states
    ]
    return {
        "check": check_fields(None),
        "checks": _checks(mission, metrics),
        "pillars": {state.pillar.slug: state.pillar.name for state in states} if len(states) > 1 else {},
        "affects": (),
        "parents": [(name, items) for name, items in groups if items],
        "parent": "",
    }


def todo_choices(services: Services, detail: TodoDetail, others: Sequence[MissionTodo]) -> dict[str, Any]:
    """For the form that edits a todo. `others` are the open todos of its mission.

    What is stored is offered even if a new todo could not choose it, so that saving another field keeps it.
    """
    todo, mission = detail.todo, detail.mission
    check = check_fields(todo.completion_check)
    metrics = {metric.slug: metric.name for metric in detail.metrics}
    if check["metric"]:
        metrics.setdefault(check["metric"], check["metric"])
    affects = json.loads(todo.also_affects)
    names = {state.pillar.slug: state.pillar.name for state in services.missions.pillars(mission)}
    names = {slug: names.get(slug, slug) for slug in (*names, *affects)}
    return {
        "check": check,
        "checks": _checks(mission, metrics, check["name"]),
        "pillars": {slug: name for slug, name in names.items() if slug != detail.pillar},
        "affects": affects,
        "parents": _parents(detail, others),
        "parent": todo.parent_id or "",
    }


def _checks(mission: Mission, metrics: Mapping[str, str], stored: str = "") -> dict[str, Any]:
    names = list(mission.config["checks"])
    if stored and stored not in names:
        names.append(stored)
    return {"names": names, "metrics": metrics, "bounds": BOUNDS}


def _parents(detail: TodoDetail, others: Sequence[MissionTodo]) -> list[tuple[str, list[MissionTodo]]]:
    """Of its pillar; a todo with sub-items is no sub-item itself."""
    todo, parent = detail.todo, detail.parts.parent
    same = [each for each in others if each.pillar_id == todo.pillar_id and each.parent_id is None]
    found = [] if detail.parts.children else [each for each in same if each.id != todo.id]
    if parent is not None and parent.id not in [each.id for each in found]:
        found.append(parent)
    return [(detail.pillar_name, found)] if found else []
