"""When the cycles of a mission are due: a five-field cron expression in the mission's time zone.

Only the latest past tick counts, and only if it is later than the tick of the last cycle: one cycle makes up for any
number of missed ones, and setting the clock back repeats none. If the tick of the last cycle is in the future, a clock
was ahead when it was started: the ticks until then get their cycles too, each once (`engine/periodic.py`).

The fields match local time. Daylight saving changes are handled like this:

- a local time that is skipped in spring runs at the moment of the change;
- a local time that occurs twice in autumn runs once, the first time;
- an hourly cadence simply continues: it makes up for nothing and runs in both of the repeated hours.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from punchlist.errors import InvalidInput
from punchlist.extras import require
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.text import excerpt, json_type

MAX_LENGTH: Final = 200
_MINUTE: Final = timedelta(minutes=1)
_FORM: Final = "minute, hour, day of the month, month and day of the week, such as '0 9 * * 1' for Mondays at 9:00"
# The syntax that every cron supports; extensions and random times are refused.
_FIELD: Final = re.compile(r"[0-9*,/-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat")


def time_zone(timezone: str) -> ZoneInfo:
    if problem := timezone_problem(timezone):
        raise InvalidInput(f"timezone: {problem}")
    return ZoneInfo(timezone)


def due_tick(cron: str, timezone: str, last_tick: str | None, since: str, now: datetime) -> str | None:
    """The latest past tick, if no cycle has begun for it.

    `since` is when the mission was created: earlier ticks do not count.
    """
    latest = _latest_tick(cron, time_zone(timezone), now)
    return timestamp(latest) if latest > parse_timestamp(last_tick or since) else None


def next_tick(cron: str, timezone: str, now: datetime) -> str:
    """The first tick after `now`."""
    zone, hourly = time_zone(timezone), _is_hourly(cron)
    local, repeated = _local_time(now, zone)
    coming = next(at for at in _instants(_matches_after(cron, local), zone, hourly) if at > now)
    if hourly and repeated:
        again = _instants(_matches_after(cron, local - repeated), zone, hourly, fold=1)
        coming = min(coming, next(at for at in again if at > now))
    return timestamp(coming)


def _latest_tick(cron: str, zone: ZoneInfo, now: datetime) -> datetime:
    hourly = _is_hourly(cron)
    local, repeated = _local_time(now, zone)
    # In the second of two repeated hours, later local times have already occurred.
    latest = next(at for at in _instants(_matches_until(cron, local + repeated), zone, hourly) if at <= now)
    if hourly:
        latest = max(
            latest, next(at for at in _instants(_matches_until(cron, local), zone, hourly, fold=1) if at <= now)
        )
    return latest


def _local_time(now: datetime, zone: ZoneInfo) -> tuple[datetime, timedelta]:
    """Local time without a zone, and by how much it is repeated; zero outside repeated hours."""
    local = now.astimezone(zone)
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return local.replace(tzinfo=None, fold=0), max(first - second, timedelta())


def _instants(local_times: Iterable[datetime], zone: ZoneInfo, hourly: bool, fold: int = 0) -> Iterator[datetime]:
    """The instants of local times, in the same order; for repeated times the first one, with `fold=1` the second."""
    for local in local_times:
        first, second = (
            (local - (local.replace(tzinfo=zone, fold=each).utcoffset() or timedelta())).replace(tzinfo=UTC)
            for each in (0, 1)
        )
        if first <= second:
            yield second if fold else first
        elif not hourly:
            # Skipped: with the old offset it is after the change, with the new offset before it.
            yield _skip_instant(second, first, zone)


def _skip_instant(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """The instant of the change between the two, to the second."""
    old = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == old else (low, middle)
    return high


def _matches_until(cron: str, local: datetime) -> Iterator[datetime]:
    """Local times that match, from `local` backwards."""
    # croniter's `get_prev` excludes the start.
    matches = _cron_iterator(cron, local.replace(second=0, microsecond=0) + _MINUTE)
    while True:
        yield matches.get_prev(datetime)


def _matches_after(cron: str, local: datetime) -> Iterator[datetime]:
    matches = _cron_iterator(cron, local)
    while True:
        yield matches.get_next(datetime)


def _cron_iterator(cron: str, start: datetime) -> Any:
    # Imported here: a base install reads deadlines without croniter.
    return require("croniter", extra="missions", feature="Mission scheduling").croniter(cron, start)


def _is_hourly(cron: str) -> bool:
    return cron.split()[1] == "*"


def cron_problem(cron: object) -> str | None:
    if not isinstance(cron, str):
        return f"must be text, got {json_type(cron)}"
    fields = cron.split()
    if len(fields) != 5:
        return f"{excerpt(cron)!r} has {len(fields)} fields; a cron expression has five. Write {_FORM}."
    if len(cron) > MAX_LENGTH or any(_FIELD.sub("", field.lower()) for field in fields):
        return f"{excerpt(cron)!r} may contain only numbers, names of months and days, and * , - /. Write {_FORM}."
    try:
        matches = _cron_iterator(cron, datetime(2024, 3, 1))
        matches.get_next(datetime)
        matches.get_prev(datetime)
    except (ValueError, TypeError, ArithmeticError):
        return f"{excerpt(cron)!r} never matches a time. Write {_FORM}."
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
