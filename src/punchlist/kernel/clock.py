"""Clocks and timestamps. Callers receive a clock, so that tests can control time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


_last: tuple[datetime | None, str] = (None, "")


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds: sorts as text, identical on both databases."""
    global _last  # noqa: PLW0603 - the same time is often formatted several times in a row
    if moment is _last[0]:
        return _last[1]
    stamp = f"{moment.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"
    _last = (moment, stamp)
    return stamp


def parse_timestamp(stamp: str) -> datetime:
    """The inverse of `timestamp`."""
    return datetime.fromisoformat(stamp)
