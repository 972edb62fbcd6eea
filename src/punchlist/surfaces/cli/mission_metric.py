"""`punchlist mission metric`: what a mission measures, and what came of measuring it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from punchlist.kernel.text import excerpt, visible
from punchlist.surfaces.cli.context import JsonOption, cli_context, echo, echo_json, format_time, terminal_width
from punchlist.surfaces.cli.plot import NARROWEST, Level, in_sight, plot, sparkline

if TYPE_CHECKING:
    from punchlist.missions.metrics.collection import CollectedMetric
    from punchlist.missions.metrics.service import MetricView
    from punchlist.missions.model import MissionScope
    from punchlist.surfaces.cli.context import CliContext
    from punchlist.surfaces.services import Services

app = typer.Typer(help="Look at the metrics of a mission, and record readings.", no_args_is_help=True)

MissionArgument = Annotated[str, typer.Argument(metavar="MISSION", help="The mission's slug.", show_default=False)]
MetricArgument = Annotated[str, typer.Argument(metavar="METRIC", help="The metric's slug.", show_default=False)]

SIGNS: Final = {"on_target": "✓", "warning": "!", "off_target": "✗", "unknown": "?"}
_TARGET: Final = "─"
_WARNING: Final = "┄"
_LAST: Final = 5
"""How many of the newest readings are listed below a plot."""


@app.callback()
def group() -> None:
    """Look at the metrics of a mission, and record readings."""


@app.command("list")
def list_metrics(context: typer.Context, mission: MissionArgument, as_json: JsonOption = False) -> None:
    """List the metrics of a mission and how they stand."""
    services = cli_context(context).services(as_json=as_json)
    views = services.metrics.views(mission)
    if as_json:
        echo_json([view.as_json() for view in views])
        return
    if not views:
        echo("The mission has no metrics.")
    pillar = None
    for view in views:
        if view.pillar_slug != pillar:
            pillar = view.pillar_slug
            echo(visible(pillar))
        for line in _lines(view):
            echo(excerpt(f"  {line}", _width()))


@app.command()
def show(
    context: typer.Context,
    mission: MissionArgument,
    metric: Annotated[
        str | None, typer.Argument(metavar="METRIC", help="The metric's slug. Default: all.", show_default=False)
    ] = None,
    most: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many of the newest readings to draw.")
    ] = 60,
    as_json: JsonOption = False,
) -> None:
    """Draw the readings of a metric, with its levels."""
    services = cli_context(context).services(as_json=as_json)
    views = services.metrics.views(mission, metric, most=most)
    if as_json:
        echo_json([view.as_json() for view in views])
        return
    if not views:
        echo("The mission has no metrics.")
    for number, view in enumerate(views):
        echo("\n".join(["", *_picture(view, most)] if number else _picture(view, most)))


@app.command(context_settings={"ignore_unknown_options": True})
def record(
    context: typer.Context,
    mission: MissionArgument,
    metric: MetricArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="A number.", show_default=False)],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="When it was taken: 2026-02-21, or a time with zone. Default: now."),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What there is to say about it.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Record a reading by hand."""
    from punchlist.errors import InvalidInput
    from punchlist.missions.metrics.service import reading_json
    from punchlist.missions.metrics.status import parse_number

    entry = cli_context(context)
    services = entry.services(as_json=as_json)
    try:
        found = parse_number(value)
    except InvalidInput as error:
        raise InvalidInput(f"VALUE: {error}.") from None
    reading = services.metrics.record(_scope(entry, services, mission), mission, metric, found, at=at, note=note)
    if as_json:
        echo_json(reading_json(reading))
        return
    [view] = services.metrics.views(mission, metric)
    for line in _lines(view):
        echo(excerpt(line, _width()))


@app.command()
def collect(
    context: typer.Context,
    mission: MissionArgument,
    metrics: Annotated[
        list[str] | None, typer.Argument(metavar="METRIC…", help="The metrics to collect.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All that are not recorded by hand.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run collectors here and now. Exits with 1 if one of them failed."""
    entry = cli_context(context)
    if bool(metrics) == every:
        raise typer.BadParameter("name metrics, or give --all", param_hint="METRIC")
    services = entry.services(as_json=as_json)
    collected = services.collecting.collect(_scope(entry, services, mission), mission, metrics or ())
    if as_json:
        echo_json([one.as_json() for one in collected])
    elif not collected:
        echo("All metrics of the mission are recorded by hand.")
    else:
        for one in collected:
            echo(_came(one))
    if any(one.error for one in collected):
        raise typer.Exit(1)


def _scope(entry: CliContext, services: Services, mission_slug: str) -> MissionScope:
    """The person at the terminal, in the mission's chat."""
    from punchlist.missions.model import MissionScope

    return MissionScope(services.missions.get(mission_slug).conversation_id, entry.scope(services).actor)


def _came(one: CollectedMetric) -> str:
    from punchlist.missions.metrics.status import format_number

    if one.value is None:
        return f"✗ {visible(one.error)}"
    return f"✓ {visible(one.metric.slug)}: {visible(format_number(one.value, one.metric.unit))}"


def _lines(view: MetricView) -> list[str]:
    """A metric in a line, and what is wrong with it in more."""
    from punchlist.missions.metrics.status import TREND_READINGS

    lines = [f"{SIGNS[view.status]} {visible(view.metric.slug)}  {_standing(view)}"]
    if len(view.readings) > 1:
        lines[0] += f"  {sparkline(view.values[-TREND_READINGS:])}"
    return [*lines, *(f"    {line}" for line in _troubles(view))]


def _standing(view: MetricView) -> str:
    from punchlist.missions.metrics.status import format_number

    metric = view.metric
    if view.current is None:
        return f"no readings yet, target {visible(format_number(metric.target, metric.unit))}"
    status = view.status.replace("_", " ")
    trend = "" if view.trend == "unknown" else f", {view.trend}"
    target = visible(format_number(metric.target, metric.unit))
    return f"{visible(format_number(view.current.value, metric.unit))}, {status} ({target}){trend}"


def _troubles(view: MetricView) -> list[str]:
    troubles = []
    if view.stale and view.current:
        troubles.append(f"stale: the newest reading is of {format_time(view.current.at)}")
    if view.metric.last_error is not None and view.metric.last_error_at is not None:
        troubles.append(f"not collected {format_time(view.metric.last_error_at)}: {visible(view.metric.last_error)}")
    return troubles


def _picture(view: MetricView, most: int) -> list[str]:
    from punchlist.missions.metrics.status import format_number

    metric, readings, width = view.metric, view.readings[-most:], _width()
    lines = [excerpt(f"{visible(metric.name)} ({visible(metric.slug)})", width), excerpt(_standing(view), width)]
    lines += [excerpt(line, width) for line in _troubles(view)]
    if not readings:
        return lines
    values = [reading.value for reading in readings]
    told = {"target": (_TARGET, metric.target), "warning": (_WARNING, metric.warning)}
    drawn, legend = [], []
    for name, (dash, value) in told.items():
        if value is None:
            continue
        legend.append(f"{name} {visible(format_number(value, metric.unit))}")
        if in_sight(value, values):
            drawn.append(Level(value, dash))
            legend[-1] = f"{dash * 2} {legend[-1]}"
    days = readings[0].at[:10], readings[-1].at[:10]
    lines += ["", *plot(values, width=width, levels=drawn, beneath=days, label=format_number)]
    lines += [excerpt("   ".join(legend), width), ""]
    for reading in readings[-_LAST:]:
        note = f"  {visible(reading.note)}" if reading.note else ""
        found = visible(format_number(reading.value, metric.unit))
        lines.append(excerpt(f"{format_time(reading.at)}  {found}  {visible(reading.source)}{note}", width))
    return lines


def _width() -> int:
    return max(terminal_width(), NARROWEST)
