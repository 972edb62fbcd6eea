"""Status, trend and staleness of a metric. Pure functions."""

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
"""How many of the newest readings determine the trend."""
MIN_TREND_READINGS: Final = 3
STABLE_SHARE: Final = 0.05
"""A change up to this share of the mean magnitude counts as stable."""
MAX_VALUE: Final = 1e18
"""Larger values are mistakes, and sums of them would lose precision."""
MAX_CLOCK_SKEW: Final = timedelta(minutes=5)
"""A reading further in the future is a mistake."""

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MAX_NUMBER_LENGTH: Final = 400


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
    """Without a warning level a value is on target or off target."""
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
    """The change along the least-squares line through the last ten readings.

    A fitted line, because a single outlier at either end must not decide.
    """
    recent = values[-TREND_READINGS:]
    if len(recent) < MIN_TREND_READINGS:
        return Trend.UNKNOWN
    size = math.fsum(map(abs, recent)) / len(recent)
    change = _slope(recent) * (len(recent) - 1)
    if abs(change) <= STABLE_SHARE * size:
        return Trend.STABLE
    return Trend.IMPROVING if (change < 0) == (direction == "down") else Trend.DEGRADING


def _slope(values: Sequence[float]) -> float:
    """The least-squares slope per reading."""
    mean = (len(values) - 1) / 2
    variance = math.fsum((index - mean) ** 2 for index in range(len(values)))
    return math.fsum((index - mean) * value for index, value in enumerate(values)) / variance


def is_stale(newest_at: str | None, stale_after_hours: float, now: datetime) -> bool:
    """Whether the newest reading is too old. Without readings the status is `unknown` instead."""
    return newest_at is not None and now - parse_timestamp(newest_at) > timedelta(hours=stale_after_hours)


def parse_number(text: str) -> float:
    """Parse a number; surrounding whitespace is ignored."""
    text = text.strip()
    if not text:
        raise InvalidInput("the output is empty; a number was expected")
    if len(text) > _MAX_NUMBER_LENGTH or not _NUMBER.fullmatch(text):
        raise InvalidInput(f"{excerpt(text)!r} is not a number")
    return checked_value(float(text))


def checked_value(found: object) -> float:
    """`found` as a float, if a metric can have that value."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise InvalidInput(f"{excerpt(str(found))!r} is not a number")
    if isinstance(found, float) and not math.isfinite(found):
        raise InvalidInput(f"{found} is not a finite number")
    if abs(found) > MAX_VALUE:
        raise InvalidInput(f"must be a number from -{MAX_VALUE:g} to {MAX_VALUE:g}")
    # Turns -0.0 into 0.0.
    return float(found) + 0.0


def format_number(found: float, unit: str = "") -> str:
    """A number for people, with its unit."""
    found = float(found)
    text = f"{int(found):,}" if found.is_integer() and abs(found) < 1e15 else f"{found:.6g}"
    return f"{text} {unit}" if unit and unit != "%" else f"{text}{unit}"
