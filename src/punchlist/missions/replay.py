"""Rebuilds a mission with its pillars, strategies and metrics from events and compares it with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from punchlist.kernel.events import Event
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionAction
from punchlist.missions.metrics import replay as metric_replay
from punchlist.missions.metrics.service import MetricAction
from punchlist.missions.model import Metric, Mission, Pillar, Strategy
from punchlist.storage.store import Transaction


@dataclass(slots=True)
class ReplayedMission:
    missions: dict[str, Mission] = field(default_factory=dict)
    """Exactly one, unless the first event is missing."""
    pillars: dict[str, Pillar] = field(default_factory=dict)
    strategies: dict[str, list[Strategy]] = field(default_factory=dict)
    """By pillar id."""
    metrics: dict[str, Metric] = field(default_factory=dict)


def replay(events: Sequence[Event]) -> ReplayedMission:
    state = ReplayedMission()
    for event in events:
        data = event.payload()
        match event.action:
            case MissionAction.MAKE_MISSION:
                state.missions[event.subject] = Mission(**data)
            case MissionAction.CHANGE_MISSION | MissionAction.ARCHIVE_MISSION | MissionAction.TAKE_TICK:
                state.missions[event.subject] = state.missions[event.subject]._replace(**data)
            case MissionAction.ADD_PILLAR:
                state.pillars[event.subject] = Pillar(**data)
            case MissionAction.CHANGE_PILLAR:
                state.pillars[event.subject] = state.pillars[event.subject]._replace(**data)
            case MissionAction.SET_STRATEGIES:
                state.strategies[event.subject] = [Strategy(**columns) for columns in data["strategies"]]
            case MissionAction.ADD_METRIC:
                state.metrics[event.subject] = Metric(**data)
            case MissionAction.CHANGE_METRIC:
                state.metrics[event.subject] = state.metrics[event.subject]._replace(**data)
            case MetricAction.RECORD | MetricAction.FAIL:
                metric_id = data["metric_id"]
                state.metrics[metric_id] = metric_replay.apply_event(state.metrics[metric_id], event)
    return state


_TABLES: Final = {
    MissionAction.MAKE_MISSION: "missions",
    MissionAction.ADD_PILLAR: "pillars",
    MissionAction.ADD_METRIC: "metrics",
}


def rows_made(events: Sequence[Event]) -> Iterator[str]:
    """The table name of each row that the events inserted and did not delete."""
    strategies: dict[str, int] = {}
    for event in events:
        if event.action == MissionAction.SET_STRATEGIES:
            strategies[event.subject] = len(event.payload()["strategies"])
        elif event.action in _TABLES:
            yield _TABLES[MissionAction(event.action)]
    yield from ["strategies"] * sum(strategies.values())


def compare(tx: Transaction, mission_id: str, events: Sequence[Event]) -> Iterator[str]:
    """One line per row that differs from the events."""
    state, where = replay(events), f"mission:{mission_id}"
    if mission_repository.mission(tx, mission_id) != state.missions.get(mission_id):
        yield f"{where}: the mission differs from its events"
    strategies = {strategy.id: strategy for each in state.strategies.values() for strategy in each}
    yield from _compare(where, "pillar", state.pillars, mission_repository.pillars_of(tx, mission_id))
    yield from _compare(where, "strategy", strategies, mission_repository.strategies_of(tx, mission_id))
    yield from _compare(where, "metric", state.metrics, mission_repository.metrics_of(tx, mission_id))


def _compare(where: str, what: str, expected: dict[str, Any], rows: Sequence[Any]) -> Iterator[str]:
    found = {row.id: row for row in rows}
    for id in expected | found:
        if expected.get(id) != found.get(id):
            yield f"{where}: {what} {id} differs from its events"
