"""A curve in a terminal, of braille characters: two points across and four down in each.

    72 ┤                        ⢀⠤⠒⠉
       │           ⣀⠤⠔⠒⠉
    60 ┤┄┄┄┄┄┄┄⡠⠔⠊┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
    55 ┤⠤⠒⠉
       └────────────────────────────────
        2026-02-01            2026-02-21

Levels are lines through the picture, each with its own dash; the curve is drawn over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

NARROWEST: Final = 40
_FEWEST_CELLS: Final = 8
_BLANK: Final = 0x2800
_DOTS: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""By column and row, which bit of a braille character stands for a point."""
_BARS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Level:
    """A value that is looked out for."""

    value: float
    dash: str


def sparkline(values: Sequence[float]) -> str:
    """One bar for each value."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = high - low
    return "".join(_BARS[round((value - low) / span * 7)] if span else _BARS[3] for value in values)


def plot(
    values: Sequence[float],
    *,
    width: int,
    height: int = 8,
    levels: Sequence[Level] = (),
    beneath: tuple[str, str] = ("", ""),
    label: Callable[[float], str] = lambda value: f"{value:g}",
) -> list[str]:
    """Lines no wider than `width`: the curve of `values`, with what to write at the ends of its lower edge."""
    shown = [*values, *(level.value for level in levels)]
    scale = _Scale(min(shown), max(shown), height)
    labels = _labels(scale, values, levels, label)
    gutter = max(map(len, labels.values()))
    cells = max(width - gutter - 2, _FEWEST_CELLS)
    dashes = {scale.row(level.value): level.dash for level in reversed(levels)}
    lines = []
    for row, drawn in enumerate(_curve(values, scale, cells)):
        ground = dashes.get(row, " ")
        text = "".join(chr(_BLANK + bits) if bits else ground for bits in drawn)
        edge = "┤" if row in labels else "│"
        lines.append(f"{labels.get(row, ''):>{gutter}} {edge}{text}".rstrip())
    lines.append(f"{'':{gutter}} └{'─' * cells}")
    if any(beneath):
        lines.append(f"{'':{gutter}}  {_ends(*beneath, cells)}".rstrip())
    return lines


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    height: int

    def down(self, value: float) -> int:
        """How many points a value is below the upper edge."""
        # Halves, since the difference of two large numbers may be none.
        span = self.high / 2 - self.low / 2
        share = (self.high / 2 - value / 2) / span if span else 0.5
        return round(share * (self.height * 4 - 1))

    def row(self, value: float) -> int:
        return self.down(value) // 4


def _labels(
    scale: _Scale, values: Sequence[float], levels: Sequence[Level], label: Callable[[float], str]
) -> dict[int, str]:
    """What is written beside which row. Where two want the same, a level comes before the ends of the curve."""
    wanted = [*(level.value for level in levels), *((max(values), min(values)) if values else ())]
    return {scale.row(value): label(value) for value in reversed(wanted)}


def _curve(values: Sequence[float], scale: _Scale, cells: int) -> list[list[int]]:
    grid = [[0] * cells for _ in range(scale.height)]
    last = max(len(values) - 1, 1)
    points = [(round(place / last * (cells * 2 - 1)), scale.down(value)) for place, value in enumerate(values)]
    for across, down in _joined(points):
        grid[down // 4][across // 2] |= _DOTS[across % 2][down % 4]
    return grid


def _joined(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The points, and those on the way from each to the next."""
    yield from points
    for (left, top), (right, bottom) in pairwise(points):
        steps = max(abs(right - left), abs(bottom - top))
        for step in range(1, steps):
            share = step / steps
            yield round(left + share * (right - left)), round(top + share * (bottom - top))


def _ends(left: str, right: str, cells: int) -> str:
    room = cells - len(left) - len(right)
    return f"{left}{' ' * room}{right}" if room > 0 else left[: max(cells, 0)]


def in_sight(level: float, values: Sequence[float]) -> bool:
    """Whether a level is near enough to the values for both to be seen in one picture."""
    if not values:
        return True
    span = max(values) - min(values) or abs(values[0]) or 1.0
    away = max(min(values) - level, level - max(values), 0.0)
    return math.isfinite(away) and away <= 20 * span
