"""The SQL of missions, pillars, strategies, metrics and run totals. The caller owns the transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from punchlist.errors import StoreDamaged
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import Capacity, Metric, Mission, Pillar, Strategy
from punchlist.missions.todos.lifecycle import ACTIVE, TodoStatus
from punchlist.runs.lifecycle import RunAction
from punchlist.runs.service import event_stream as run_stream
from punchlist.storage.statements import ROW_LOCK, Statement, columns, insert, update
from punchlist.storage.store import Transaction

_MISSION_NAMES: Final = (*Mission._fields, "checksum")
_MISSION: Final = f"SELECT {columns(_MISSION_NAMES)} FROM missions"
_PILLAR: Final = f"SELECT {columns(Pillar._fields)} FROM pillars"
_METRIC: Final = f"SELECT {columns(Metric._fields)} FROM metrics"
_MISSION_CHANGES: Final = ("name", "description", "json_config", "source", "status", "updated_at", "checksum")
_PILLAR_CHANGES: Final = ("name", "description", "position", "status")
_METRIC_CHANGES: Final = (
    *("pillar_id", "name", "unit", "target", "warning", "direction", "collector", "stale_after_hours"),
    *("position", "status"),
)

INSERT_MISSION: Final = insert("missions", _MISSION_NAMES, unless="slug")
MISSION: Final = Statement(f"{_MISSION} WHERE id = :id")
# Serialises the writers of a mission on PostgreSQL; SQLite has only one writer.
LOCK_MISSION: Final = Statement(f"{_MISSION} WHERE id = :id", lock=ROW_LOCK)
MISSION_BY_SLUG: Final = Statement(f"{_MISSION} WHERE slug = :slug")
LOCK_MISSION_BY_SLUG: Final = Statement(f"{_MISSION} WHERE slug = :slug", lock=ROW_LOCK)
MISSIONS: Final = Statement(f"{_MISSION} ORDER BY slug")
SLUGS: Final = Statement("SELECT slug, status FROM missions ORDER BY slug")
UPDATE_MISSION: Final = update("missions", _MISSION_CHANGES, where="id = :of_id")
TAKE_TICK: Final = Statement(
    "UPDATE missions SET last_tick = :tick "
    "WHERE id = :of_id AND status = 'active' AND (last_tick IS NULL OR last_tick < :tick)"
)

INSERT_PILLAR: Final = insert("pillars", Pillar._fields)
PILLAR: Final = Statement(f"{_PILLAR} WHERE id = :id")
PILLAR_BY_SLUG: Final = Statement(f"{_PILLAR} WHERE mission_id = :mission_id AND slug = :slug")
PILLARS: Final = Statement(f"{_PILLAR} WHERE mission_id = :mission_id ORDER BY position, id")
UPDATE_PILLAR: Final = update("pillars", _PILLAR_CHANGES, where="id = :of_id")

INSERT_STRATEGY: Final = insert("strategies", Strategy._fields)
STRATEGIES: Final = Statement(
    f"SELECT {columns(Strategy._fields)} FROM strategies "
    "WHERE mission_id = :mission_id ORDER BY pillar_id, position, id"
)
DELETE_STRATEGIES: Final = Statement("DELETE FROM strategies WHERE pillar_id = :pillar_id")

INSERT_METRIC: Final = insert("metrics", Metric._fields)
METRIC: Final = Statement(f"{_METRIC} WHERE id = :id")
METRIC_BY_SLUG: Final = Statement(f"{_METRIC} WHERE mission_id = :mission_id AND slug = :slug")
METRICS: Final = Statement(f"{_METRIC} WHERE mission_id = :mission_id ORDER BY pillar_id, position, id")
UPDATE_METRIC: Final = update("metrics", _METRIC_CHANGES, where="id = :of_id")

OPEN_IN_PILLAR: Final = Statement(
    "SELECT count(*) FROM mission_todos WHERE pillar_id = :pillar_id AND ended_at IS NULL"
)
OPEN_IN_MISSION: Final = Statement(
    "SELECT status, count(*) FROM mission_todos WHERE mission_id = :mission_id AND ended_at IS NULL GROUP BY status"
)

_RUN_TOTALS: Final = "count(*), sum(input_tokens), sum(output_tokens), sum(cost), sum(seconds), sum(calls)"
RUN_TOTALS_OF_MISSION: Final = Statement(
    f"SELECT pillar_id, todo_id, {_RUN_TOTALS} FROM runs WHERE mission_id = :mission_id GROUP BY pillar_id, todo_id"
)
RUN_TOTALS_OF_TODO: Final = Statement(f"SELECT {_RUN_TOTALS} FROM runs WHERE todo_id = :todo_id")
RUNS_OF_TODO: Final = Statement("SELECT id FROM runs WHERE todo_id = :todo_id ORDER BY created_at, id")
TURNS_OF_RUN: Final = Statement(
    f"SELECT data FROM events WHERE stream = :stream AND action = '{RunAction.SET_TURN}' ORDER BY version"
)

_SEARCHED_MESSAGES: Final = 50
RECENT_MESSAGES: Final = Statement(
    "SELECT kind, content FROM messages WHERE conversation_id = :conversation_id "
    f"ORDER BY position DESC LIMIT {_SEARCHED_MESSAGES}"
)


# --- missions ---------------------------------------------------------------------------------------------


def mission(tx: Transaction, id: str) -> Mission | None:
    return _mission(tx.one(MISSION, id=id))


def lock_mission(tx: Transaction, id: str) -> Mission | None:
    """The mission, locked until the transaction ends."""
    return _mission(tx.one(LOCK_MISSION, id=id))


def mission_by_slug(tx: Transaction, slug: str) -> Mission | None:
    return _mission(tx.one(MISSION_BY_SLUG, slug=slug))


def lock_mission_by_slug(tx: Transaction, slug: str) -> Mission | None:
    return _mission(tx.one(LOCK_MISSION_BY_SLUG, slug=slug))


def all_missions(tx: Transaction) -> list[Mission]:
    return [found for row in tx.all(MISSIONS) if (found := _mission(row))]


def slugs(tx: Transaction) -> dict[str, str]:
    """Slug and status of every mission."""
    return {str(slug): str(status) for slug, status in tx.all(SLUGS)}


def insert_mission(tx: Transaction, mission: Mission) -> bool:
    """False when the slug is taken."""
    return bool(tx.run(INSERT_MISSION, **mission._asdict(), checksum=mission.checksum()))


def update_mission(tx: Transaction, mission: Mission) -> None:
    values = {**mission._asdict(), "checksum": mission.checksum()}
    tx.run(UPDATE_MISSION, of_id=mission.id, **{name: values[name] for name in _MISSION_CHANGES})


def take_tick(tx: Transaction, id: str, tick: str) -> bool:
    """False when a cycle for this tick or a later one has already begun."""
    return bool(tx.run(TAKE_TICK, of_id=id, tick=tick))


def _mission(row: Sequence[Any] | None) -> Mission | None:
    if row is None:
        return None
    found = Mission(*row[:-1])
    try:
        intact = found.checksum() == row[-1]
    except TypeError:
        intact = False
    if not intact:
        raise StoreDamaged.not_as_written(f"Mission {found.slug!r}")
    return found


# --- pillars ----------------------------------------------------------------------------------------------


def pillar(tx: Transaction, id: str) -> Pillar | None:
    row = tx.one(PILLAR, id=id)
    return Pillar(*row) if row else None


def pillar_by_slug(tx: Transaction, mission_id: str, slug: str) -> Pillar | None:
    row = tx.one(PILLAR_BY_SLUG, mission_id=mission_id, slug=slug)
    return Pillar(*row) if row else None


def pillars_of(tx: Transaction, mission_id: str) -> list[Pillar]:
    """In file order, archived ones included."""
    return [Pillar(*row) for row in tx.all(PILLARS, mission_id=mission_id)]


def insert_pillar(tx: Transaction, pillar: Pillar) -> None:
    tx.run(INSERT_PILLAR, **pillar._asdict())


def update_pillar(tx: Transaction, pillar: Pillar) -> None:
    tx.run(UPDATE_PILLAR, of_id=pillar.id, **{name: getattr(pillar, name) for name in _PILLAR_CHANGES})


# --- strategies -------------------------------------------------------------------------------------------


def strategies_of(tx: Transaction, mission_id: str) -> list[Strategy]:
    """Grouped by pillar, in file order."""
    return [Strategy(*row) for row in tx.all(STRATEGIES, mission_id=mission_id)]


def replace_strategies(tx: Transaction, pillar_id: str, strategies: Sequence[Strategy]) -> None:
    tx.run(DELETE_STRATEGIES, pillar_id=pillar_id)
    tx.run_many(INSERT_STRATEGY, [strategy._asdict() for strategy in strategies])


# --- metrics ----------------------------------------------------------------------------------------------


def metric(tx: Transaction, id: str) -> Metric | None:
    row = tx.one(METRIC, id=id)
    return Metric(*row) if row else None


def metric_by_slug(tx: Transaction, mission_id: str, slug: str) -> Metric | None:
    row = tx.one(METRIC_BY_SLUG, mission_id=mission_id, slug=slug)
    return Metric(*row) if row else None


def metrics_of(tx: Transaction, mission_id: str) -> list[Metric]:
    """Grouped by pillar, in file order, archived ones included."""
    return [Metric(*row) for row in tx.all(METRICS, mission_id=mission_id)]


def insert_metric(tx: Transaction, metric: Metric) -> None:
    tx.run(INSERT_METRIC, **metric._asdict())


def update_metric(tx: Transaction, metric: Metric) -> None:
    """Write the columns that the mission file defines; the last collection error stays."""
    tx.run(UPDATE_METRIC, of_id=metric.id, **{name: getattr(metric, name) for name in _METRIC_CHANGES})


# --- open todos -------------------------------------------------------------------------------------------


def count_open_in_pillar(tx: Transaction, pillar_id: str) -> int:
    row = tx.one(OPEN_IN_PILLAR, pillar_id=pillar_id)
    return int(row[0]) if row else 0


def count_open_by_status(tx: Transaction, mission_id: str) -> dict[str, int]:
    """The number of open todos by status."""
    return {str(status): int(count) for status, count in tx.all(OPEN_IN_MISSION, mission_id=mission_id)}


def capacity(tx: Transaction, mission: Mission) -> Capacity:
    """Lock the mission first when the result decides whether a slot is used."""
    counts, policy = count_open_by_status(tx, mission.id), policy_of(mission)
    active = sum(count for status, count in counts.items() if status in ACTIVE)
    return Capacity(active, policy.active_todo_limit, counts.get(TodoStatus.BACKLOG, 0), policy.backlog_todo_limit)


# --- chats ------------------------------------------------------------------------------------------------


def was_posted(tx: Transaction, conversation_id: str, kind: str, content: str) -> bool:
    """Whether one of the recent messages of a chat is identical."""
    return (kind, content) in [tuple(row) for row in tx.all(RECENT_MESSAGES, conversation_id=conversation_id)]


# --- runs -------------------------------------------------------------------------------------------------


def run_totals_of_mission(tx: Transaction, mission_id: str) -> list[tuple[Any, ...]]:
    """Pillar id, todo id, number of runs, and the sums of what they used."""
    return tx.all(RUN_TOTALS_OF_MISSION, mission_id=mission_id)


def run_totals_of_todo(tx: Transaction, todo_id: str) -> tuple[Any, ...]:
    return tx.one(RUN_TOTALS_OF_TODO, todo_id=todo_id) or ()


def turn_ids_of_todo(tx: Transaction, todo_id: str) -> list[str]:
    """The turns of all runs on a todo, oldest first, without duplicates."""
    events = (
        json.loads(data)
        for (run_id,) in tx.all(RUNS_OF_TODO, todo_id=todo_id)
        for (data,) in tx.all(TURNS_OF_RUN, stream=run_stream(run_id))
    )
    return list(dict.fromkeys(str(turn_id) for event in events if (turn_id := event.get("turn_id"))))
