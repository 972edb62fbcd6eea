"""The SQL of readings; metrics themselves are in `missions/repository.py`. The caller owns the transaction."""

from __future__ import annotations

from typing import Final, NamedTuple

from punchlist.missions.model import Metric, MetricReading
from punchlist.storage.statements import SelectAll, Statement, columns, insert, select
from punchlist.storage.store import Transaction

_READING: Final = select("metric_readings", MetricReading._fields)

# In file order.
OF_MISSION: Final = Statement(
    f"SELECT pillars.slug, pillars.status, {columns(Metric._fields, of='metrics')} "
    "FROM metrics JOIN pillars ON pillars.id = metrics.pillar_id WHERE metrics.mission_id = :mission_id "
    "ORDER BY pillars.position, pillars.id, metrics.position, metrics.id"
)
SET_ERROR: Final = Statement("UPDATE metrics SET last_error = :error, last_error_at = :at WHERE id = :metric_id")
insert_reading: Final = insert("metric_readings", MetricReading._fields)
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


def latest_readings(tx: Transaction, metric_id: str, limit: int) -> list[MetricReading]:
    """The readings that were taken last, oldest first."""
    return _newest(tx, metric_id, limit)[::-1]


def set_error(tx: Transaction, metric_id: str, error: str | None, at: str | None) -> None:
    tx.run(SET_ERROR, metric_id=metric_id, error=error, at=at)
