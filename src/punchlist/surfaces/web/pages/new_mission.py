"""`/missions/new`: a mission from a form, a template or a file."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt
from punchlist.missions.config import file
from punchlist.surfaces.web.pages.mission_edits import number_in
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect

PILLARS: Final = 8
SHOWN_PILLARS: Final = 2
"""The others are behind a heading that opens."""
_PILLAR_FIELDS: Final = ("pillar", "goal")
_METRIC_FIELDS: Final = ("metric", "unit", "target", "warning")
_MAX_SLUG: Final = 60


def new_mission(request: PageRequest) -> Page:
    from punchlist.missions.config.starter import STARTER

    values = {
        "pillars": range(1, PILLARS + 1),
        "shown": SHOWN_PILLARS,
        "template": STARTER,
        "first": not request.services.missions.list(archived=True),
        "tab": request.get("from", "form"),
    }
    return Page("new_mission.html", "New mission", values, section="new")


def create_mission(request: PageRequest) -> Redirect:
    """`source` is the text of a file; without it, the fields of the form are one."""
    missions = request.services.missions.list(archived=True)
    existing = {mission.slug for mission in missions}
    source = request.form.get("source", [""])[-1]
    if not source.strip():
        name = request.posted("name")
        if name.casefold() in (mission.name.casefold() for mission in missions):
            raise InvalidInput(f"name: there is a mission “{excerpt(name)}” already. Choose another name")
        source = json.dumps(_from_form(request, existing), indent=2, ensure_ascii=False)
    config = file.parse_mission(source)
    if config.slug in existing:
        raise InvalidInput(
            f"slug: there is a mission {config.slug!r} already. Choose another slug, or change that mission on its "
            "settings page"
        )
    result = request.services.missions.apply(request.scope(), config, source)
    warning = "\n".join(result.warnings)
    return Redirect(f"/missions/{config.slug}", warning or f"Created {result.mission.name}.", warning=bool(warning))


def _from_form(request: PageRequest, existing: Collection[str]) -> dict[str, Any]:
    name = request.posted("name")
    slugs = set[str]()
    mission: dict[str, Any] = {
        "name": name,
        "slug": slug_of(name, "mission", existing),
        "description": request.posted("description"),
        "todo": {
            "activeTodoLimit": _limit(request, "activeTodoLimit", "Active todos at most", 10),
            "backlogTodoLimit": _limit(request, "backlogTodoLimit", "Backlog at most", 50),
        },
        "pillars": [pillar for number in range(1, PILLARS + 1) if (pillar := _pillar(request, number, slugs))],
    }
    if cron := request.posted("cron"):
        mission["cadence"] = {"cron": cron, "timezone": request.posted("timezone") or "UTC"}
    return mission


def _pillar(request: PageRequest, number: int, slugs: set[str]) -> dict[str, Any] | None:
    """The pillar of a fieldset; None if nothing is written in it. Its slug is added to `slugs`."""
    given = {field: request.posted(f"{field}-{number}") for field in (*_PILLAR_FIELDS, *_METRIC_FIELDS)}
    if not any(given.values()):
        return None
    if not given["pillar"]:
        raise InvalidInput(f"pillar-{number}: give the pillar a name, or empty its other fields")
    slug = slug_of(given["pillar"], "pillar", slugs)
    slugs.add(slug)
    pillar: dict[str, Any] = {"name": given["pillar"], "slug": slug, "description": given["goal"]}
    if any(given[field] for field in _METRIC_FIELDS):
        pillar["metrics"] = [_metric(given, number, request.posted(f"direction-{number}") or "down")]
    return pillar


def _metric(given: dict[str, str], number: int, direction: str) -> dict[str, Any]:
    if not given["metric"]:
        raise InvalidInput(f"metric-{number}: give the metric a name, or empty its other fields")
    if not given["target"]:
        raise InvalidInput(f"target-{number}: a metric needs a target")
    metric: dict[str, Any] = {
        "name": given["metric"],
        "slug": slug_of(given["metric"], "metric", ()),
        "unit": given["unit"],
        "target": number_in(f"target-{number}", given["target"]),
        "direction": direction,
        "collector": {"type": "manual"},
    }
    if given["warning"]:
        metric["warning"] = number_in(f"warning-{number}", given["warning"])
    return metric


def slug_of(name: str, kind: str, taken: Collection[str]) -> str:
    """`Build Performance` becomes `build-performance`; `kind` stands for a name without Latin letters."""
    latin = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    base = re.sub(r"[^a-z0-9]+", "-", latin.lower()).strip("-")[:_MAX_SLUG].strip("-") or kind
    slugs = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
    return next(slug for slug in slugs if slug not in taken)


def _limit(request: PageRequest, name: str, label: str, default: int) -> int:
    given = request.posted(name)
    if not given:
        return default
    if not given.isdecimal() or len(given) > 6:
        raise InvalidInput(f"{label}: must be a whole number")
    return int(given)
