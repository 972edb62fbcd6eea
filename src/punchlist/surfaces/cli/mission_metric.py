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
from punchlist.surfaces.plot import MIN_WIDTH, Level, fits_scale, plot, sparkline

if TYPE_CHECKING:
    from punchlist.missions.metrics.service import MetricView

app = typer.Typer(help="Show the metrics of a mission, record readings, run collectors.", no_args_is_help=True)

MetricArgument = Annotated[str, typer.Argument(metavar="METRIC", help="The metric's slug.", show_default=False)]

ICONS: Final = {"on_target": "✓", "warning": "!", "off_target": "✗", "unknown": "?"}
_TARGET_DASH: Final = "─"
_WARNING_DASH: Final = "┄"
_LISTED_READINGS: Final = 5
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
        int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many of the newest readings to plot.")
    ] = 60,
) -> None:
    """Plot the readings of a metric with its target and warning levels."""
    views = cli.services().metrics.views(mission, metric, limit=limit)
    plots = "\n\n".join("\n".join(_plot_lines(view, limit)) for view in views)
    cli.show([view.as_json() for view in views], plots or NO_METRICS)


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


def _plot_lines(view: MetricView, limit: int) -> list[str]:
    from punchlist.missions.metrics.status import format_number

    metric, readings, width = view.metric, view.readings[-limit:], _width()
    lines = [excerpt(f"{visible(metric.name)} ({visible(metric.slug)})", width), excerpt(_current(view), width)]
    lines += [excerpt(line, width) for line in _problems(view)]
    if not readings:
        return lines
    values = [reading.value for reading in readings]
    levels, legend = [], []
    for name, dash, value in (("target", _TARGET_DASH, metric.target), ("warning", _WARNING_DASH, metric.warning)):
        if value is None:
            continue
        label = f"{name} {visible(format_number(value, metric.unit))}"
        if fits_scale(value, values):
            levels.append(Level(value, dash))
            label = f"{dash * 2} {label}"
        legend.append(label)
    dates = readings[0].at[:10], readings[-1].at[:10]
    lines += ["", *plot(values, width=width, levels=levels, edge_labels=dates, label=format_number)]
    lines += [excerpt("   ".join(legend), width), ""]
    for reading in readings[-_LISTED_READINGS:]:
        note = f"  {visible(reading.note)}" if reading.note else ""
        number = visible(format_number(reading.value, metric.unit))
        lines.append(excerpt(f"{format_time(reading.at)}  {number}  {visible(reading.source)}{note}", width))
    return lines


def _width() -> int:
    return max(terminal_width(), MIN_WIDTH)
