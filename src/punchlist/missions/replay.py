"""Rebuilds the rows of a mission from its events and compares them with the stored ones. `todos/replay.py` does the
same for its todos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from punchlist.kernel.events import Event
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionAction
from punchlist.missions.directives import repository as directive_repository
from punchlist.missions.directives.model import Directive, DirectiveAction
from punchlist.missions.escalations import repository as escalation_repository
from punchlist.missions.escalations.lifecycle import EscalationAction
from punchlist.missions.metrics import repository as metric_repository
from punchlist.missions.metrics.rollups import differ, roll_up
from punchlist.missions.metrics.service import MetricAction
from punchlist.missions.model import (
    Escalation,
    Metric,
    MetricReading,
    Mission,
    Pillar,
    Strategy,
    TodoComment,
    TodoFile,
    TodoLink,
)
from punchlist.missions.recommendations import repository as recommendation_repository
from punchlist.missions.recommendations.model import Recommendation, RecommendationAction
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import PartAction
from punchlist.storage.store import Transaction

_NAMES: Final = {
    "missions": "mission",
    "pillars": "pillar",
    "strategies": "strategy",
    "metrics": "metric",
    "metric_readings": "reading",
    "escalations": "escalation",
    "directives": "directive",
    "todo_links": "link",
    "todo_comments": "comment",
    "todo_files": "file",
    "recommendations": "recommendation",
}
"""The tables, and what a row of each is called."""
TABLES: Final = tuple(_NAMES)
_INSERTS: Final[dict[str, tuple[str, type[Any]]]] = {
    MissionAction.MAKE_MISSION: ("missions", Mission),
    MissionAction.ADD_PILLAR: ("pillars", Pillar),
    MissionAction.ADD_METRIC: ("metrics", Metric),
    MetricAction.RECORD: ("metric_readings", MetricReading),
    EscalationAction.ASK: ("escalations", Escalation),
    DirectiveAction.ADD: ("directives", Directive),
    MissionAction.ADD_STRATEGY: ("strategies", Strategy),
    RecommendationAction.RECOMMEND: ("recommendations", Recommendation),
}
_UPDATES: Final[dict[str, str]] = {
    MissionAction.CHANGE_MISSION: "missions",
    MissionAction.ARCHIVE_MISSION: "missions",
    MissionAction.UNARCHIVE_MISSION: "missions",
    MissionAction.PAUSE_MISSION: "missions",
    MissionAction.RESUME_MISSION: "missions",
    MissionAction.TAKE_TICK: "missions",
    MissionAction.CHANGE_PILLAR: "pillars",
    MissionAction.CHANGE_METRIC: "metrics",
    EscalationAction.REMIND: "escalations",
    EscalationAction.ACKNOWLEDGE: "escalations",
    EscalationAction.ANSWER: "escalations",
    DirectiveAction.END: "directives",
    MissionAction.RETIRE_STRATEGY: "strategies",
    RecommendationAction.ACCEPT: "recommendations",
    RecommendationAction.DECLINE: "recommendations",
}
_PARTS: Final[dict[str, tuple[str, type[Any]]]] = {
    PartAction.LINK: ("todo_links", TodoLink),
    PartAction.COMMENT: ("todo_comments", TodoComment),
    PartAction.ATTACH: ("todo_files", TodoFile),
}
"""Events of a todo with a new row in their data, under the name of the row."""
_REMOVALS: Final[dict[str, str]] = {PartAction.UNLINK: "todo_links", PartAction.DETACH: "todo_files"}


def replay(events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """The rows by table and id."""
    rows: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    for event in events:
        data = event.payload()
        if event.action in _INSERTS:
            table, row = _INSERTS[event.action]
            rows[table][event.subject] = row(**{name: data.get(name) for name in row._fields})
        elif event.action in _UPDATES:
            status = {"status": event.to_status} if event.to_status else {}
            _update(rows[_UPDATES[event.action]], event.subject, {**data, **status})
        elif event.action in _PARTS:
            table, row = _PARTS[event.action]
            rows[table][data[_NAMES[table]]["id"]] = row(**data[_NAMES[table]])
        elif event.action in _REMOVALS:
            table = _REMOVALS[event.action]
            rows[table].pop(data[_NAMES[table]]["id"], None)
        elif event.action == MissionAction.SET_STRATEGIES:
            others = {id: each for id, each in rows["strategies"].items() if each.pillar_id != event.subject}
            rows["strategies"] = others | {each["id"]: Strategy(**each) for each in data["strategies"]}
        if event.action in (MetricAction.RECORD, MetricAction.FAIL) and "last_error" in data:
            error = {name: data[name] for name in ("last_error", "last_error_at")}
            _update(rows["metrics"], data["metric_id"], error)
    return rows


def _update(rows: dict[str, Any], id: str, data: dict[str, Any]) -> None:
    if id in rows:
        rows[id] = rows[id]._replace(**{name: data[name] for name in rows[id]._fields if name in data})


def rows_made(events: Sequence[Event]) -> Iterator[str]:
    """The table name of each row that the events inserted and did not delete."""
    return (table for table, rows in replay(events).items() for _ in rows)


def compare(tx: Transaction, mission_id: str, events: Sequence[Event]) -> Iterator[str]:
    """One line per row that differs from the events."""
    mission = mission_repository.mission(tx, mission_id)
    stored: dict[str, Sequence[Any]] = {
        "missions": [mission] if mission else [],
        "pillars": mission_repository.pillars_of(tx, mission_id),
        "strategies": mission_repository.strategies_of(tx, mission_id),
        "metrics": mission_repository.metrics_of(tx, mission_id),
        "metric_readings": metric_repository.readings_in_mission(tx, mission_id),
        "escalations": escalation_repository.all_in_mission(tx, mission_id),
        "directives": directive_repository.all_in_mission(tx, mission_id),
        "todo_links": todo_repository.links_in_mission(tx, mission_id),
        "todo_comments": todo_repository.comments_in_mission(tx, mission_id),
        "todo_files": todo_repository.files_in_mission(tx, mission_id),
        "recommendations": recommendation_repository.all_in_mission(tx, mission_id),
    }
    replayed = replay(events)
    for table, expected in replayed.items():
        yield from differences(mission_id, _NAMES[table], expected, stored[table])
    yield from _compare_plots(tx, mission_id, events, replayed["metric_readings"].values())


def _compare_plots(
    tx: Transaction, mission_id: str, events: Sequence[Event], readings: Iterable[MetricReading]
) -> Iterator[str]:
    """What is computed from readings and completions."""
    found = {rollup[:3]: rollup for rollup in metric_repository.rollups_in_mission(tx, mission_id)}
    expected = roll_up(readings)
    if found.keys() != expected.keys() or any(differ(found[key], expected[key]) for key in found):
        yield f"mission:{mission_id}: the rollups of its metrics differ from their readings"
    metrics = {metric.slug: metric.id for metric in mission_repository.metrics_of(tx, mission_id)}
    marks = {
        (metrics.get(slug), event.at, event.subject)
        for event in events
        for slug in event.payload().get("metrics_impacted", ())
    }
    if marks != set(metric_repository.marks_in_mission(tx, mission_id)):
        yield f"mission:{mission_id}: the marks of its metrics differ from its completed todos"


def differences(mission_id: str, what: str, expected: dict[str, Any], stored: Sequence[Any]) -> Iterator[str]:
    found = {row.id: row for row in stored}
    for id in expected | found:
        if expected.get(id) != found.get(id):
            yield f"mission:{mission_id}: {what} {id} differs from its events"
