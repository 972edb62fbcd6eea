"""The SQL of readings; metrics themselves are in `missions/repository.py`. The caller owns the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from punchlist.missions.metrics.rollups import Rollup, rollups_of
from punchlist.missions.model import Metric, MetricReading
from punchlist.storage.statements import Insert, SelectAll, Statement, columns, insert, select
from punchlist.storage.store import Transaction

_READING: Final = select("metric_readings", MetricReading._fields)

# In file order.
OF_MISSION: Final = Statement(
    f"SELECT pillars.slug, pillars.status, {columns(Metric._fields, of='metrics')} "
    "FROM metrics JOIN pillars ON pillars.id = metrics.pillar_id WHERE metrics.mission_id = :mission_id "
    "ORDER BY pillars.position, pillars.id, metrics.position, metrics.id"
)
SET_ERROR: Final = Statement("UPDATE metrics SET last_error = :error, last_error_at = :at WHERE id = :metric_id")
INSERT_READING: Final = insert("metric_readings", MetricReading._fields)
_INSERT_ROLLUP: Final = insert("metric_rollups", Rollup._fields).sql
ADD_TO_ROLLUP: Final = Insert(
    f"{_INSERT_ROLLUP} ON CONFLICT (metric_id, seconds, period) DO UPDATE SET "
    "readings = metric_rollups.readings + excluded.readings, total = metric_rollups.total + excluded.total, "
    "low = CASE WHEN excluded.low < metric_rollups.low THEN excluded.low ELSE metric_rollups.low END, "
    "high = CASE WHEN excluded.high > metric_rollups.high THEN excluded.high ELSE metric_rollups.high END, "
    "last_at = "
    "CASE WHEN excluded.last_at > metric_rollups.last_at THEN excluded.last_at ELSE metric_rollups.last_at END"
)
rollups_in_mission: Final = SelectAll(
    Rollup._make,
    f"SELECT {columns(Rollup._fields)} FROM metric_rollups "
    "WHERE metric_id IN (SELECT id FROM metrics WHERE mission_id = :mission_id)",
)
# By the time at which a reading was taken: one that is recorded later for an earlier time is history.
_newest: Final = SelectAll(
    MetricReading._make, f"{_READING} WHERE metric_id = :metric_id ORDER BY at DESC, position DESC LIMIT :most"
)
last_recorded: Final = SelectAll(
    MetricReading._make, f"{_READING} WHERE metric_id = :metric_id ORDER BY position DESC LIMIT :most"
)
"""Newest first, by the order in which they were recorded."""
readings_in_mission: Final = SelectAll(
    MetricReading._make, f"{_READING} WHERE mission_id = :mission_id ORDER BY metric_id, position"
)


class CompletionMark(NamedTuple):
    """A row of `metric_marks`: a todo whose completion named the metric."""

    metric_id: str
    at: str
    todo_id: str


INSERT_MARK: Final = insert("metric_marks", CompletionMark._fields)
marks_in_mission: Final = SelectAll(
    CompletionMark._make,
    f"SELECT {columns(CompletionMark._fields)} FROM metric_marks "
    "WHERE metric_id IN (SELECT id FROM metrics WHERE mission_id = :mission_id)",
)


class PillarMetric(NamedTuple):
    """A metric and the slug of its pillar."""

    metric: Metric
    pillar_slug: str
    active: bool


def in_mission(tx: Transaction, mission_id: str) -> list[PillarMetric]:
    """Archived metrics included."""
    return [
        PillarMetric(metric := Metric(*row[2:]), row[0], "active" == row[1] == metric.status)
        for row in tx.all(OF_MISSION, mission_id=mission_id)
    ]


def insert_readings(tx: Transaction, readings: Sequence[MetricReading]) -> None:
    """With their part of the rollups."""
    tx.run_many(INSERT_READING, [reading._asdict() for reading in readings])
    tx.run_many(ADD_TO_ROLLUP, [rollup._asdict() for reading in readings for rollup in rollups_of(reading)])


def latest_readings(tx: Transaction, metric_id: str, limit: int) -> list[MetricReading]:
    """The readings that were taken last, oldest first."""
    return _newest(tx, metric_id, limit)[::-1]


def set_error(tx: Transaction, metric_id: str, error: str | None, at: str | None) -> None:
    tx.run(SET_ERROR, metric_id=metric_id, error=error, at=at)
