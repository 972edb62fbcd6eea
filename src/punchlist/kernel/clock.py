"""Time is passed in, so that tests can stop it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds: sorts as text, reads the same on both databases."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='microseconds')[:-6]}Z"


def moment(stamp: str) -> datetime:
    """What `timestamp` wrote, read back."""
    return datetime.fromisoformat(stamp)
