"""`/missions/SLUG`: goals, health, recommendations, pillars, metrics with their plots, directives, and chats."""

from __future__ import annotations

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt
from punchlist.surfaces.web.pages.mission_edits import number_in
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect
from punchlist.surfaces.web.pages.run_titles import RunTitles
from punchlist.surfaces.web.pages.turns import lacks_worker_for_model
from punchlist.views.mission_chats import read_mission_chats
from punchlist.views.mission_overview import read_overview


def mission(request: PageRequest) -> Page:
    slug = request.parameters["mission"]
    found = read_overview(request.services.store, slug)
    board, titles = found.board, RunTitles(request.services)
    pillars = [
        {
            "pillar": state.pillar,
            "strategies": state.strategies,
            "metrics": [view for view in board.metrics if view.pillar_slug == state.pillar.slug],
            "usage": found.usage.get(state.pillar.id),
        }
        for state in board.pillars
    ]
    values = {
        "board": board,
        "pillars": pillars,
        "plots_by_slug": found.plots,
        "usage": found.total,
        "directives": found.directives,
        "runs": [(run, titles.of(run)) for run in found.runs],
        "health": found.health,
        # Without a model, the notice about it says why no worker runs.
        "problems": found.health.other_problems if lacks_worker_for_model(request) else found.health.problems,
        "recommendations": found.recommendations,
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
    slug, metric = request.parameters["mission"], request.parameters["metric"]
    value = number_in("value", request.posted("value"))
    request.services.metrics.record(request.scope(), slug, metric, value, note=request.posted("note"))
    return Redirect(f"/missions/{slug}", "Recorded.")
