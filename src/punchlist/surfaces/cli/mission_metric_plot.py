"""The plot of a metric for the terminal: curve, levels, readings, and the todos that were to change it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from punchlist.kernel.text import excerpt, visible
from punchlist.missions.metrics.status import format_number
from punchlist.missions.model import MetricReading
from punchlist.surfaces.cli.context import format_time, terminal_width
from punchlist.surfaces.plot import MIN_WIDTH, Level, fits_scale, plot
from punchlist.views.metrics import MetricPlot

_TARGET_DASH: Final = "─"
_WARNING_DASH: Final = "┄"
_LISTED_READINGS: Final = 5
_LISTED_MARKS: Final = 10


def plot_lines(found: MetricPlot, readings: Sequence[MetricReading]) -> Iterator[str]:
    """`readings` are listed below the curve, the newest of them."""
    width = max(terminal_width(), MIN_WIDTH)
    if not found.points:
        yield from ("No readings in this period.",) if found.since != "0" or found.until != "9999" else ()
        return
    yield from ("", *_curve(found, width), "")
    for reading in readings[-_LISTED_READINGS:]:
        note = f"  {visible(reading.note)}" if reading.note else ""
        number = visible(format_number(reading.value, found.metric.unit))
        yield excerpt(f"{format_time(reading.at)}  {number}  {visible(reading.source)}{note}", width)
    if found.marks:
        yield "Completed todos that were to change it"
        for mark in found.marks[-_LISTED_MARKS:]:
            yield excerpt(f"{format_time(mark.at)}  {mark.todo_id[-8:]}  {visible(mark.title)}", width)


def _curve(found: MetricPlot, width: int) -> Iterator[str]:
    metric, values = found.metric, [point.value for point in found.points]
    levels, legend = [], []
    for name, dash, value in (("target", _TARGET_DASH, metric.target), ("warning", _WARNING_DASH, metric.warning)):
        if value is None:
            continue
        label = f"{name} {visible(format_number(value, metric.unit))}"
        if fits_scale(value, values):
            levels.append(Level(value, dash))
            label = f"{dash * 2} {label}"
        legend.append(label)
    dates = found.points[0].at[:10], found.points[-1].at[:10]
    yield from plot(values, width=width, levels=levels, edge_labels=dates, label=format_number)
    yield excerpt("   ".join(legend), width)
    if found.thinned:
        count = sum(point.readings for point in found.points)
        yield excerpt(f"{len(values)} points, each the mean of an interval, for {count:,} readings", width)
