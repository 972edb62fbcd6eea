"""What readings mean: status, trend, staleness, and what counts as a number."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import timestamp
from punchlist.missions.metrics import status as metric_status
from punchlist.missions.metrics.status import MAX_VALUE, MetricStatus, Trend

NOW = datetime(2026, 2, 21, 9, 0, tzinfo=UTC)
VALUES = st.floats(-MAX_VALUE, MAX_VALUE)
DIRECTIONS = st.sampled_from(["up", "down"])


@pytest.mark.spec("M7")
@pytest.mark.parametrize(
    ("value", "direction", "status"),
    [
        (59.9, "down", "on_target"),
        (60, "down", "on_target"),
        (60.1, "down", "warning"),
        (90, "down", "warning"),
        (90.1, "down", "off_target"),
        (None, "down", "unknown"),
    ],
)
def test_a_metric_that_should_fall_stands_by_its_levels(value: float | None, direction: str, status: str) -> None:
    assert metric_status.status_of(value, 60, 90, direction) == status
    mirrored = None if value is None else -value
    assert metric_status.status_of(mirrored, -60, -90, "up") == status


@pytest.mark.spec("M7")
def test_without_a_warning_level_there_is_no_warning() -> None:
    assert metric_status.status_of(60.1, 60, None, "down") == "off_target"
    assert metric_status.status_of(79, 80, None, "up") == "off_target"


@pytest.mark.spec("M7")
@pytest.mark.parametrize(
    ("values", "direction", "trend"),
    [
        ([55, 63, 72], "down", "degrading"),
        ([55, 63, 72], "up", "improving"),
        ([72, 63, 55], "down", "improving"),
        ([72, 63, 55], "up", "degrading"),
        ([55, 72], "down", "unknown"),
        ([], "up", "unknown"),
        ([100, 102, 104], "up", "stable"),
        ([100, 103, 106], "up", "improving"),
        ([0, 0, 0], "up", "stable"),
        ([-10, -20, -30], "up", "degrading"),
        # What is older than the last ten does not count.
        ([1000] * 5 + [10] * 10, "down", "stable"),
        # One odd reading at the end does not turn what rises.
        ([10, 20, 30, 40, 50, 60, 70, 80, 90, 5], "up", "improving"),
    ],
)
def test_a_trend_is_the_way_that_the_last_ten_go(values: list[float], direction: str, trend: str) -> None:
    assert metric_status.trend(values, direction) == trend


@given(st.lists(VALUES, max_size=15), DIRECTIONS)
def test_a_trend_turns_with_the_direction(values: list[float], direction: str) -> None:
    other = "up" if direction == "down" else "down"
    turned = {
        Trend.IMPROVING: Trend.DEGRADING,
        Trend.DEGRADING: Trend.IMPROVING,
        Trend.STABLE: Trend.STABLE,
        Trend.UNKNOWN: Trend.UNKNOWN,
    }
    trend = metric_status.trend(values, direction)
    assert metric_status.trend(values, other) == turned[trend]
    assert (trend is Trend.UNKNOWN) == (len(values) < 3)


@given(st.lists(VALUES, min_size=3, max_size=10), DIRECTIONS, st.sampled_from([0.25, 4.0, 1024.0]))
def test_a_trend_does_not_depend_on_the_unit(values: list[float], direction: str, factor: float) -> None:
    values = [round(value, 3) for value in values]
    assert metric_status.trend([value * factor for value in values], direction) == metric_status.trend(
        values, direction
    )


@given(VALUES, VALUES, st.none() | VALUES, DIRECTIONS)
def test_a_value_on_target_is_at_least_as_good_as_the_target(
    value: float, target: float, warning: float | None, direction: str
) -> None:
    status = metric_status.status_of(value, target, warning, direction)
    good = value <= target if direction == "down" else value >= target
    assert (status is MetricStatus.ON_TARGET) == good
    assert status is not MetricStatus.UNKNOWN


@pytest.mark.spec("M7")
def test_a_reading_goes_stale() -> None:
    assert not metric_status.is_stale(timestamp(NOW - timedelta(hours=24)), 24, NOW)
    assert metric_status.is_stale(timestamp(NOW - timedelta(hours=24, seconds=1)), 24, NOW)
    assert not metric_status.is_stale(timestamp(NOW + timedelta(minutes=4)), 24, NOW)
    assert not metric_status.is_stale(None, 24, NOW)


@pytest.mark.parametrize(
    ("text", "number"),
    [("72", 72), (" 72.5\n", 72.5), ("-3", -3), ("+4", 4), (".5", 0.5), ("5.", 5), ("1e3", 1000), ("-0", 0)],
)
def test_a_text_that_is_a_number_is_read(text: str, number: float) -> None:
    assert metric_status.parse_number(text) == number
    assert math.copysign(1, metric_status.parse_number(text)) == (-1 if number < 0 else 1)


@pytest.mark.spec("M7")
@pytest.mark.parametrize(
    "text",
    ["", " \n", "NaN", "nan", "inf", "-Infinity", "1_000", "1,000", "72s", "72 73", "0x10", "٧", "1e999", "9" * 500],
)
def test_what_is_no_number_is_refused_and_named(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        metric_status.parse_number(text)
    if 0 < len(text.strip()) < 20 and text != "1e999":
        assert text.strip() in str(refused.value)


@pytest.mark.parametrize("value", [True, None, "7", [7], math.nan, math.inf, -math.inf, 10**19, 10**400])
def test_what_cannot_be_compared_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        metric_status.checked_value(value)


@given(st.floats())
def test_any_value_is_kept_or_refused(value: float) -> None:
    try:
        kept = metric_status.checked_value(value)
    except InvalidInput:
        assert not abs(value) <= MAX_VALUE
    else:
        assert kept == value


@pytest.mark.parametrize(
    ("value", "unit", "told"),
    [(72.0, "s", "72 s"), (99.5, "%", "99.5%"), (1234567.0, "", "1,234,567"), (0.1234567, "s", "0.123457 s")],
)
def test_numbers_are_shown_as_people_write_them(value: float, unit: str, told: str) -> None:
    assert metric_status.format_number(value, unit) == told
