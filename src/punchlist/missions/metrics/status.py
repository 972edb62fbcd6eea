"""What readings mean: pure decisions about a metric."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from punchlist.errors import InvalidInput
from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import excerpt

TREND_READINGS: Final = 10
"""How many of the newest readings make a trend."""
MIN_TREND_READINGS: Final = 3
STABLE_SHARE: Final = 0.05
"""The share of its usual size that a metric may move and still be called stable."""
MAX_VALUE: Final = 1e18
"""Beyond it a number is a mistake, and sums would no longer be exact."""
MAX_CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far clocks may disagree: a reading from later than that is a mistake."""

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_LONGEST: Final = 400


class MetricStatus(StrEnum):
    ON_TARGET = "on_target"
    WARNING = "warning"
    OFF_TARGET = "off_target"
    UNKNOWN = "unknown"


class Trend(StrEnum):
    IMPROVING = "improving"
    DEGRADING = "degrading"
    STABLE = "stable"
    UNKNOWN = "unknown"


def status_of(value: float | None, target: float, warning: float | None, direction: str) -> MetricStatus:
    """Where a value stands. Without a warning level there is only on target and off it."""
    if value is None:
        return MetricStatus.UNKNOWN
    if reaches(value, target, direction):
        return MetricStatus.ON_TARGET
    if warning is not None and reaches(value, warning, direction):
        return MetricStatus.WARNING
    return MetricStatus.OFF_TARGET


def reaches(value: float, level: float, direction: str) -> bool:
    return value <= level if direction == "down" else value >= level


def trend(values: Sequence[float], direction: str) -> Trend:
    """From the oldest to the newest of the last ten: the line that fits them best, and how far it goes.

    The line instead of the two ends, since one odd reading must not decide.
    """
    seen = values[-TREND_READINGS:]
    if len(seen) < MIN_TREND_READINGS:
        return Trend.UNKNOWN
    size = math.fsum(map(abs, seen)) / len(seen)
    change = _slope(seen) * (len(seen) - 1)
    if abs(change) <= STABLE_SHARE * size:
        return Trend.STABLE
    return Trend.IMPROVING if (change < 0) == (direction == "down") else Trend.DEGRADING


def _slope(values: Sequence[float]) -> float:
    """How much a value changes from one reading to the next, by least squares."""
    middle = (len(values) - 1) / 2
    across = math.fsum((place - middle) ** 2 for place in range(len(values)))
    return math.fsum((place - middle) * value for place, value in enumerate(values)) / across


def is_stale(newest_at: str | None, stale_after_hours: float, now: datetime) -> bool:
    """Whether the newest reading is too old to go by. Where there is none, that is said by the status."""
    return newest_at is not None and now - parse_timestamp(newest_at) > timedelta(hours=stale_after_hours)


def parse_number(text: str) -> float:
    """The number that a text is; blanks around it do not matter."""
    told = text.strip()
    if not told:
        raise InvalidInput("nothing came where a number was expected")
    if len(told) > _LONGEST or not _NUMBER.fullmatch(told):
        raise InvalidInput(f"{excerpt(told)!r} is no number")
    return checked_value(float(told))


def checked_value(found: object) -> float:
    """A value that a metric can have."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise InvalidInput(f"{excerpt(str(found))!r} is no number")
    if isinstance(found, float) and not math.isfinite(found):
        raise InvalidInput(f"{found} is no number that can be compared")
    if abs(found) > MAX_VALUE:
        raise InvalidInput(f"must be a number from -{MAX_VALUE:g} to {MAX_VALUE:g}")
    # Minus nothing is nothing.
    return float(found) + 0.0


def format_number(found: float, unit: str = "") -> str:
    """A number as people write it, with its unit."""
    found = float(found)
    told = f"{int(found):,}" if found.is_integer() and abs(found) < 1e15 else f"{found:.6g}"
    return f"{told} {unit}" if unit and unit != "%" else f"{told}{unit}"
