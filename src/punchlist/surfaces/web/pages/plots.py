"""Plots as SVG, drawn on the server. Pure functions; colours are classes of the style sheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from punchlist.kernel.clock import parse_timestamp
from punchlist.surfaces.web.pages import formats
from punchlist.views.metrics import MetricPlot
from punchlist.views.series import Cycle

WIDTH: Final = 640
HEIGHT: Final = 180
LEFT: Final = 44
RIGHT: Final = 12
LEVELS: Final = 74
"""Room for the names of the target and warning lines at the right."""
TOP: Final = 10
BOTTOM: Final = 22
_FEW_POINTS: Final = 40


class Scale(NamedTuple):
    """A linear map from values to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1)
        return round(self.start + share * (self.end - self.start), 1)


def gauge(used: int, limit: int) -> Markup:
    """A bar of a limit; the text beside it has the numbers."""
    share = min(100, 100 * used / limit) if limit else 100
    return Markup('<svg aria-hidden="true"><rect width="{}%" height="100%"></rect></svg>').format(round(share, 1))


def metric_plot(plot: MetricPlot, *, width: int = WIDTH, height: int = HEIGHT) -> Markup:
    """Readings over time, with the target and warning lines and a mark for each completed todo."""
    if not plot.points:
        return Markup("")
    levels = [level for level in (plot.metric.target, plot.metric.warning) if level is not None]
    low = min([point.low for point in plot.points] + levels)
    high = max([point.high for point in plot.points] + levels)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 1
    y = Scale(low - margin, high + margin, height - BOTTOM, TOP)
    times = [_seconds(point.at) for point in plot.points]
    marks = [mark for mark in plot.marks if times[0] <= _seconds(mark.at)]
    last = max([times[-1], *(_seconds(mark.at) for mark in marks)])
    x = Scale(times[0], last, LEFT, width - LEVELS - 6) if last > times[0] else Scale(0, 1, width / 2, width / 2)
    place = [(x(at), y(point.value)) for at, point in zip(times, plot.points, strict=True)]
    unit = plot.metric.unit
    parts = [*_grid(y, width - LEVELS + RIGHT), *_levels(plot, y, width)]
    parts += _days(plot.points[0].at, plot.points[-1].at, width - LEVELS + RIGHT, height)
    if plot.thinned:
        upper = [(x(at), y(point.high)) for at, point in zip(times, plot.points, strict=True)]
        lower = [(x(at), y(point.low)) for at, point in zip(times, plot.points, strict=True)]
        parts.append(Markup('<path class="band" d="{}Z"></path>').format(_path([*upper, *reversed(lower)])))
    parts.append(Markup('<path class="line" d="{}"></path>').format(_path(place)))
    if len(place) <= _FEW_POINTS:
        for (cx, cy), point in zip(place, plot.points, strict=True):
            title = f"{formats.value(point.value)} {unit}, {point.at[:16].replace('T', ' ')} UTC"
            parts.append(
                Markup('<circle class="point" cx="{}" cy="{}" r="2.8"><title>{}</title></circle>').format(cx, cy, title)
            )
    for mark in marks:
        at = x(_seconds(mark.at))
        title = f"Completed: {mark.title}"
        bottom = height - BOTTOM
        parts.append(
            Markup(
                '<line class="mark-line" x1="{0}" x2="{0}" y1="{1}" y2="{2}"></line>'
                '<path class="mark" d="M{0} {2}l-4.500 7h9z"><title>{3}</title></path>'
            ).format(at, TOP, bottom, title)
        )
    now = f"{formats.value(plot.points[-1].value)} {unit}".strip()
    return _svg(width, height, Markup("").join(parts), f"{plot.metric.name}: {now}, {len(plot.points)} points")


def cumulative_flow(days: Sequence[tuple[str, Mapping[str, int]]], order: Sequence[str]) -> Markup:
    """Stacked areas, the first status of `order` at the bottom."""
    most = max((sum(counts.values()) for _, counts in days), default=0)
    if not most:
        return Markup("")
    width, height = WIDTH * 1.6, 240
    y, x = Scale(0, most, height - BOTTOM, TOP), Scale(0, max(len(days) - 1, 1), LEFT, width - RIGHT)
    below = [0] * len(days)
    parts = [*_grid(y, width, whole=True)]
    for status in order:
        above = [low + counts.get(status, 0) for low, (_, counts) in zip(below, days, strict=True)]
        edge = [(x(number), y(value)) for number, value in enumerate(above)]
        base = [(x(number), y(value)) for number, value in enumerate(below)]
        parts.append(
            Markup('<path class="c-{}" d="{}Z"><title>{}</title></path>').format(
                status, _path([*edge, *reversed(base)]), f"{formats.words(status)}: {above[-1] - below[-1]} today"
            )
        )
        below = above
    parts += _days(days[0][0], days[-1][0], width, height)
    return _svg(width, height, Markup("").join(parts), f"Todos by status over {len(days)} days")


def day_bars(
    days: Sequence[str], series: Mapping[str, Sequence[float]], classes: Mapping[str, str], unit: str
) -> Markup:
    """Stacked bars, one a day. `unit` is `$` or a noun."""
    width, height = WIDTH, HEIGHT
    totals = [sum(values) for values in zip(*series.values(), strict=True)] if series else []
    if not any(totals):
        return Markup("")
    y = Scale(0, max(totals) * 1.05, height - BOTTOM, TOP)
    step = (width - LEFT - RIGHT) / len(days)
    parts = [*_grid(y, width, "$" if unit == "$" else "", whole=unit != "$")]
    for number, at in enumerate(days):
        base = 0.0
        for name, values in series.items():
            if amount := values[number]:
                text = formats.money(amount) if unit == "$" else f"{amount:g} {unit}"
                top, left = y(base + amount), round(LEFT + number * step + step * 0.12, 1)
                parts.append(
                    Markup(
                        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="1.5"><title>{}</title></rect>'
                    ).format(
                        classes[name],
                        left,
                        top,
                        round(step * 0.76, 1),
                        round(y(base) - top, 1),
                        f"{at}, {name}: {text}",
                    )
                )
                base += amount
    parts += _days(days[0], days[-1], width, height)
    return _svg(width, height, Markup("").join(parts), f"{unit} by day")


def day_points(days: Sequence[str], cycles: Sequence[Cycle], median: float | None) -> Markup:
    """A point for each completed todo: its day, and how long it took; with the median as a line."""
    if not cycles or not days:
        return Markup("")
    width, height = WIDTH, HEIGHT
    size, unit = next((each for each in formats.UNITS if (median or 0) >= each[0]), (1, "s"))
    y = Scale(0, max(each.seconds for each in cycles) / size * 1.08 or 1, height - BOTTOM, TOP)
    x = Scale(0, max(len(days) - 1, 1), LEFT + 6, width - RIGHT - 6)
    place = {day: number for number, day in enumerate(days)}
    parts = [*_grid(y, width, suffix=f" {unit}")]
    for each in cycles:
        if each.day in place:
            title = f"{each.day}, {each.pillar}: {formats.span(each.seconds)}"
            at = x(place[each.day]), y(each.seconds / size)
            parts.append(
                Markup('<circle class="point" cx="{}" cy="{}" r="3"><title>{}</title></circle>').format(*at, title)
            )
    if median is not None:
        at_median = y(median / size)
        parts.append(
            Markup('<line class="target" x1="{}" x2="{}" y1="{}" y2="{}"><title>median</title></line>').format(
                LEFT, width - RIGHT, at_median, at_median
            )
        )
    parts += _days(days[0], days[-1], width, height)
    return _svg(width, height, Markup("").join(parts), f"Cycle times of {len(cycles)} todos")


def strip(counts: Sequence[tuple[int, int]]) -> Markup:
    """An overview of a run: calls per interval, with those that failed at the bottom."""
    if not counts:
        return Markup("")
    most = max(total for total, _ in counts) or 1
    y = Scale(0, most, 40, 2)
    bars = Markup("").join(
        Markup('<rect class="{}" x="{}" y="{}" width="0.9" height="{}"></rect>').format(
            kind, number, y(amount), round(40 - y(amount), 1)
        )
        for number, (total, failed) in enumerate(counts)
        for kind, amount in (("bar-call", total), ("bar-failed", failed))
        if amount
    )
    return Markup(
        '<svg class="overview-strip" viewBox="0 0 {} 40" preserveAspectRatio="none" role="img" '
        'aria-label="Calls over time">{}</svg>'
    ).format(len(counts), bars)


def bars(spans: Sequence[tuple[float, float, str]]) -> Markup:
    """A row of the waterfall: start and length as shares of the whole run, and the kind."""
    drawn = Markup("").join(
        Markup('<rect class="bar-{}" x="{}%" width="{}%" height="100%" rx="2"></rect>').format(
            kind, round(min(start * 100, 99.4), 2), round(max(length * 100, 0.6), 2)
        )
        for start, length, kind in spans
    )
    return Markup('<svg aria-hidden="true">{}</svg>').format(drawn)


def _svg(width: float, height: float, content: Markup, label: str) -> Markup:
    kind = "plot wide" if width > WIDTH else "plot" if width < WIDTH else "plot half"
    return Markup('<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        kind, round(width), round(height), label, content
    )


def _path(points: Iterator[tuple[float, float]] | Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _grid(y: Scale, width: float, prefix: str = "", suffix: str = "", *, whole: bool = False) -> Iterator[Markup]:
    """`whole`: the values are counts, so that no line is between two of them."""
    for value in _ticks(y.low, y.high):
        if whole and value % 1:
            continue
        yield Markup(
            '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"></line><text x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(
            LEFT, width - RIGHT, y(value), y(value), LEFT - 6, y(value) + 3.5, f"{prefix}{formats.value(value)}{suffix}"
        )


def _ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round values inside the range."""
    span = high - low
    if span <= 0:
        return [low]
    raw = span / wanted
    size = (
        10.0 ** len(str(int(raw))[1:])
        if raw >= 1
        else 10.0 ** -(len(f"{raw:.10f}".split(".")[1]) - len(f"{raw:.10f}".split(".")[1].lstrip("0")) + 1)
    )
    step = next(step for factor in (1, 2, 2.5, 5, 10) if (step := size * factor) >= raw)
    first = -(-low // step) * step
    return [round(first + number * step, 10) for number in range(wanted + 2) if first + number * step <= high]


def _levels(plot: MetricPlot, y: Scale, width: float) -> Iterator[Markup]:
    for kind, level in (("target", plot.metric.target), ("warning", plot.metric.warning)):
        if level is not None:
            yield Markup(
                '<line class="{0}" x1="{1}" x2="{2}" y1="{3}" y2="{3}"></line>'
                '<text class="{0}-text level" x="{5}" y="{4}">{0} {6}</text>'
            ).format(kind, LEFT, width - LEVELS, y(level), y(level) + 3.5, width - LEVELS + 5, formats.value(level))


def _days(first: str, last: str, width: float, height: float) -> Iterator[Markup]:
    yield Markup('<text class="day" x="{}" y="{}">{}</text>').format(LEFT, height - 5, escape(first[:10]))
    if last[:10] != first[:10]:
        yield Markup('<text class="day" x="{}" y="{}" text-anchor="end">{}</text>').format(
            width - RIGHT, height - 5, last[:10]
        )


def _seconds(stamp: str) -> float:
    return parse_timestamp(stamp).timestamp()
