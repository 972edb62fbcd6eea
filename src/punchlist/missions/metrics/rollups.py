"""The readings of a metric by minute, hour and day, from which plots of many readings are made.

Rollups change in the transaction of each reading; `db check` computes them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from punchlist.kernel.clock import parse_timestamp
from punchlist.missions.model import MetricReading

LENGTHS: Final = (86_400, 3_600, 60)
"""Of periods, in seconds."""


class Rollup(NamedTuple):
    """A row of `metric_rollups`: the readings of a period."""

    metric_id: str
    seconds: int
    period: int
    """Counted from 1970 in UTC."""
    readings: int
    total: float
    low: float
    high: float
    last_at: str

    def plus(self, other: Rollup) -> Rollup:
        """Of the same period."""
        return self._replace(
            readings=self.readings + other.readings,
            total=self.total + other.total,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            last_at=max(self.last_at, other.last_at),
        )


def period_of(moment: datetime, seconds: int) -> int:
    # Before 1970 too, the period that begins at or before the moment.
    return int(moment.timestamp() // seconds)


def rollups_of(reading: MetricReading) -> Iterator[Rollup]:
    """One of each length, with this reading only."""
    taken, value = parse_timestamp(reading.at), reading.value
    for seconds in LENGTHS:
        period = period_of(taken, seconds)
        yield Rollup(reading.metric_id, seconds, period, 1, value, value, value, reading.at)


def roll_up(readings: Iterable[MetricReading]) -> dict[tuple[str, int, int], Rollup]:
    """The rollups of all readings, by metric, length and period."""
    found: dict[tuple[str, int, int], Rollup] = {}
    for reading in readings:
        for each in rollups_of(reading):
            before = found.get(each[:3])
            found[each[:3]] = before.plus(each) if before else each
    return found


def differ(one: Rollup, other: Rollup) -> bool:
    """The sum of the values depends a little on the order of the readings."""
    close = math.isclose(one.total, other.total, rel_tol=1e-6, abs_tol=1e-6 * max(abs(one.low), abs(one.high)))
    return not close or one._replace(total=0) != other._replace(total=0)
