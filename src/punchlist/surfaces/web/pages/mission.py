"""`/missions/SLUG`: goals, health, recommendations, pillars, metrics with their plots, directives, and chats."""

from __future__ import annotations

from functools import reduce
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt
from punchlist.missions.usage import MissionUsageService, RunUsage
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect
from punchlist.surfaces.web.pages.run_titles import RunTitles
from punchlist.surfaces.web.pages.turns import missing_model
from punchlist.views.board import BoardFilter, read_board
from punchlist.views.health import read_health
from punchlist.views.metrics import read_metric
from punchlist.views.mission_chats import read_mission_chats

_POINTS: Final = 120


def mission(request: PageRequest) -> Page:
    services, slug = request.services, request.parameters["mission"]
    board = read_board(services.store, slug, BoardFilter(), limit=1)
    plots = {
        view.metric.slug: read_metric(services.store, slug, view.metric.slug, points=_POINTS) for view in board.metrics
    }
    usage = MissionUsageService(services.store).pillars(board.mission.id)
    pillars = [
        {
            "pillar": state.pillar,
            "strategies": state.strategies,
            "metrics": [view for view in board.metrics if view.pillar_slug == state.pillar.slug],
            "usage": usage.get(state.pillar.id),
        }
        for state in board.pillars
    ]
    runs, titles = services.runs.list(mission_id=board.mission.id, ended=True, limit=8), RunTitles(services)
    health = read_health(services.store, slug).missions[0]
    values = {
        "board": board,
        "pillars": pillars,
        "plots_by_slug": plots,
        "usage": reduce(RunUsage.plus, usage.values(), RunUsage()),
        "directives": services.directives.list(slug),
        "runs": [(run, titles.of(run)) for run in runs],
        "health": health,
        # Without a model, the notice about it says why no worker runs.
        "problems": health.other_problems if missing_model(request) else health.problems,
        "recommendations": services.recommendations.list(slug),
    }
    return Page("mission.html", board.mission.name, values, section=f"mission:{slug}", mission=slug)


def chats(request: PageRequest) -> Page:
    services, slug = request.services, request.parameters["mission"]
    found = services.missions.get(slug)
    values = {"mission": found, "chats": read_mission_chats(services.store, slug)}
    return Page("chats.html", found.name, values, section=f"mission:{slug}", mission=slug)


# --- forms ------------------------------------------------------------------------------------------------


def start_cycle(request: PageRequest) -> Redirect:
    from punchlist.engine.periodic import enqueue_cycle

    slug = request.parameters["mission"]
    found = request.services.missions.get(slug)
    enqueue_cycle(request.services.store, request.scope(found.conversation_id), found)
    return Redirect(f"/missions/{slug}/runs", "A planning cycle is queued. A worker executes it.")


def add_directive(request: PageRequest) -> Redirect:
    slug = request.parameters["mission"]
    request.services.directives.add(
        request.scope(), slug, request.posted("text"), until=request.posted("until") or None
    )
    return Redirect(f"/missions/{slug}", "Every agent of the mission reads it from now on.")


def end_directive(request: PageRequest) -> Redirect:
    slug, number = request.parameters["mission"], request.parameters["number"]
    request.services.directives.end(request.scope(), slug, int(number))
    return Redirect(f"/missions/{slug}", "The directive no longer holds.")


def decide_recommendation(request: PageRequest) -> Redirect:
    slug, number, reason = request.parameters["mission"], int(request.parameters["number"]), request.posted("reason")
    recommendations = request.services.recommendations
    match request.posted("do"):
        case "accept":
            decided = recommendations.accept(request.scope(), slug, number, reason).recommendation
        case "decline":
            decided = recommendations.decline(request.scope(), slug, number, reason).recommendation
        case other:
            raise InvalidInput(f"do: must be accept or decline, got {excerpt(other)!r}")
    return Redirect(f"/missions/{slug}", f"Recommendation {number} is {decided.status}.")


def record_reading(request: PageRequest) -> Redirect:
    from punchlist.missions.metrics.status import parse_number

    slug, metric = request.parameters["mission"], request.parameters["metric"]
    value = parse_number(request.posted("value"))
    request.services.metrics.record(request.scope(), slug, metric, value, note=request.posted("note"))
    return Redirect(f"/missions/{slug}", "Recorded.")
