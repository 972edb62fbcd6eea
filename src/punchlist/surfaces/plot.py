"""Plot a curve in a terminal with braille characters: each is a grid of two by four points.

    72 ┤                        ⢀⠤⠒⠉
       │           ⣀⠤⠔⠒⠉
    60 ┤┄┄┄┄┄┄┄⡠⠔⠊┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
    55 ┤⠤⠒⠉
       └────────────────────────────────
        2026-02-01            2026-02-21

Levels are horizontal lines, each with its own dash; the curve is drawn over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

MIN_WIDTH: Final = 40
_MIN_CELLS: Final = 8
_BLANK: Final = 0x2800
_DOTS: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bit of each point of a braille character, by column and row."""
_BARS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Level:
    value: float
    dash: str


def sparkline(values: Sequence[float]) -> str:
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = high - low
    return "".join(_BARS[round((value - low) / span * 7)] if span else _BARS[3] for value in values)


def plot(
    values: Sequence[float],
    *,
    width: int,
    height: int = 8,
    levels: Sequence[Level] = (),
    edge_labels: tuple[str, str] = ("", ""),
    label: Callable[[float], str] = lambda value: f"{value:g}",
) -> list[str]:
    """Lines no wider than `width`. `edge_labels` are written below the left and the right end of the curve."""
    shown = [*values, *(level.value for level in levels)]
    scale = _Scale(min(shown), max(shown), height)
    labels = _labels(scale, values, levels, label)
    gutter = max(map(len, labels.values()))
    cells = max(width - gutter - 2, _MIN_CELLS)
    dashes = {scale.row(level.value): level.dash for level in reversed(levels)}
    lines = []
    for row, drawn in enumerate(_curve(values, scale, cells)):
        ground = dashes.get(row, " ")
        text = "".join(chr(_BLANK + bits) if bits else ground for bits in drawn)
        edge = "┤" if row in labels else "│"
        lines.append(f"{labels.get(row, ''):>{gutter}} {edge}{text}".rstrip())
    lines.append(f"{'':{gutter}} └{'─' * cells}")
    if any(edge_labels):
        lines.append(f"{'':{gutter}}  {_ends(*edge_labels, cells)}".rstrip())
    return lines


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    height: int

    def down(self, value: float) -> int:
        """The distance of a value from the upper edge, in points."""
        # Halves, because the difference of two large floats may overflow.
        span = self.high / 2 - self.low / 2
        share = (self.high / 2 - value / 2) / span if span else 0.5
        return round(share * (self.height * 4 - 1))

    def row(self, value: float) -> int:
        return self.down(value) // 4


def _labels(
    scale: _Scale, values: Sequence[float], levels: Sequence[Level], label: Callable[[float], str]
) -> dict[int, str]:
    """The label of each row. In a shared row a level takes precedence over the extremes of the curve."""
    labelled = [*(level.value for level in levels), *((max(values), min(values)) if values else ())]
    return {scale.row(value): label(value) for value in reversed(labelled)}


def _curve(values: Sequence[float], scale: _Scale, cells: int) -> list[list[int]]:
    grid = [[0] * cells for _ in range(scale.height)]
    last = max(len(values) - 1, 1)
    points = [(round(place / last * (cells * 2 - 1)), scale.down(value)) for place, value in enumerate(values)]
    for across, down in _connect(points):
        grid[down // 4][across // 2] |= _DOTS[across % 2][down % 4]
    return grid


def _connect(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The points and the straight lines between them."""
    yield from points
    for (left, top), (right, bottom) in pairwise(points):
        steps = max(abs(right - left), abs(bottom - top))
        for step in range(1, steps):
            share = step / steps
            yield round(left + share * (right - left)), round(top + share * (bottom - top))


def _ends(left: str, right: str, cells: int) -> str:
    room = cells - len(left) - len(right)
    return f"{left}{' ' * room}{right}" if room > 0 else left[: max(cells, 0)]


def fits_scale(level: float, values: Sequence[float]) -> bool:
    """Whether a level is close enough to the values to share one scale with them."""
    if not values:
        return True
    span = max(values) - min(values) or abs(values[0]) or 1.0
    distance = max(min(values) - level, level - max(values), 0.0)
    return math.isfinite(distance) and distance <= 20 * span
