"""Rebuilds readings from events and compares them with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from punchlist.kernel.events import Event
from punchlist.missions.metrics import repository as metric_repository
from punchlist.missions.metrics.service import MetricAction
from punchlist.missions.model import Metric, MetricReading
from punchlist.storage.store import Transaction


def readings(events: Sequence[Event]) -> dict[str, MetricReading]:
    """The readings by id."""
    found: dict[str, MetricReading] = {}
    for event in events:
        if event.action == MetricAction.RECORD:
            data = event.payload()
            found[event.subject] = MetricReading(**{name: data[name] for name in MetricReading._fields})
    return found


def apply_event(metric: Metric, event: Event) -> Metric:
    """The metric after an event about its collection."""
    data = event.payload()
    if event.action not in tuple(MetricAction) or data["metric_id"] != metric.id or "last_error" not in data:
        return metric
    return metric._replace(last_error=data["last_error"], last_error_at=data["last_error_at"])


def compare(tx: Transaction, mission_id: str, events: Sequence[Event]) -> Iterator[str]:
    """One line per reading that differs from its event."""
    expected = readings(events)
    found = {reading.id: reading for reading in metric_repository.readings_in_mission(tx, mission_id)}
    for reading_id in expected | found:
        if expected.get(reading_id) != found.get(reading_id):
            yield f"mission:{mission_id}: reading {reading_id} differs from its events"
