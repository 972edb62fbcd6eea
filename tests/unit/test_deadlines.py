"""Deadlines as people write them, as they are stored, and when they have passed (M13)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import timestamp
from punchlist.missions.todos.deadlines import due_at, is_overdue, parse_deadline

BERLIN, AUCKLAND = "Europe/Berlin", "Pacific/Auckland"
NOW = datetime(2026, 2, 21, 9, 0, tzinfo=UTC)


def at(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


@pytest.mark.spec("M13")
def test_a_day_is_stored_as_it_is_and_over_at_its_end_where_the_mission_is() -> None:
    assert parse_deadline(" 2026-02-21 ", "UTC", NOW) == ("2026-02-21", False)
    assert due_at("2026-02-21", "UTC") == at("2026-02-22T00:00:00Z")
    assert due_at("2026-02-21", BERLIN) == at("2026-02-21T23:00:00Z")
    assert due_at("2026-02-21", AUCKLAND) == at("2026-02-21T11:00:00Z")


@pytest.mark.spec("M13")
def test_a_time_is_stored_in_utc() -> None:
    for said in ("2026-02-21T18:00:00+01:00", "2026-02-21 17:00Z", "2026-02-21t12:00:00.000-0500", "2026-02-21T17:00z"):
        assert parse_deadline(said, AUCKLAND, NOW) == ("2026-02-21T17:00:00.000000Z", False)
    assert due_at("2026-02-21T17:00:00.000000Z", AUCKLAND) == at("2026-02-21T17:00:00Z")


@pytest.mark.spec("M13")
def test_whether_it_has_passed_is_said() -> None:
    assert parse_deadline("2026-02-20", "UTC", NOW).passed
    assert parse_deadline("2026-02-21T08:59:59Z", "UTC", NOW).passed
    assert parse_deadline("2026-02-21T09:00:00Z", "UTC", NOW).passed
    assert not parse_deadline("2026-02-21T09:00:01Z", "UTC", NOW).passed
    assert not parse_deadline("2026-02-21", AUCKLAND, NOW).passed
    assert parse_deadline("2026-02-21", AUCKLAND, NOW + timedelta(hours=2)).passed


@pytest.mark.spec("M13")
def test_what_has_no_deadline_is_never_overdue() -> None:
    assert not is_overdue(None, "UTC", NOW)


@pytest.mark.spec("M13")
@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [(BERLIN, "2026-03-29", 23), (BERLIN, "2026-10-25", 25), ("America/Sao_Paulo", "2018-11-04", 23)],
)
def test_a_day_on_which_the_clock_changes_ends_at_its_end(zone: str, day: str, hours: int) -> None:
    before = (datetime.fromisoformat(day) - timedelta(days=1)).date().isoformat()
    assert due_at(day, zone) - due_at(before, zone) == timedelta(hours=hours)


@pytest.mark.spec("M13")
@pytest.mark.parametrize("said", ["2026-02-21T17:00:00", "2026-02-21 17:00"])
def test_a_time_without_its_zone_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_deadline(said, BERLIN, NOW)
    assert str(refused.value) == (
        f"deadline: '{said}' has a time but no zone. Write a day such as 2026-02-21, or a time with a zone such as "
        "2026-02-21T17:00:00Z."
    )


@pytest.mark.spec("M13")
@pytest.mark.parametrize(
    "said",
    [
        "",
        "soon",
        "21.02.2026",
        "2026-2-21",
        "20260221",
        "2026-W08-6",
        "2026-02-30",
        "2026-13-01",
        "0000-01-01",
        "0001-01-01T00:00:00+14:00",
        "1492-10-12",
        "99999-01-01",
        "9999-12-31",
        "9999-12-31T23:00:00-10:00",
        "2026-02-21T25:00:00Z",
        "2026-02-21T10:00:00+99:00",
        "2026-02-21T10:00:00 Europe/Berlin",
        "٢٠٢٦-02-21",
        "2026-02-21\x1b[2J",
        "x" * 1_000_000,
        "\ud800",
        None,
        20260221,
        ["2026-02-21"],
        True,
    ],
)
def test_anything_else_is_refused_with_what_to_write(said: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_deadline(said, "UTC", NOW)
    assert str(refused.value).startswith("deadline: ")
    assert "2026-02-21T17:00:00Z" in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@examples(300)
@given(st.text(max_size=40))
def test_no_text_breaks_it(said: str) -> None:
    refused = ""
    try:
        parse_deadline(said, BERLIN, NOW)
    except InvalidInput as error:
        refused = str(error)
    assert refused == "" or refused.isprintable()


@pytest.mark.spec("M13")
@examples(200)
@given(
    st.datetimes(datetime(1901, 1, 1), datetime(9998, 12, 30)),
    st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_what_is_stored_is_the_moment_that_was_said_and_can_be_read_again(naive: datetime, zone: timezone) -> None:
    moment = naive.replace(tzinfo=zone)
    stored = parse_deadline(moment.isoformat(), AUCKLAND, NOW).stored
    assert stored == timestamp(moment)
    assert due_at(stored, AUCKLAND) == moment
    assert parse_deadline(stored, AUCKLAND, NOW).stored == stored
