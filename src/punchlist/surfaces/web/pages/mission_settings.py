"""`/missions/SLUG/settings`: its state, limits, pillars, metrics and strategies, and its file."""

from __future__ import annotations

import json
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt
from punchlist.missions.config import file
from punchlist.missions.config.policy import limits_of
from punchlist.missions.strategies import RETIRED
from punchlist.surfaces.web.pages.mission_edits import EDITS
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect
from punchlist.views.live import newest_event

LIMITS: Final = (
    ("costPerDay", "Dollars a day"),
    ("costPerTodo", "Dollars a todo"),
    ("tokensPerDay", "Tokens a day"),
    ("tokensPerTodo", "Tokens a todo"),
)


def settings(request: PageRequest) -> Page:
    missions, slug = request.services.missions, request.parameters["mission"]
    mission = missions.get(slug)
    limits = limits_of(mission)
    by_slug = {state.pillar.slug: state for state in missions.pillars(mission)}
    pillars = [
        {
            "config": pillar,
            "strategies": [each for each in by_slug[pillar["slug"]].strategies if each.status != RETIRED],
        }
        for pillar in mission.config["pillars"]
        if pillar["slug"] in by_slug
    ]
    values = {
        "mission": mission,
        "version": mission.settings_version,
        "config": mission.config,
        "limits": [(name, label, limits.value_of(name)) for name, label in LIMITS],
        "pillars": pillars,
        "source": mission.source,
    }
    return Page("mission_settings.html", f"Settings of {mission.name}", values, f"mission:{slug}", slug)


# --- forms ------------------------------------------------------------------------------------------------


def change_settings(request: PageRequest) -> Redirect:
    """Apply a form to the settings as the person saw them."""
    missions, slug = request.services.missions, request.parameters["mission"]
    part, mission = request.posted("part"), missions.get(slug)
    if part == "file":
        source = request.form.get("source", [""])[-1]
        config = file.parse_mission(source)
        if config.slug != slug:
            raise InvalidInput(f"slug: must stay {slug!r}; another slug is another mission")
    elif part in EDITS:
        fields = {name: request.posted(name) for name in request.form}
        config = file.parse_value(EDITS[part](mission.config, fields))
        source = json.dumps(config.as_json(), indent=2, ensure_ascii=False)
    else:
        raise InvalidInput(f"part: must be one of {', '.join(EDITS)} or file, got {excerpt(part)!r}")
    result = missions.apply(request.scope(), config, source, expected_version=request.posted("version"))
    lines = [*(result.changes or ["Nothing was changed."]), *result.warnings]
    return _back(request, "\n".join(lines[:12]), warning=bool(result.warnings))


def change_state(request: PageRequest) -> Redirect:
    missions, slug, reason = request.services.missions, request.parameters["mission"], request.posted("reason")
    match request.posted("do"):
        case "pause":
            missions.pause(request.scope(), slug, reason)
            return _back(request, "Paused: no cycle and no run starts any more.")
        case "resume":
            missions.resume(request.scope(), slug, reason)
            return _back(request, "Resumed.")
        case "archive":
            missions.archive(request.scope(), slug, reason)
            return _back(request, "Archived: it can be read, and nothing in it changes until it is unarchived.")
        case "unarchive":
            missions.unarchive(request.scope(), slug, reason)
            return _back(request, "The mission is active again.")
    raise InvalidInput("do: must be pause, resume, archive or unarchive")


def change_strategies(request: PageRequest) -> Redirect:
    strategies, slug, pillar = request.services.strategies, request.parameters["mission"], request.posted("pillar")
    scope, reason = request.scope(), request.posted("reason")
    match request.posted("do"):
        case "add":
            strategies.add(scope, slug, pillar, request.posted("description"), reason)
            return _back(request, "The strategy is added.")
        case "retire":
            strategies.retire(scope, slug, pillar, request.posted("strategy"), reason)
            return _back(request, "The strategy is retired.")
    raise InvalidInput("do: must be add or retire")


def collect_metrics(request: PageRequest) -> Redirect:
    slug, metric = request.parameters["mission"], request.posted("metric")
    services = request.services
    scope = request.scope(services.missions.get(slug).conversation_id)
    slugs = [metric] if metric else []
    run = services.metrics.enqueue_collection(scope, slug, slugs, reason="asked for on the page")
    count = len(run.parameters["metrics"])
    text = f"{count} {'metric' if count == 1 else 'metrics'}" if count else "No metric has a collector: nothing"
    return Redirect(f"/missions/{slug}", f"{text} will be collected by a worker.")


def _back(request: PageRequest, message: str, *, warning: bool = False) -> Redirect:
    """To the page as it is now: at another address, so that the browser loads it again, at the same place."""
    pillar = request.posted("pillar") or (request.posted("slug") if request.posted("part") == "pillar" else "")
    place = f"pillar-{pillar}" if pillar else "limits" if request.posted("part") == "mission" else ""
    path = f"/missions/{request.parameters['mission']}/settings?at={newest_event(request.services.store)}"
    return Redirect(f"{path}#{place}" if place else path, message, warning=warning)
