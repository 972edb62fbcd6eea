"""A mission with its pillars, strategies and metrics as its events tell it, to compare with the rows."""

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
    """One, unless its first event is missing."""
    pillars: dict[str, Pillar] = field(default_factory=dict)
    strategies: dict[str, list[Strategy]] = field(default_factory=dict)
    """By the pillar's id."""
    metrics: dict[str, Metric] = field(default_factory=dict)


def replay(events: Sequence[Event]) -> ReplayedMission:
    told = ReplayedMission()
    for event in events:
        data = event.payload()
        match event.action:
            case MissionAction.MAKE_MISSION:
                told.missions[event.subject] = Mission(**data)
            case MissionAction.CHANGE_MISSION | MissionAction.ARCHIVE_MISSION | MissionAction.TAKE_TICK:
                told.missions[event.subject] = told.missions[event.subject]._replace(**data)
            case MissionAction.ADD_PILLAR:
                told.pillars[event.subject] = Pillar(**data)
            case MissionAction.CHANGE_PILLAR:
                told.pillars[event.subject] = told.pillars[event.subject]._replace(**data)
            case MissionAction.SET_STRATEGIES:
                told.strategies[event.subject] = [Strategy(**one) for one in data["strategies"]]
            case MissionAction.ADD_METRIC:
                told.metrics[event.subject] = Metric(**data)
            case MissionAction.CHANGE_METRIC:
                told.metrics[event.subject] = told.metrics[event.subject]._replace(**data)
            case MetricAction.RECORD | MetricAction.FAIL:
                metric_id = data["metric_id"]
                told.metrics[metric_id] = metric_replay.apply_event(told.metrics[metric_id], event)
    return told


_MAKES: Final = {
    MissionAction.MAKE_MISSION: "missions",
    MissionAction.ADD_PILLAR: "pillars",
    MissionAction.ADD_METRIC: "metrics",
}


def rows_made(events: Sequence[Event]) -> Iterator[str]:
    """The tables that the events of a mission put rows into which are still there, one name for each row."""
    strategies: dict[str, int] = {}
    for event in events:
        if event.action == MissionAction.SET_STRATEGIES:
            strategies[event.subject] = len(event.payload()["strategies"])
        elif event.action in _MAKES:
            yield _MAKES[MissionAction(event.action)]
    yield from ["strategies"] * sum(strategies.values())


def compare(tx: Transaction, mission_id: str, events: Sequence[Event]) -> Iterator[str]:
    """How the rows of a mission differ from its events."""
    told, where = replay(events), f"mission:{mission_id}"
    if mission_repository.mission(tx, mission_id) != told.missions.get(mission_id):
        yield f"{where}: the mission is not what its events made of it"
    yield from _compare(
        where, "pillar", told.pillars, {one.id: one for one in mission_repository.pillars_of(tx, mission_id)}
    )
    strategies = {one.id: one for of_pillar in told.strategies.values() for one in of_pillar}
    yield from _compare(
        where, "strategy", strategies, {one.id: one for one in mission_repository.strategies_of(tx, mission_id)}
    )
    yield from _compare(
        where, "metric", told.metrics, {one.id: one for one in mission_repository.metrics_of(tx, mission_id)}
    )


def _compare(where: str, what: str, told: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    for id in told | found:
        if told.get(id) != found.get(id):
            yield f"{where}: {what} {id} is not what its events made of it"
