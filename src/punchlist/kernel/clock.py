"""Time is passed in, so that tests can stop it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


_last: tuple[datetime | None, str] = (None, "")


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds: sorts as text, reads the same on both databases."""
    global _last  # noqa: PLW0603 - one moment is written down several times in a row
    if moment is _last[0]:
        return _last[1]
    stamp = f"{moment.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"
    _last = (moment, stamp)
    return stamp


def parse_timestamp(stamp: str) -> datetime:
    """What `timestamp` wrote, read back."""
    return datetime.fromisoformat(stamp)
