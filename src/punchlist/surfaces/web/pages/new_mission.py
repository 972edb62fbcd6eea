"""`/missions/new`: a mission from a form, a template or a file."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.missions.config import file
from punchlist.missions.metrics.status import parse_number
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect

PILLARS: Final = 3
"""How many pillars the form has."""


def new_mission(request: PageRequest) -> Page:
    from punchlist.missions.config.starter import STARTER

    values = {
        "pillars": range(1, PILLARS + 1),
        "template": STARTER,
        "first": not request.services.missions.list(archived=True),
        "tab": request.get("from", "form"),
    }
    return Page("new_mission.html", "New mission", values, section="new")


def create_mission(request: PageRequest) -> Redirect:
    """`source` is the text of a file; without it, the fields of the form are one."""
    source = request.form.get("source", [""])[-1]
    if not source.strip():
        source = json.dumps(_from_form(request), indent=2, ensure_ascii=False)
    config = file.parse_mission(source)
    existing = {mission.slug for mission in request.services.missions.list(archived=True)}
    if config.slug in existing:
        raise InvalidInput(f"slug: there is a mission {config.slug!r} already; `punchlist mission apply` changes it")
    result = request.services.missions.apply(request.scope(), config, source)
    warning = "\n".join(result.warnings)
    return Redirect(f"/missions/{config.slug}", warning or f"Created {result.mission.name}.", warning=bool(warning))


def _from_form(request: PageRequest) -> dict[str, Any]:
    name = request.posted("name")
    mission: dict[str, Any] = {
        "name": name,
        "slug": slug_of(name),
        "description": request.posted("description"),
        "todo": {
            "activeTodoLimit": _whole(request, "activeTodoLimit", "Active todos at most", 10),
            "backlogTodoLimit": _whole(request, "backlogTodoLimit", "Backlog at most", 50),
        },
        "pillars": [pillar for number in range(1, PILLARS + 1) if (pillar := _pillar(request, number))],
    }
    if cron := request.posted("cron"):
        mission["cadence"] = {"cron": cron, "timezone": request.posted("timezone") or "UTC"}
    return mission


def _pillar(request: PageRequest, number: int) -> dict[str, Any] | None:
    name = request.posted(f"pillar-{number}")
    if not name:
        return None
    pillar: dict[str, Any] = {"name": name, "slug": slug_of(name), "description": request.posted(f"goal-{number}")}
    if metric := request.posted(f"metric-{number}"):
        pillar["metrics"] = [
            {
                "name": metric,
                "slug": slug_of(metric),
                "unit": request.posted(f"unit-{number}"),
                "target": parse_number(request.posted(f"target-{number}") or "0"),
                "direction": request.posted(f"direction-{number}") or "down",
                "collector": {"type": "manual"},
            }
        ]
        if warning := request.posted(f"warning-{number}"):
            pillar["metrics"][0]["warning"] = parse_number(warning)
    return pillar


def slug_of(name: str) -> str:
    """`Build Performance` becomes `build-performance`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "mission"


def _whole(request: PageRequest, name: str, label: str, default: int) -> int:
    given = request.posted(name)
    if not given:
        return default
    if not given.isdecimal() or len(given) > 6:
        raise InvalidInput(f"{label}: must be a whole number")
    return int(given)
