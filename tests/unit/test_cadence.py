"""When cycles are due: cron in a time zone, clocks that jump, clocks that are put forward and back (M12)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.missions.planning.cadence import cron_problem, due_tick, next_tick, time_zone, timezone_problem

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
DAILY = ["0 9 * * *", "30 2 * * *", "0 2 * * *", "59 2 * * *", "0 3 * * *", "30 1 * * *", "0 0 * * *", "45 23 * * *"]
LONG_AGO = "2020-01-01T00:00:00.000000Z"


def at(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def ticks(cron: str, timezone: str, start: datetime, end: datetime, every: timedelta) -> list[datetime]:
    """What a program takes that looks every so often, with a clock that only goes forward."""
    last, taken, now = None, [], start
    while now <= end:
        if tick := due_tick(cron, timezone, last, timestamp(start), now):
            taken.append(parse_timestamp(last := tick))
        now += every
    return taken


# --- which cadences there are ------------------------------------------------------------------------


def problem(cron: object, timezone: object = "UTC") -> str | None:
    if found := cron_problem(cron):
        return f"cron: {found}"
    return f"timezone: {found}" if (found := timezone_problem(timezone)) else None


@pytest.mark.spec("M12")
@pytest.mark.parametrize(
    "cron", ["0 9 * * 1", "*/10 * * * *", "0 9-17/2 1,15 jan-mar MON-fri", "0 0 29 2 *", "* * * * 7"]
)
def test_cron_as_everybody_writes_it_is_understood(cron: str) -> None:
    assert problem(cron) is None
    assert problem(cron, BERLIN) is None


@pytest.mark.spec("M12")
@pytest.mark.parametrize(
    "cron",
    [
        "",
        "@daily",
        "0 9 * *",
        "0 9 * * 1 0",
        "0 0 9 * * 1 2026",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "0 0 30 2 *",
        "0 0 31 4 *",
        "H * * * *",
        "R * * * *",
        "0 0 L * *",
        "0 0 * * 1#2",
        "0 0 15W * *",
        "? ? ? ? ?",
        "mon * * * *",
        "١ * * * *",
        "1,,2 * * * *",
        "-1 * * * *",
        "0-99999999999 * * * *",
        "* * * * " + "1," * 500 + "1",
        "\x1b[2J 9 * * 1",
    ],
)
def test_what_no_cron_understands_is_refused_with_what_to_write(cron: str) -> None:
    told = problem(cron)
    assert told is not None
    assert told.startswith("cron: ")
    assert "'0 9 * * 1'" in told
    assert told.isprintable()
    assert len(told) < 300


@pytest.mark.spec("M12")
def test_a_time_zone_that_does_not_exist_is_refused_with_the_nearest_that_does() -> None:
    assert problem("0 9 * * 1", "Europe/Berlln") == (
        "timezone: there is no time zone 'Europe/Berlln'. Did you mean 'Europe/Berlin'?"
    )
    with pytest.raises(InvalidInput, match="timezone: there is no time zone"):
        time_zone("Middle/Earth")


@pytest.mark.spec("M12")
@pytest.mark.parametrize(
    "name", ["", "..", "/etc/passwd", "../../etc/passwd", "America", "a\0b", "\ud800", "x" * 9_999]
)
def test_a_time_zone_is_a_name_and_no_path(name: str) -> None:
    told = problem("0 9 * * 1", name)
    assert told is not None
    assert told.startswith("timezone: there is no time zone")
    assert told.isprintable()


@pytest.mark.spec("M12")
def test_what_is_no_text_is_refused() -> None:
    assert problem(9) == "cron: must be text, got a number"
    assert problem("0 9 * * 1", None) == "timezone: must be text, got null"


@examples(300)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_the_check(cron: str, timezone: str) -> None:
    told = problem(cron, timezone)
    assert told is None or told.isprintable()


# --- what is due -------------------------------------------------------------------------------------


@pytest.mark.spec("M12")
def test_a_cycle_is_due_from_its_moment_on_and_once() -> None:
    made = "2026-02-20T10:00:00.000000Z"
    monday = "2026-02-23T09:00:00.000000Z"
    assert due_tick("0 9 * * 1", "UTC", None, made, at("2026-02-23T08:59:59Z")) is None
    assert due_tick("0 9 * * 1", "UTC", None, made, at("2026-02-23T09:00:00Z")) == monday
    assert due_tick("0 9 * * 1", "UTC", None, made, at("2026-02-25T12:34:56Z")) == monday
    assert due_tick("0 9 * * 1", "UTC", monday, made, at("2026-02-25T12:34:56Z")) is None
    assert next_tick("0 9 * * 1", "UTC", at("2026-02-23T09:00:00Z")) == "2026-03-02T09:00:00.000000Z"


@pytest.mark.spec("M12")
def test_what_lay_before_the_mission_is_not_made_up_for() -> None:
    made = "2026-02-23T09:00:00.000000Z"
    assert due_tick("0 9 * * 1", "UTC", None, made, at("2026-02-25T00:00:00Z")) is None


@pytest.mark.spec("M12")
def test_missed_cycles_are_made_up_for_by_one() -> None:
    last = "2026-01-05T09:00:00.000000Z"
    now = at("2026-02-25T12:00:00Z")
    assert due_tick("0 9 * * 1", "UTC", last, LONG_AGO, now) == "2026-02-23T09:00:00.000000Z"


@pytest.mark.spec("M12")
def test_nine_is_nine_where_the_mission_is() -> None:
    winter, summer = at("2026-01-12T23:00:00Z"), at("2026-07-13T23:00:00Z")
    assert due_tick("0 9 * * 1", BERLIN, None, LONG_AGO, winter) == "2026-01-12T08:00:00.000000Z"
    assert due_tick("0 9 * * 1", BERLIN, None, LONG_AGO, summer) == "2026-07-13T07:00:00.000000Z"
    assert next_tick("0 9 * * 1", NEW_YORK, winter) == "2026-01-19T14:00:00.000000Z"


# --- clocks that are put forward and back ------------------------------------------------------------


@pytest.mark.spec("M12")
@pytest.mark.parametrize("cron", DAILY)
@pytest.mark.parametrize(
    ("timezone", "change"),
    [
        (BERLIN, "2026-03-29"),
        (BERLIN, "2026-10-25"),
        (NEW_YORK, "2026-03-08"),
        (NEW_YORK, "2026-11-01"),
        (LORD_HOWE, "2026-04-05"),
        (LORD_HOWE, "2026-10-04"),
        ("America/Santiago", "2026-04-05"),
        ("America/Santiago", "2026-09-06"),
    ],
)
def test_a_daily_cycle_comes_once_a_day_also_when_the_clock_changes(cron: str, timezone: str, change: str) -> None:
    place = ZoneInfo(timezone)
    first = datetime.fromisoformat(change).replace(tzinfo=place) - timedelta(days=3)
    last = first.replace(tzinfo=place) + timedelta(days=7)
    taken = ticks(cron, timezone, first - timedelta(seconds=1), last - timedelta(seconds=1), timedelta(minutes=35))
    days = [tick.astimezone(place).date() for tick in taken]
    assert days == [(first + timedelta(days=n)).date() for n in range(7)]


@pytest.mark.spec("M12")
def test_a_time_that_is_skipped_comes_at_the_skip() -> None:
    assert due_tick("30 2 * * *", BERLIN, None, LONG_AGO, at("2026-03-29T00:59:59Z")) == "2026-03-28T01:30:00.000000Z"
    assert due_tick("30 2 * * *", BERLIN, None, LONG_AGO, at("2026-03-29T01:00:00Z")) == "2026-03-29T01:00:00.000000Z"
    assert next_tick("30 2 * * *", BERLIN, at("2026-03-29T00:00:00Z")) == "2026-03-29T01:00:00.000000Z"
    assert next_tick("30 2 * * *", BERLIN, at("2026-03-29T01:00:00Z")) == "2026-03-30T00:30:00.000000Z"


@pytest.mark.spec("M12")
def test_a_time_that_is_shown_twice_comes_the_first_time() -> None:
    first = "2026-11-01T05:30:00.000000Z"
    for now in ("2026-11-01T05:30:00Z", "2026-11-01T06:10:00Z", "2026-11-01T06:30:00Z", "2026-11-01T12:00:00Z"):
        assert due_tick("30 1 * * *", NEW_YORK, None, LONG_AGO, at(now)) == first
    assert next_tick("30 1 * * *", NEW_YORK, at("2026-11-01T06:10:00Z")) == "2026-11-02T06:30:00.000000Z"


@pytest.mark.spec("M12")
@pytest.mark.parametrize(
    ("timezone", "change"), [(BERLIN, "2026-10-25"), (NEW_YORK, "2026-11-01"), (BERLIN, "2026-03-29")]
)
def test_an_hourly_cycle_comes_every_hour_also_when_the_clock_changes(timezone: str, change: str) -> None:
    start = at(f"{change}T00:00:00Z") - timedelta(hours=20)
    taken = ticks("20 * * * *", timezone, start, start + timedelta(days=2), timedelta(minutes=5))
    expected = [start + timedelta(hours=n, minutes=20) for n in range(48)]
    assert taken == expected
    assert _all("20 * * * *", timezone, start, start + timedelta(days=2)) == [timestamp(tick) for tick in expected]


# --- clocks that jump --------------------------------------------------------------------------------

zones = st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, "UTC", "Asia/Kolkata", "America/Santiago"])
crons = st.sampled_from([*DAILY, "0 9 * * 1", "*/15 * * * *", "20 * * * *", "0 */2 * * *", "0 0 1 * *", "* 2 * * *"])
moments = st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31)).map(lambda naive: naive.replace(tzinfo=UTC))
changes = st.builds(
    lambda day, minutes: at(f"{day}T00:00:00Z") + timedelta(minutes=minutes),
    st.sampled_from(["2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-04", "2026-10-03", "2026-09-06"]),
    st.integers(0, 1_440),
)
steps = st.lists(
    st.one_of(
        st.integers(1, 90).map(lambda minutes: timedelta(minutes=minutes)),
        st.sampled_from([timedelta(hours=1), timedelta(hours=-1), timedelta(days=1), timedelta(days=-1)]),
    ),
    max_size=40,
)


@pytest.mark.spec("M12")
@examples(150)
@given(crons, zones, st.one_of(moments, changes), steps)
def test_a_clock_that_jumps_loses_and_doubles_nothing(
    cron: str, timezone: str, start: datetime, jumps: list[timedelta]
) -> None:
    now, last = start, None
    taken: list[str] = []
    latest = start
    for jump in jumps:
        now += jump
        tick = due_tick(cron, timezone, last, timestamp(start), now)
        if tick is not None:
            # It has come, and is later than all before it: none is ever taken twice.
            assert start < parse_timestamp(tick) <= now
            assert not taken or tick > taken[-1]
            taken.append(last := tick)
        if now >= latest:
            latest = now
            # Nothing is left behind: the newest that has ever come is the one that was taken.
            came = _all(cron, timezone, start, latest)
            assert (taken[-1] if taken else None) == (came[-1] if came else None)


def _all(cron: str, timezone: str, start: datetime, end: datetime) -> list[str]:
    """Every moment of a cadence after `start` up to `end`, found one after the other."""
    found, now = [], start
    while parse_timestamp(tick := next_tick(cron, timezone, now)) <= end:
        found.append(tick)
        now = parse_timestamp(tick)
    return found


@pytest.mark.spec("M12")
@examples(300)
@given(crons, zones, st.one_of(moments, changes))
def test_what_is_next_is_what_is_due_when_it_has_come(cron: str, timezone: str, now: datetime) -> None:
    coming = next_tick(cron, timezone, now)
    assert parse_timestamp(coming) > now
    just_before = parse_timestamp(coming) - timedelta(microseconds=1)
    assert due_tick(cron, timezone, timestamp(now), LONG_AGO, just_before) is None
    assert due_tick(cron, timezone, timestamp(now), LONG_AGO, parse_timestamp(coming)) == coming


@pytest.mark.spec("M12")
@examples(200)
@given(st.sampled_from(["*/15 * * * *", "20 * * * *", "* * * * *"]), zones, st.one_of(moments, changes))
def test_cadences_of_every_hour_are_where_the_wall_shows_them(cron: str, timezone: str, now: datetime) -> None:
    """Found by looking at each minute."""
    minutes = {"*/15": range(0, 60, 15), "20": [20], "*": range(60)}[cron.split(maxsplit=1)[0]]
    came = now.replace(second=0, microsecond=0)
    while came.astimezone(ZoneInfo(timezone)).minute not in minutes:
        came -= timedelta(minutes=1)
    assert due_tick(cron, timezone, None, LONG_AGO, now) == timestamp(came)
