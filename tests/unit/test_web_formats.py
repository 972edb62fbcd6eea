"""How pages write durations, times and plots."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from punchlist.surfaces.web.pages import formats, plots
from punchlist.views.plain_text import plain_line

pytestmark = pytest.mark.spec("M15")
NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.44, "0.4 s"),
        (9.97, "10 s"),
        (59, "59 s"),
        (90, "1.5 min"),
        (3_600, "1 h"),
        (1.45 * DAY, "1.4 d"),
        (9.9 * DAY, "9.9 d"),
        (12.6 * DAY, "13 d"),
    ],
)
def test_durations_have_one_decimal_below_ten(seconds: float, text: str) -> None:
    assert formats.span(seconds) == text


def test_how_long_ago_something_was_is_told_in_whole_units_that_have_passed() -> None:
    then = NOW - timedelta(days=1, hours=20)
    assert ">1 d ago</time>" in formats.ago(then.isoformat(), NOW)


def test_clock_times_name_utc_and_keep_the_moment_for_scripts() -> None:
    clock = formats.clock("2026-11-19T04:05:06.123456Z")
    assert clock == '<time datetime="2026-11-19T04:05:06.123456Z" data-time="clock">04:05:06 UTC</time>'
    assert formats.clock(None) == ""


def test_a_flow_without_todos_is_empty_and_counts_have_whole_lines() -> None:
    days = ["2026-11-18", "2026-11-19"]
    assert plots.cumulative_flow([(day, {}) for day in days], ["pending"]) == ""
    drawn = plots.cumulative_flow([(day, {"pending": 1}) for day in days], ["pending"])
    assert re.findall(r'text-anchor="end">([\d.]+)</text>', drawn) == ["0", "1"]


def test_markdown_becomes_one_plain_line() -> None:
    text = "## Goals\n\n- **Fast** [builds](https://example.org)\n- [x] `make` passes\n> quoted\n```\nsome_code\n"
    assert plain_line(text) == "Goals Fast builds make passes quoted some_code"
