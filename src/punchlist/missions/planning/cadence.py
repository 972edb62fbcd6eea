"""When a mission's cycles are due: a cron expression of five fields, read in the mission's time zone.

Only the newest moment that has come counts, and only if it is later than the last one that a cycle was begun for:
however many were missed, one cycle makes up for them, and a clock that is set back repeats none. The fields are
matched with the clock on the wall. What that clock skips or shows twice is settled here:

- a time that is skipped in spring comes at the moment of the skip;
- a time that is shown twice in autumn comes once, the first time;
- but a cadence of every hour just goes on: it makes up for nothing, and runs in both of two like hours.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from croniter import CroniterError, croniter

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt, json_type

MAX_LENGTH: Final = 200
_MINUTE: Final = timedelta(minutes=1)
_FORM: Final = "minute, hour, day of the month, month and day of the week, such as '0 9 * * 1': Mondays at nine"
# What every cron understands. What only some do, or what means a random time, stays out.
_FIELD: Final = re.compile(r"[0-9*,/-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat")


def time_zone(timezone: str) -> ZoneInfo:
    if wrong := timezone_problem(timezone):
        raise InvalidInput(f"timezone: {wrong}")
    return ZoneInfo(timezone)


def due_tick(cron: str, timezone: str, last_tick: str | None, since: str, now: datetime) -> str | None:
    """The newest moment of the cadence that has come and that no cycle was begun for; None when there is none.

    `since` is when the mission was made: what lay before that is not made up for.
    """
    newest = _latest_tick(cron, time_zone(timezone), now)
    return timestamp(newest) if newest > parse_timestamp(last_tick or since) else None


def next_tick(cron: str, timezone: str, now: datetime) -> str:
    """The first moment of the cadence after `now`."""
    place, hourly = time_zone(timezone), _is_hourly(cron)
    wall, repeated = _local_time(now, place)
    coming = next(at for at in _instants(_matches_after(cron, wall), place, hourly) if at > now)
    if hourly and repeated:
        again = _instants(_matches_after(cron, wall - repeated), place, hourly, fold=1)
        coming = min(coming, next(at for at in again if at > now))
    return timestamp(coming)


def _latest_tick(cron: str, place: ZoneInfo, now: datetime) -> datetime:
    hourly = _is_hourly(cron)
    wall, repeated = _local_time(now, place)
    # The second time around, the wall has shown later times already.
    newest = next(at for at in _instants(_matches_until(cron, wall + repeated), place, hourly) if at <= now)
    if hourly:
        newest = max(
            newest, next(at for at in _instants(_matches_until(cron, wall), place, hourly, fold=1) if at <= now)
        )
    return newest


def _local_time(now: datetime, place: ZoneInfo) -> tuple[datetime, timedelta]:
    """What the clock shows, and how far back it goes in the time that it shows twice; nothing at any other time."""
    local = now.astimezone(place)
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return local.replace(tzinfo=None, fold=0), max(first - second, timedelta())


def _instants(walls: Iterable[datetime], place: ZoneInfo, hourly: bool, fold: int = 0) -> Iterator[datetime]:
    """The moments at which the clock shows these times, in their order; of two alike the first, or with `fold` the
    second."""
    for wall in walls:
        first, second = (
            (wall - (wall.replace(tzinfo=place, fold=one).utcoffset() or timedelta())).replace(tzinfo=UTC)
            for one in (0, 1)
        )
        if first <= second:
            yield second if fold else first
        elif not hourly:
            # Skipped: by the rules of before it is later than the skip, by those of after earlier.
            yield _skip_instant(second, first, place)


def _skip_instant(low: datetime, high: datetime, place: ZoneInfo) -> datetime:
    """The moment between the two at which the clock is put forward, to the second."""
    old = low.astimezone(place).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (middle, high) if middle.astimezone(place).utcoffset() == old else (low, middle)
    return high


def _matches_until(cron: str, wall: datetime) -> Iterator[datetime]:
    """What the fields match, backwards from `wall` on."""
    # The library's "before" leaves out the minute itself.
    matches = croniter(cron, wall.replace(second=0, microsecond=0) + _MINUTE)
    while True:
        yield matches.get_prev(datetime)


def _matches_after(cron: str, wall: datetime) -> Iterator[datetime]:
    matches = croniter(cron, wall)
    while True:
        yield matches.get_next(datetime)


def _is_hourly(cron: str) -> bool:
    return cron.split()[1] == "*"


def cron_problem(cron: object) -> str | None:
    if not isinstance(cron, str):
        return f"must be text, got {json_type(cron)}"
    fields = cron.split()
    if len(fields) != 5:
        return f"{excerpt(cron)!r} has {len(fields)} fields instead of five. Write {_FORM}."
    if len(cron) > MAX_LENGTH or any(_FIELD.sub("", field.lower()) for field in fields):
        return f"{excerpt(cron)!r} has more in it than numbers, names of months and days, * , - and /. Write {_FORM}."
    try:
        matches = croniter(cron, datetime(2024, 3, 1))
        matches.get_next(datetime)
        matches.get_prev(datetime)
    except (CroniterError, ValueError, TypeError, ArithmeticError):
        return f"{excerpt(cron)!r} is no time that ever comes. Write {_FORM}."
    return None


def timezone_problem(timezone: object) -> str | None:
    if not isinstance(timezone, str):
        return f"must be text, got {json_type(timezone)}"
    try:
        if 0 < len(timezone) <= MAX_LENGTH:
            ZoneInfo(timezone)
            return None
    except (KeyError, ValueError, OSError):
        pass
    near = difflib.get_close_matches(timezone[:MAX_LENGTH], available_timezones(), 1, 0.5)
    hint = f"Did you mean {near[0]!r}?" if near else "Write a name such as 'UTC' or 'Europe/Berlin'."
    return f"there is no time zone {excerpt(timezone)!r}. {hint}"
