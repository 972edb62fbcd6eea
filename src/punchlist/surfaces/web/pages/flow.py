"""`/missions/SLUG/flow`: cumulative flow, throughput, cycle time, spend, and how turns end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.continuation import Reason
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.surfaces.web.pages import plots
from punchlist.surfaces.web.pages.page import Page, PageRequest
from punchlist.views.series import MissionSeries, ThroughputDay, read_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from markupsafe import Markup

PERIODS: Final = (7, 30, 90)
ORDER: Final = (
    *(TodoStatus.COMPLETED.value, TodoStatus.CANCELLED.value),
    *(TodoStatus.IN_PROGRESS.value, TodoStatus.PENDING.value, TodoStatus.BACKLOG.value),
)
_COLOURS: Final = 6
_REASONS: Final[dict[str, str]] = {
    Reason.COMPLETED: "c-completed",
    Reason.WAITING: "c-1",
    Reason.OPEN: "c-5",
    Reason.STALLED: "c-2",
    Reason.CAPPED: "c-4",
    Reason.BUDGET: "c-6",
    Reason.CANCELLED: "c-pending",
    Reason.ERROR: "c-failed",
}
"""The colours of the reasons that turns end with."""


def flow(request: PageRequest) -> Page:
    slug, given = request.parameters["mission"], request.get("days")
    days = next((each for each in PERIODS if str(each) == given), 30)
    series = read_series(request.services.store, slug, days=days)
    mission = request.services.missions.get(slug)
    pillars = {state.pillar.slug: state.pillar.name for state in request.services.missions.pillars(mission)}
    values = {
        "mission": mission,
        "days": days,
        "periods": [(each, request.link(days=str(each))) for each in PERIODS],
        "series": series,
        "order": ORDER,
        "flow_plot": plots.cumulative_flow(series.flow, ORDER),
        "throughput_plot": _throughput(series),
        "cycle_plot": plots.day_points(_days(series), series.cycles, series.cycle_times.median_seconds),
        "turns": _turns(series),
        "spend": _spend(series, pillars),
        "total_cost": sum(each.cost for each in series.spend),
        "total_completed": sum(each.completed for each in series.throughput),
        "total_tokens": sum(each.input_tokens + each.output_tokens for each in series.spend),
    }
    return Page("flow.html", f"Flow of {mission.name}", values, section=f"mission:{slug}", mission=slug)


def _days(series: MissionSeries) -> list[str]:
    return [each.day for each in series.flow]


def _throughput(series: MissionSeries) -> Markup:
    ended = [(each.day, name, count) for each in series.throughput for name, count in _ended(each)]
    counts = _by_day(series, ended)
    return plots.day_bars(_days(series), counts, {name: f"c-{name}" for name in counts}, "todos")


def _ended(each: ThroughputDay) -> tuple[tuple[str, int], ...]:
    return ("completed", each.completed), ("cancelled", each.cancelled)


def _turns(series: MissionSeries) -> dict[str, Any]:
    amounts = _by_day(series, [(each.day, each.reason, each.turns) for each in series.turns])
    ordered = {name: amounts[name] for name in (*_REASONS, *amounts) if name in amounts}
    classes = {name: _REASONS.get(name, "c-3") for name in ordered}
    totals = [(name, classes[name], round(sum(values))) for name, values in ordered.items()]
    return {"plot": plots.day_bars(_days(series), ordered, classes, "turns"), "totals": totals}


def _spend(series: MissionSeries, names: Mapping[str, str]) -> dict[str, Any]:
    spent = [
        (each.day, names.get(each.pillar, each.pillar) if each.pillar else "Lead", each.cost) for each in series.spend
    ]
    amounts = {name: values for name, values in sorted(_by_day(series, spent).items()) if any(values)}
    classes = {name: f"c-{number % _COLOURS + 1}" for number, name in enumerate(amounts)}
    totals = [(name, classes[name], sum(values)) for name, values in amounts.items()]
    return {"plot": plots.day_bars(_days(series), amounts, classes, "$"), "totals": totals}


def _by_day(series: MissionSeries, rows: Iterable[tuple[str, str, float]]) -> dict[str, list[float]]:
    """The amounts of each name, one a day."""
    place = {day: number for number, day in enumerate(_days(series))}
    found: dict[str, list[float]] = {}
    for day, name, amount in rows:
        if day in place:
            found.setdefault(name, [0.0] * len(place))[place[day]] += amount
    return found
