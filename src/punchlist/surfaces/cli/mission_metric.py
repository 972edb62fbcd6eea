"""`punchlist mission metric`: show, record and collect the metrics of a mission."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import CliContext, format_time, terminal_width
from punchlist.surfaces.cli.options import MissionArgument, mission_scope
from punchlist.surfaces.plot import MIN_WIDTH, sparkline

if TYPE_CHECKING:
    from punchlist.missions.metrics.service import MetricView

app = typer.Typer(help="Show the metrics of a mission, record readings, run collectors.", no_args_is_help=True)

MetricArgument = Annotated[str, typer.Argument(metavar="METRIC", help="The metric's slug.", show_default=False)]

ICONS: Final = {"on_target": "✓", "warning": "!", "off_target": "✗", "unknown": "?"}
NO_METRICS: Final = "The mission has no metrics."


@app.command("list")
def list_metrics(cli: CliContext, mission: MissionArgument) -> None:
    """List the metrics of a mission with their current values."""
    views = cli.services().metrics.views(mission)
    lines = []
    for pillar, group in groupby(views, key=lambda view: view.pillar_slug):
        lines.append(visible(pillar))
        lines += [excerpt(f"  {line}", _width()) for view in group for line in _summary_lines(view)]
    cli.show([view.as_json() for view in views], lines, empty=NO_METRICS)


@app.command()
def show(
    cli: CliContext,
    mission: MissionArgument,
    metric: Annotated[
        str | None, typer.Argument(metavar="METRIC", help="The metric's slug. Default: all.", show_default=False)
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=500, help="How many points the plot has at most.")
    ] = 60,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="From this date or time on. Default: the newest readings."),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before this date or time.")] = None,
) -> None:
    """Plot the readings of a metric with its levels, and list the completed todos that were to change it.

    If a period has more readings than the plot has points, each point is the mean of an interval.
    """
    from punchlist.missions.metrics.service import parse_moment
    from punchlist.surfaces.cli.mission_metric_plot import plot_lines
    from punchlist.views.metrics import read_metric

    services = cli.services()
    views = services.metrics.views(mission, metric, limit=limit)
    shown, plots = [], []
    period = since is not None or until is not None
    for view in views:
        found = read_metric(
            services.store,
            mission,
            view.metric.slug,
            since=parse_moment(since, "--since") if since is not None else None,
            until=parse_moment(until, "--until") if until is not None else None,
            newest=None if period else limit,
            points=limit,
        )
        shown.append({**view.as_json(), "plot": found.as_json()})
        heading = [excerpt(line, _width()) for line in (*_heading(view), *_problems(view))]
        plots.append("\n".join([*heading, *plot_lines(found, view.readings if not period else ())]))
    cli.show(shown, "\n\n".join(plots) or NO_METRICS)


@app.command(context_settings={"ignore_unknown_options": True})
def record(
    cli: CliContext,
    mission: MissionArgument,
    metric: MetricArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="A number.", show_default=False)],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="When it was taken: 2026-02-21, or a time with zone. Default: now."),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="A remark about the reading.")] = "",
) -> None:
    """Record a reading."""
    from punchlist.missions.metrics.status import parse_number

    refuse_for_agents("mission metric record")
    services = cli.services()
    try:
        number = parse_number(value)
    except InvalidInput as error:
        raise InvalidInput(f"VALUE: {error}.") from None
    scope = mission_scope(cli, services, services.missions.get(mission).conversation_id)
    reading = services.metrics.record(scope, mission, metric, number, at=at, note=note)
    [view] = services.metrics.views(mission, metric)
    cli.show(
        camel_json(reading, "value", "at", "source", "note"), [excerpt(line, _width()) for line in _summary_lines(view)]
    )


@app.command()
def collect(
    cli: CliContext,
    mission: MissionArgument,
    metrics: Annotated[
        list[str] | None, typer.Argument(metavar="METRIC…", help="The metrics to collect.", show_default=False)
    ] = None,
    collect_all: Annotated[bool, typer.Option("--all", help="All metrics that have a collector.")] = False,
) -> None:
    """Run collectors now. Exits with 1 if one of them fails."""
    from punchlist.missions.metrics.status import format_number

    if bool(metrics) == collect_all:
        raise typer.BadParameter("name metrics, or give --all", param_hint="METRIC")
    services = cli.services()
    scope = mission_scope(cli, services, services.missions.get(mission).conversation_id)
    collected = services.collecting.collect(scope, mission, metrics or ())
    lines = [
        f"✗ {visible(result.error)}"
        if result.value is None
        else f"✓ {visible(result.metric.slug)}: {visible(format_number(result.value, result.metric.unit))}"
        for result in collected
    ]
    shown = [result.as_json() for result in collected]
    cli.show(shown, lines, empty="No metric of the mission has a collector.")
    if any(result.error for result in collected):
        raise typer.Exit(1)


def _summary_lines(view: MetricView) -> list[str]:
    from punchlist.missions.metrics.status import TREND_READINGS

    lines = [f"{ICONS[view.status]} {visible(view.metric.slug)}  {_current(view)}"]
    if len(view.readings) > 1:
        lines[0] += f"  {sparkline(view.values[-TREND_READINGS:])}"
    return [*lines, *(f"    {line}" for line in _problems(view))]


def _current(view: MetricView) -> str:
    from punchlist.missions.metrics.status import format_number

    metric = view.metric
    target = visible(format_number(metric.target, metric.unit))
    if view.current is None:
        return f"no readings yet, target {target}"
    status = view.status.replace("_", " ")
    trend = "" if view.trend == "unknown" else f", {view.trend}"
    return f"{visible(format_number(view.current.value, metric.unit))}, {status} ({target}){trend}"


def _problems(view: MetricView) -> list[str]:
    problems = []
    if view.stale and view.current:
        problems.append(f"stale: the newest reading is from {format_time(view.current.at)}")
    if view.metric.last_error is not None and view.metric.last_error_at is not None:
        problems.append(f"not collected {format_time(view.metric.last_error_at)}: {visible(view.metric.last_error)}")
    return problems


def _heading(view: MetricView) -> list[str]:
    return [f"{visible(view.metric.name)} ({visible(view.metric.slug)})", _current(view)]


def _width() -> int:
    return max(terminal_width(), MIN_WIDTH)
