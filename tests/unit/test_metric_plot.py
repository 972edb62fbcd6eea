"""A curve in a terminal: it fits, it is labelled, and it goes where the values go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist.surfaces.plot import MIN_WIDTH, Level, fits_scale, plot, sparkline

BRAILLE = {chr(code) for code in range(0x2801, 0x2900)}
VALUES = st.lists(st.floats(-1e18, 1e18), min_size=1, max_size=80)


def drawn(lines: list[str]) -> list[tuple[int, int]]:
    """Row and column of every character of the curve."""
    return [(row, column) for row, line in enumerate(lines) for column, char in enumerate(line) if char in BRAILLE]


@pytest.mark.spec("M7")
def test_a_plot_shows_curve_levels_and_dates() -> None:
    lines = plot(
        [55, 63, 72],
        width=40,
        levels=[Level(60, "─"), Level(90, "┄")],
        edge_labels=("2026-02-01", "2026-02-21"),
    )
    assert lines == [
        "90 ┤┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄",
        "   │",
        "   │",
        "   │",
        "72 ┤                            ⣀⣀⡠⠤⠔⠒⠊⠉",
        "   │                   ⢀⣀⡠⠤⠔⠒⠒⠉⠉",
        "60 ┤─────────⢀⣀⣀⠤⠤⠔⠒⠒⠉⠉⠁────────────────",
        "55 ┤⣀⡠⠤⠤⠒⠒⠊⠉⠉⠁",
        "   └────────────────────────────────────",
        "    2026-02-01                2026-02-21",
    ]


@given(VALUES, st.integers(MIN_WIDTH, 200), st.integers(2, 20), st.lists(st.floats(-1e300, 1e300), max_size=2))
def test_a_plot_fits(values: list[float], width: int, height: int, levels: list[float]) -> None:
    near = [Level(level, "─") for level in levels if fits_scale(level, values)]
    lines = plot(values, width=width, height=height, levels=near, edge_labels=("2026-02-01", "2026-02-21"))
    assert max(map(len, lines)) <= width
    assert len(lines) == height + 2
    assert drawn(lines)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40))
def test_the_curve_is_highest_where_the_values_are(values: list[int]) -> None:
    lines = plot([float(value) for value in values], width=80)
    rows = {row for row, _ in drawn(lines)}
    assert rows == set(range(8)) or len(set(values)) == 1
    left = min(column for _, column in drawn(lines))
    first = min(row for row, column in drawn(lines) if column == left)
    if values[0] == max(values) and len(set(values)) > 1:
        assert first == 0


def test_the_curve_has_no_gaps() -> None:
    lines = plot([0, 100, 0, 100], width=40)
    columns = {column for _, column in drawn(lines)}
    assert columns == set(range(min(columns), max(columns) + 1))


def test_one_value_is_a_point() -> None:
    assert len(drawn(plot([55], width=40))) == 1


def test_a_level_far_away_is_not_drawn() -> None:
    assert fits_scale(100, [10, 20])
    assert not fits_scale(1e300, [10, 20])
    assert not fits_scale(1000, [10, 11])


@pytest.mark.parametrize(
    ("values", "bars"), [([1, 2, 3, 4], "▁▃▆█"), ([2, 2], "▄▄"), ([], ""), ([4, 1], "█▁"), ([-1e18, 1e18], "▁█")]
)
def test_a_sparkline_has_a_bar_for_each_value(values: list[float], bars: str) -> None:
    assert sparkline(values) == bars
