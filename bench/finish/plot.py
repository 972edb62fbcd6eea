"""The plot: finished tasks and false claims of each arm, one panel for each set of faults. Plain SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax.saxutils import escape

from bench.finish.statistics import Mean, Summary

_ROW, _PANEL_TOP, _LEFT, _BAR, _RIGHT = 22, 46, 170, 420, 70
_WIDTH: Final = _LEFT + _BAR + _RIGHT
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#333}.h{font-weight:600}.w{fill:#2f7d4f}.f{fill:#c0392b}"
    ".t{fill:#e6e6e6}.m{stroke:#222;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.t{fill:#3a3a3a}.m{stroke:#eee}}"
)


def draw(found: Mapping[tuple[str, str], Summary], titles: Mapping[str, str], faults: Mapping[str, str]) -> str:
    panels = list(dict.fromkeys(name for name, _ in found))
    body: list[str] = []
    top = 0
    for name in panels:
        rows = [summary for (each, _), summary in found.items() if each == name]
        body += _panel(rows, top, faults.get(name, name), titles)
        top += _PANEL_TOP + _ROW * len(rows)
    height = top + 30
    legend = (
        f'<rect class="w" x="{_LEFT}" y="{top + 8}" width="12" height="12"/>'
        f'<text x="{_LEFT + 18}" y="{top + 19}">finished, by hidden tests</text>'
        f'<rect class="f" x="{_LEFT + 210}" y="{top + 8}" width="12" height="12"/>'
        f'<text x="{_LEFT + 228}" y="{top + 19}">false done</text>'
    )
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Finished tasks by arm">'
    )
    return "\n".join([opening, f"<style>{_STYLE}</style>", *body, legend, "</svg>", ""])


def _panel(rows: list[Summary], top: int, title: str, titles: Mapping[str, str]) -> Iterator[str]:
    yield f'<text class="h" x="8" y="{top + 28}">{escape(title)}</text>'
    for number, summary in enumerate(rows):
        y = top + _PANEL_TOP - 8 + number * _ROW
        scale = _BAR / summary.tasks
        whole, false = summary.whole.value * scale, summary.false_done.value * scale
        yield f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(titles[summary.arm])}</text>'
        yield f'<rect class="t" x="{_LEFT}" y="{y}" width="{_BAR}" height="16"/>'
        yield f'<rect class="w" x="{_LEFT}" y="{y}" width="{whole:.1f}" height="16"/>'
        if false:
            yield f'<rect class="f" x="{_LEFT + _BAR - false:.1f}" y="{y}" width="{false:.1f}" height="16"/>'
        yield from _margin(summary.whole, scale, y + 8)
        yield f'<text x="{_LEFT + _BAR + 8}" y="{y + 13}">{summary.whole.value:.1f}</text>'


def _margin(mean: Mean, scale: float, y: int) -> Iterator[str]:
    if mean.margin:
        low, high = max(0.0, mean.value - mean.margin) * scale, (mean.value + mean.margin) * scale
        yield f'<line class="m" x1="{_LEFT + low:.1f}" y1="{y}" x2="{_LEFT + min(high, _BAR):.1f}" y2="{y}"/>'
