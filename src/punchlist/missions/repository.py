"""The SQL of missions, pillars, strategies, metrics and run totals. The caller owns the transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from punchlist.conversations.model import StoredTurn
from punchlist.errors import StoreDamaged
from punchlist.missions.config.policy import policy_of
from punchlist.missions.model import Capacity, Metric, Mission, Pillar, Strategy
from punchlist.missions.todos.lifecycle import ACTIVE, TodoStatus
from punchlist.runs.lifecycle import RunAction
from punchlist.runs.service import event_stream as run_stream
from punchlist.storage.statements import (
    ROW_LOCK,
    SelectAll,
    SelectOne,
    Statement,
    columns,
    first_column,
    insert,
    select,
    update,
)
from punchlist.storage.store import Transaction

_MISSION_NAMES: Final = (*Mission._fields, "checksum")
_MISSION: Final = select("missions", _MISSION_NAMES)
_PILLAR: Final = select("pillars", Pillar._fields)
_METRIC: Final = select("metrics", Metric._fields)
_MISSION_CHANGES: Final = (
    *("name", "description", "json_config", "source", "status", "updated_at"),
    *("paused_at", "paused_by", "pause_reason", "checksum"),
)
_PILLAR_CHANGES: Final = ("name", "description", "position", "status")
_METRIC_CHANGES: Final = (
    *("pillar_id", "name", "unit", "target", "warning", "direction", "collector", "stale_after_hours"),
    *("position", "status"),
)


def _mission(row: Sequence[Any]) -> Mission:
    found = Mission(*row[:-1])
    try:
        intact = found.checksum() == row[-1]
    except TypeError:
        intact = False
    if not intact:
        raise StoreDamaged.not_as_written(f"Mission {found.slug!r}")
    return found


# --- missions ---------------------------------------------------------------------------------------------

mission: Final = SelectOne(_mission, f"{_MISSION} WHERE id = :id")
# Serialises the writers of a mission on PostgreSQL; SQLite has only one writer.
lock_mission: Final = SelectOne(_mission, f"{_MISSION} WHERE id = :id", lock=ROW_LOCK)
mission_by_slug: Final = SelectOne(_mission, f"{_MISSION} WHERE slug = :slug")
lock_mission_by_slug: Final = SelectOne(_mission, f"{_MISSION} WHERE slug = :slug", lock=ROW_LOCK)
all_missions: Final = SelectAll(_mission, f"{_MISSION} ORDER BY slug")
active_slugs: Final = SelectAll[str](first_column, "SELECT slug FROM missions WHERE status = 'active' ORDER BY slug")
INSERT_MISSION: Final = insert("missions", _MISSION_NAMES, unless="slug")
UPDATE_MISSION: Final = update("missions", _MISSION_CHANGES, where="id = :of_id")
TAKE_TICK: Final = Statement(
    "UPDATE missions SET last_tick = :tick "
    "WHERE id = :of_id AND status = 'active' AND (last_tick IS NULL OR last_tick < :tick)"
)


HAS_EVENT: Final = Statement(
    "SELECT 1 FROM events WHERE stream = :stream AND action = :action AND reason = :reason LIMIT 1"
)


def has_event(tx: Transaction, stream: str, action: str, reason: str) -> bool:
    return tx.one(HAS_EVENT, stream=stream, action=str(action), reason=reason) is not None


def insert_mission(tx: Transaction, mission: Mission) -> bool:
    """False when the slug is taken."""
    return INSERT_MISSION(tx, mission, checksum=mission.checksum())


def update_mission(tx: Transaction, mission: Mission) -> None:
    values = {**mission._asdict(), "checksum": mission.checksum()}
    tx.run(UPDATE_MISSION, of_id=mission.id, **{name: values[name] for name in _MISSION_CHANGES})


def take_tick(tx: Transaction, id: str, tick: str) -> bool:
    """False when a cycle for this tick or a later one has already begun."""
    return bool(tx.run(TAKE_TICK, of_id=id, tick=tick))


# --- pillars ----------------------------------------------------------------------------------------------

pillar: Final = SelectOne(Pillar._make, f"{_PILLAR} WHERE id = :id")
pillar_by_slug: Final = SelectOne(Pillar._make, f"{_PILLAR} WHERE mission_id = :mission_id AND slug = :slug")
pillars_of: Final = SelectAll(Pillar._make, f"{_PILLAR} WHERE mission_id = :mission_id ORDER BY position, id")
"""In file order, archived ones included."""
insert_pillar: Final = insert("pillars", Pillar._fields)
UPDATE_PILLAR: Final = update("pillars", _PILLAR_CHANGES, where="id = :of_id")


def update_pillar(tx: Transaction, pillar: Pillar) -> None:
    tx.run(UPDATE_PILLAR, of_id=pillar.id, **{name: getattr(pillar, name) for name in _PILLAR_CHANGES})


# --- strategies -------------------------------------------------------------------------------------------

strategies_of: Final = SelectAll(
    Strategy._make,
    f"SELECT {columns(Strategy._fields)} FROM strategies "
    "WHERE mission_id = :mission_id ORDER BY pillar_id, position, id",
)
"""Grouped by pillar, in file order."""
insert_strategy: Final = insert("strategies", Strategy._fields)
SET_STRATEGY_STATUS: Final = update("strategies", ("status",), where="id = :of_id")
DELETE_STRATEGIES: Final = Statement("DELETE FROM strategies WHERE pillar_id = :pillar_id")


def replace_strategies(tx: Transaction, pillar_id: str, strategies: Sequence[Strategy]) -> None:
    tx.run(DELETE_STRATEGIES, pillar_id=pillar_id)
    tx.run_many(insert_strategy, [strategy._asdict() for strategy in strategies])


def set_strategy_status(tx: Transaction, id: str, status: str) -> None:
    tx.run(SET_STRATEGY_STATUS, of_id=id, status=status)


# --- metrics ----------------------------------------------------------------------------------------------

metric: Final = SelectOne(Metric._make, f"{_METRIC} WHERE id = :id")
metric_by_slug: Final = SelectOne(Metric._make, f"{_METRIC} WHERE mission_id = :mission_id AND slug = :slug")
metrics_of: Final = SelectAll(
    Metric._make, f"{_METRIC} WHERE mission_id = :mission_id ORDER BY pillar_id, position, id"
)
"""Grouped by pillar, in file order, archived ones included."""
insert_metric: Final = insert("metrics", Metric._fields)
UPDATE_METRIC: Final = update("metrics", _METRIC_CHANGES, where="id = :of_id")


def update_metric(tx: Transaction, metric: Metric) -> None:
    """Write the columns that the mission file defines; the last collection error stays."""
    tx.run(UPDATE_METRIC, of_id=metric.id, **{name: getattr(metric, name) for name in _METRIC_CHANGES})


# --- open todos -------------------------------------------------------------------------------------------

count_open_in_pillar: Final = SelectOne[int](
    first_column, "SELECT count(*) FROM mission_todos WHERE pillar_id = :pillar_id AND ended_at IS NULL"
)
OPEN_IN_MISSION: Final = Statement(
    "SELECT status, count(*) FROM mission_todos WHERE mission_id = :mission_id AND ended_at IS NULL GROUP BY status"
)


def count_open_by_status(tx: Transaction, mission_id: str) -> dict[str, int]:
    """The number of open todos by status."""
    return {str(status): int(count) for status, count in tx.all(OPEN_IN_MISSION, mission_id=mission_id)}


def capacity(tx: Transaction, mission: Mission) -> Capacity:
    """Lock the mission first when the result decides whether a slot is used."""
    counts, policy = count_open_by_status(tx, mission.id), policy_of(mission)
    active = sum(count for status, count in counts.items() if status in ACTIVE)
    return Capacity(active, policy.active_todo_limit, counts.get(TodoStatus.BACKLOG, 0), policy.backlog_todo_limit)


# --- chats ------------------------------------------------------------------------------------------------

_SEARCHED_MESSAGES: Final = 50
_recent_messages: Final = SelectAll[tuple[str, str]](
    tuple,
    "SELECT kind, content FROM messages WHERE conversation_id = :conversation_id "
    f"ORDER BY position DESC LIMIT {_SEARCHED_MESSAGES}",
)


def was_posted(tx: Transaction, conversation_id: str, kind: str, content: str) -> bool:
    """Whether one of the recent messages of a chat is identical."""
    return (kind, content) in _recent_messages(tx, conversation_id)


# --- runs -------------------------------------------------------------------------------------------------

_RUN_TOTALS: Final = "count(*), sum(input_tokens), sum(output_tokens), sum(cost), sum(seconds), sum(calls)"
run_totals_of_mission: Final = SelectAll[tuple[Any, ...]](
    tuple,
    f"SELECT pillar_id, todo_id, {_RUN_TOTALS} FROM runs WHERE mission_id = :mission_id GROUP BY pillar_id, todo_id",
)
"""Pillar id, todo id, number of runs, and the sums of what they used."""
run_totals_by_pillar: Final = SelectAll[tuple[Any, ...]](
    tuple, f"SELECT pillar_id, {_RUN_TOTALS} FROM runs WHERE mission_id = :mission_id GROUP BY pillar_id"
)
run_totals_of_todo: Final = SelectOne[tuple[Any, ...]](
    tuple, f"SELECT {_RUN_TOTALS} FROM runs WHERE todo_id = :todo_id"
)
turns_of_open_runs: Final = SelectAll[str](
    first_column, "SELECT turn_id FROM runs WHERE todo_id = :todo_id AND ended_at IS NULL AND turn_id IS NOT NULL"
)
RUNS_OF_TODO: Final = Statement("SELECT id FROM runs WHERE todo_id = :todo_id ORDER BY created_at, id")
TURNS_OF_RUN: Final = Statement(
    f"SELECT data FROM events WHERE stream = :stream AND action = '{RunAction.SET_TURN}' ORDER BY version"
)


def turn_ids_of_run(tx: Transaction, run_id: str) -> list[str]:
    """The turns of a run, oldest first, without duplicates."""
    events = (json.loads(data) for (data,) in tx.all(TURNS_OF_RUN, stream=run_stream(run_id)))
    return list(dict.fromkeys(str(turn_id) for event in events if (turn_id := event.get("turn_id"))))


def turn_ids_of_todo(tx: Transaction, todo_id: str) -> list[str]:
    """The turns of all runs on a todo, oldest first, without duplicates."""
    # Not a join of runs and events: the few long streams of missions mislead SQLite about the length of the others.
    runs = tx.all(RUNS_OF_TODO, todo_id=todo_id)
    return list(dict.fromkeys(id for (run_id,) in runs for id in turn_ids_of_run(tx, run_id)))


class TurnWork(NamedTuple):
    """A turn of the work on a todo, and which tool calls it made."""

    id: str
    agent_id: str
    first: int | None
    """The position of its first call in the conversation."""
    last: int | None
    calls: int
    succeeded: bool
    """Whether one of its calls was successful."""


def _work(turn_ids: str) -> str:
    calls = "FROM tool_calls WHERE turn_id = work.id"
    # A subquery with one min or max reads one entry of the index.
    return (
        f"WITH RECURSIVE work (id, agent_id) AS (SELECT id, agent_id FROM turns WHERE id IN ({turn_ids}) "
        "UNION SELECT turns.id, turns.agent_id FROM work JOIN turns ON turns.parent_turn_id = work.id) "
        f"SELECT id, agent_id, (SELECT min(position) {calls}), (SELECT max(position) {calls}), "
        f"(SELECT count(*) {calls}), EXISTS (SELECT 1 {calls} AND status = 'success') FROM work"
    )


WORK_OF_TURNS: Final = SelectAll(
    TurnWork._make,
    _work("SELECT value FROM json_each(:turn_ids)"),
    postgresql=_work("SELECT json_array_elements_text(CAST(:turn_ids AS json))"),
)


def _turns_with_workers(turn_ids: str) -> str:
    return (
        f"WITH RECURSIVE work (id) AS (SELECT id FROM turns WHERE id IN ({turn_ids}) "
        "UNION SELECT turns.id FROM work JOIN turns ON turns.parent_turn_id = work.id) "
        f"SELECT {columns(StoredTurn._fields, of='turns')} FROM work JOIN turns ON turns.id = work.id "
        "ORDER BY turns.started_at, turns.id"
    )


turns_with_workers: Final = SelectAll(
    StoredTurn._make,
    _turns_with_workers("SELECT value FROM json_each(:turn_ids)"),
    postgresql=_turns_with_workers("SELECT json_array_elements_text(CAST(:turn_ids AS json))"),
)
"""These turns and those of their workers, oldest first."""


def work_of_todo(tx: Transaction, todo_id: str) -> list[TurnWork]:
    """The turns of all runs on a todo and of their workers. All of them are in the TODO chat of its pillar."""
    turn_ids = turn_ids_of_todo(tx, todo_id)
    return WORK_OF_TURNS(tx, json.dumps(turn_ids)) if turn_ids else []
