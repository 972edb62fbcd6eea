"""The metrics of a mission as plots with target and warning levels (M15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from punchlist.missions.metrics.service import MetricView
from punchlist.missions.metrics.status import format_number
from punchlist.surfaces.plot import Level, fits_scale, plot
from punchlist.surfaces.tui.display_text import assemble, cut, line
from punchlist.surfaces.tui.key_table import KeyScope, bindings
from punchlist.surfaces.tui.panels.text_panel import TextPanel

READINGS: Final = 120
STYLES: Final = {"on_target": "$done", "warning": "$needs-you", "off_target": "$failed"}


class MetricsScreen(TextPanel[Sequence[MetricView]]):
    TITLE_TEXT = "Metrics"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyScope.PLANS)]

    def __init__(self, slug: str) -> None:
        super().__init__()
        self._slug = slug

    def load(self) -> Sequence[MetricView]:
        return self.backend.services.metrics.views(self._slug, limit=READINGS)

    def lines(self, data: Sequence[MetricView], width: int) -> list[Content]:
        found = [content for view in data for content in metric_lines(view, width)]
        return found or [Content("This mission has no metrics.")]


def metric_lines(view: MetricView, width: int) -> Iterator[Content]:
    metric, values = view.metric, view.values
    target = line(format_number(metric.target, metric.unit))
    now = "no readings yet" if view.current is None else line(format_number(view.current.value, metric.unit))
    status = str(view.status)
    yield cut(
        assemble(
            (line(metric.name), "bold"),
            f"  {now}  ",
            (status.replace("_", " "), STYLES.get(status, "$quiet")),
            f"  target {target}",
        ),
        width,
    )
    if metric.last_error:
        yield cut(Content.styled(f"not collected: {line(metric.last_error)}", "$failed"), width)
    if values:
        wanted = (("┄", metric.target), ("╌", metric.warning))
        levels = [Level(value, dash) for dash, value in wanted if value is not None and fits_scale(value, values)]
        dates = view.readings[0].at[:10], view.readings[-1].at[:10]
        yield from map(
            Content, plot(values, width=width, height=6, levels=levels, edge_labels=dates, label=format_number)
        )
    yield Content("")
