"""The SQL of readings, inside somebody's transaction; that of metrics themselves is in `records.py`."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import bindparam, insert, select, update

from punchlist.missions.model import Metric, Reading
from punchlist.storage.schema import metric_readings, metrics, pillars
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction

_METRIC = [metrics.c[name] for name in Metric._fields]
_READING = [metric_readings.c[name] for name in Reading._fields]

# In the order of the file. What is no longer in it is kept, but not looked at.
OF_MISSION: Final = Statement(
    select(pillars.c.slug, pillars.c.status, *_METRIC)
    .join(pillars, pillars.c.id == metrics.c.pillar_id)
    .where(metrics.c.mission_id == bindparam("mission_id"))
    .order_by(pillars.c.position, pillars.c.id, metrics.c.position, metrics.c.id)
)
SET_ERROR: Final = Statement(
    update(metrics)
    .where(metrics.c.id == bindparam("metric_id"))
    .values(last_error=bindparam("error"), last_error_at=bindparam("at"))
)
INSERT: Final = Statement(insert(metric_readings).values({name: bindparam(name) for name in Reading._fields}))
NEWEST: Final = Statement(
    select(*_READING)
    .where(metric_readings.c.metric_id == bindparam("metric_id"))
    .order_by(metric_readings.c.position.desc())
    .limit(bindparam("most"))
)
READINGS: Final = Statement(
    select(*_READING)
    .where(metric_readings.c.mission_id == bindparam("mission_id"))
    .order_by(metric_readings.c.metric_id, metric_readings.c.position)
)


class Placed(NamedTuple):
    """A metric and the pillar that it belongs to."""

    metric: Metric
    pillar_slug: str
    active: bool


def of_mission(tx: Transaction, mission_id: str) -> list[Placed]:
    """Those that are archived, too."""
    return [
        Placed(metric := Metric(*row[2:]), row[0], "active" == row[1] == metric.status)
        for row in tx.all(OF_MISSION, mission_id=mission_id)
    ]


def newest(tx: Transaction, metric_id: str, most: int) -> list[Reading]:
    """The last readings, oldest first."""
    return [Reading(*row) for row in reversed(tx.all(NEWEST, metric_id=metric_id, most=most))]


def all_readings(tx: Transaction, mission_id: str) -> list[Reading]:
    """All of a mission; to compare them with the trail."""
    return [Reading(*row) for row in tx.all(READINGS, mission_id=mission_id)]


def add(tx: Transaction, reading: Reading) -> None:
    tx.run(INSERT, **reading._asdict())


def set_error(tx: Transaction, metric_id: str, error: str | None, at: str | None) -> None:
    tx.run(SET_ERROR, metric_id=metric_id, error=error, at=at)
