"""Moments as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.kernel.clock import system_clock, timestamp

zones = st.integers(min_value=-1_439, max_value=1_439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(min_value=datetime(1000, 1, 3), max_value=datetime(9999, 12, 29), timezones=zones)


def test_a_timestamp_is_utc_with_microseconds_even_where_they_are_zero() -> None:
    moment = datetime(2026, 2, 21, 11, 0, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(moment) == "2026-02-21T09:00:00.000000Z"


@examples(60)
@given(moments, moments)
def test_timestamps_sort_as_the_moments_do(one: datetime, other: datetime) -> None:
    assert (timestamp(one) < timestamp(other)) == (one.astimezone(UTC) < other.astimezone(UTC))


@examples(60)
@given(moments)
def test_a_timestamp_can_be_read_back(moment: datetime) -> None:
    assert datetime.fromisoformat(timestamp(moment)) == moment.astimezone(UTC)


def test_the_systems_clock_knows_its_zone() -> None:
    assert system_clock().utcoffset() == timedelta(0)
