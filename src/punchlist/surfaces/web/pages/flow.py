"""`/missions/SLUG/flow`: cumulative flow, throughput, cycle time and spend."""

from __future__ import annotations

from typing import Final

from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.surfaces.web.pages import plots
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.series import MissionSeries, read_series

PERIODS: Final = (7, 30, 90)
ORDER: Final = (
    *(TodoStatus.COMPLETED.value, TodoStatus.CANCELLED.value),
    *(TodoStatus.IN_PROGRESS.value, TodoStatus.PENDING.value, TodoStatus.BACKLOG.value),
)
_COLOURS: Final = 6


def flow(request: PageRequest) -> Page:
    slug, given = request.parameters["mission"], request.get("days")
    days = int(given) if given.isdecimal() and int(given) in PERIODS else 30
    series = read_series(request.services.store, slug, days=days)
    mission = request.services.missions.get(slug)
    values = {
        "mission": mission,
        "days": days,
        "periods": [(each, request.link(days=str(each))) for each in PERIODS],
        "series": series,
        "order": ORDER,
        "flow_plot": plots.cumulative_flow(series.flow, ORDER),
        "throughput_plot": _throughput(series),
        "spend": _spend(series),
        "total_cost": sum(each.cost for each in series.spend),
        "total_completed": sum(each.completed for each in series.throughput),
        "total_tokens": sum(each.input_tokens + each.output_tokens for each in series.spend),
    }
    return Page("flow.html", f"Flow of {mission.name}", values, section=f"mission:{slug}", mission=slug)


def _throughput(series: MissionSeries) -> object:
    days = [each.day for each in series.flow]
    counts = {name: [0.0] * len(days) for name in ("completed", "cancelled")}
    place = {day: number for number, day in enumerate(days)}
    for each in series.throughput:
        if each.day in place:
            counts["completed"][place[each.day]] += each.completed
            counts["cancelled"][place[each.day]] += each.cancelled
    return plots.day_bars(days, counts, {name: f"c-{name}" for name in counts}, "todos")


def _spend(series: MissionSeries) -> dict[str, object]:
    days = [each.day for each in series.flow]
    place = {day: number for number, day in enumerate(days)}
    amounts: dict[str, list[float]] = {}
    for each in series.spend:
        name = each.pillar or "Lead"
        if each.day in place:
            amounts.setdefault(name, [0.0] * len(days))[place[each.day]] += each.cost
    classes = {name: f"c-{number % _COLOURS + 1}" for number, name in enumerate(sorted(amounts))}
    totals = [(name, classes[name], sum(amounts[name])) for name in sorted(amounts)]
    return {"plot": plots.day_bars(days, dict(sorted(amounts.items())), classes, "$"), "totals": totals}
