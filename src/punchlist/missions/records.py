"""The SQL of missions, pillars, strategies and metrics, inside somebody's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, bindparam, delete, func, insert, literal_column, or_, select, text, update

from punchlist.errors import StoreDamaged
from punchlist.missions.config_json import policy_of
from punchlist.missions.lifecycle import ACTIVE, Status
from punchlist.missions.model import Capacity, Metric, Mission, Pillar, Strategy
from punchlist.storage.schema import metrics, mission_todos, missions, pillars, strategies
from punchlist.storage.statements import Statement
from punchlist.storage.store import Transaction


def _columns(table: Table, value: type[Any]) -> list[ColumnElement[Any]]:
    """The columns that a value is made of, in its order."""
    return [table.c[name] for name in value._fields]


def _insert(table: Table) -> Statement:
    return Statement(insert(table).values({column.name: bindparam(column.name) for column in table.c}))


def _update(table: Table, *names: str) -> Statement:
    return Statement(
        update(table).where(table.c.id == bindparam("of_id")).values({name: bindparam(name) for name in names})
    )


_MISSION = [*_columns(missions, Mission), missions.c.checksum]
_PILLAR = _columns(pillars, Pillar)
_STRATEGY = _columns(strategies, Strategy)
_METRIC = _columns(metrics, Metric)
_MISSION_CHANGES: Final = ("name", "description", "json_config", "source", "status", "updated_at", "checksum")
_PILLAR_CHANGES: Final = ("name", "description", "position", "status")
_METRIC_CHANGES: Final = (
    *("pillar_id", "name", "unit", "target", "warning", "direction", "collector", "stale_after_hours"),
    *("position", "status"),
)
_NAMES: Final = [column.name for column in missions.c]

# Both databases know this clause; whoever comes second with a slug sees no row changed.
INSERT_MISSION: Final = Statement(
    text(
        f"INSERT INTO missions ({', '.join(_NAMES)}) VALUES ({', '.join(f':{name}' for name in _NAMES)}) "
        "ON CONFLICT (slug) DO NOTHING"
    )
)
MISSION: Final = Statement(select(*_MISSION).where(missions.c.id == bindparam("id")))
# The lock that makes a mission's writers take turns on PostgreSQL; SQLite has one writer anyway.
LOCK_MISSION: Final = Statement(
    select(*_MISSION).where(missions.c.id == bindparam("id")).with_for_update(key_share=True)
)
MISSION_BY_SLUG: Final = Statement(select(*_MISSION).where(missions.c.slug == bindparam("slug")))
LOCK_MISSION_BY_SLUG: Final = Statement(
    select(*_MISSION).where(missions.c.slug == bindparam("slug")).with_for_update(key_share=True)
)
MISSIONS: Final = Statement(select(*_MISSION).order_by(missions.c.slug))
SLUGS: Final = Statement(select(missions.c.slug, missions.c.status).order_by(missions.c.slug))
UPDATE_MISSION: Final = _update(missions, *_MISSION_CHANGES)
TAKE_TICK: Final = Statement(
    update(missions)
    .where(
        missions.c.id == bindparam("of_id"),
        missions.c.status == literal_column("'active'"),
        or_(missions.c.last_tick.is_(None), missions.c.last_tick < bindparam("tick")),
    )
    .values(last_tick=bindparam("tick"))
)

INSERT_PILLAR: Final = _insert(pillars)
PILLAR: Final = Statement(select(*_PILLAR).where(pillars.c.id == bindparam("id")))
PILLAR_BY_SLUG: Final = Statement(
    select(*_PILLAR).where(pillars.c.mission_id == bindparam("mission_id"), pillars.c.slug == bindparam("slug"))
)
PILLARS: Final = Statement(
    select(*_PILLAR).where(pillars.c.mission_id == bindparam("mission_id")).order_by(pillars.c.position, pillars.c.id)
)
UPDATE_PILLAR: Final = _update(pillars, *_PILLAR_CHANGES)

INSERT_STRATEGY: Final = _insert(strategies)
STRATEGIES: Final = Statement(
    select(*_STRATEGY)
    .where(strategies.c.mission_id == bindparam("mission_id"))
    .order_by(strategies.c.pillar_id, strategies.c.position, strategies.c.id)
)
DELETE_STRATEGIES: Final = Statement(delete(strategies).where(strategies.c.pillar_id == bindparam("pillar_id")))

INSERT_METRIC: Final = _insert(metrics)
METRIC: Final = Statement(select(*_METRIC).where(metrics.c.id == bindparam("id")))
METRIC_BY_SLUG: Final = Statement(
    select(*_METRIC).where(metrics.c.mission_id == bindparam("mission_id"), metrics.c.slug == bindparam("slug"))
)
METRICS: Final = Statement(
    select(*_METRIC)
    .where(metrics.c.mission_id == bindparam("mission_id"))
    .order_by(metrics.c.pillar_id, metrics.c.position, metrics.c.id)
)
UPDATE_METRIC: Final = _update(metrics, *_METRIC_CHANGES)

OPEN_IN_PILLAR: Final = Statement(
    select(func.count()).where(mission_todos.c.pillar_id == bindparam("pillar_id"), mission_todos.c.ended_at.is_(None))
)
OPEN_IN_MISSION: Final = Statement(
    select(mission_todos.c.status, func.count())
    .where(mission_todos.c.mission_id == bindparam("mission_id"), mission_todos.c.ended_at.is_(None))
    .group_by(mission_todos.c.status)
)


# --- missions ---------------------------------------------------------------------------------------------


def mission(tx: Transaction, id: str) -> Mission | None:
    return _mission(tx.one(MISSION, id=id))


def lock_mission(tx: Transaction, id: str) -> Mission | None:
    """The mission, kept from other writers until the transaction ends."""
    return _mission(tx.one(LOCK_MISSION, id=id))


def mission_by_slug(tx: Transaction, slug: str) -> Mission | None:
    return _mission(tx.one(MISSION_BY_SLUG, slug=slug))


def lock_mission_by_slug(tx: Transaction, slug: str) -> Mission | None:
    return _mission(tx.one(LOCK_MISSION_BY_SLUG, slug=slug))


def all_missions(tx: Transaction) -> list[Mission]:
    return [found for row in tx.all(MISSIONS) if (found := _mission(row))]


def slugs(tx: Transaction) -> dict[str, str]:
    """The status of every mission by its slug."""
    return {str(slug): str(status) for slug, status in tx.all(SLUGS)}


def insert_mission(tx: Transaction, mission: Mission) -> bool:
    """False when the slug is taken."""
    return bool(tx.run(INSERT_MISSION, **mission._asdict(), checksum=mission.checksum()))


def update_mission(tx: Transaction, mission: Mission) -> None:
    values = {**mission._asdict(), "checksum": mission.checksum()}
    tx.run(UPDATE_MISSION, of_id=mission.id, **{name: values[name] for name in _MISSION_CHANGES})


def take_tick(tx: Transaction, id: str, tick: str) -> bool:
    """Whether it was free: no cycle was begun for this moment of the cadence or a later one."""
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
    """In their order, those that are archived too."""
    return [Pillar(*row) for row in tx.all(PILLARS, mission_id=mission_id)]


def insert_pillar(tx: Transaction, pillar: Pillar) -> None:
    tx.run(INSERT_PILLAR, **pillar._asdict())


def update_pillar(tx: Transaction, pillar: Pillar) -> None:
    tx.run(UPDATE_PILLAR, of_id=pillar.id, **{name: getattr(pillar, name) for name in _PILLAR_CHANGES})


# --- strategies -------------------------------------------------------------------------------------------


def strategies_of(tx: Transaction, mission_id: str) -> list[Strategy]:
    """Those of each pillar together, in their order."""
    return [Strategy(*row) for row in tx.all(STRATEGIES, mission_id=mission_id)]


def replace_strategies(tx: Transaction, pillar_id: str, by: Sequence[Strategy]) -> None:
    tx.run(DELETE_STRATEGIES, pillar_id=pillar_id)
    tx.run_many(INSERT_STRATEGY, [one._asdict() for one in by])


# --- metrics ----------------------------------------------------------------------------------------------


def metric(tx: Transaction, id: str) -> Metric | None:
    row = tx.one(METRIC, id=id)
    return Metric(*row) if row else None


def metric_by_slug(tx: Transaction, mission_id: str, slug: str) -> Metric | None:
    row = tx.one(METRIC_BY_SLUG, mission_id=mission_id, slug=slug)
    return Metric(*row) if row else None


def metrics_of(tx: Transaction, mission_id: str) -> list[Metric]:
    """Those of each pillar together, in their order, those that are archived too."""
    return [Metric(*row) for row in tx.all(METRICS, mission_id=mission_id)]


def insert_metric(tx: Transaction, metric: Metric) -> None:
    tx.run(INSERT_METRIC, **metric._asdict())


def update_metric(tx: Transaction, metric: Metric) -> None:
    """All that a mission's file says of it; what went wrong at its last collection is not touched."""
    tx.run(UPDATE_METRIC, of_id=metric.id, **{name: getattr(metric, name) for name in _METRIC_CHANGES})


# --- what a mission has in hand ---------------------------------------------------------------------------


def open_in_pillar(tx: Transaction, pillar_id: str) -> int:
    row = tx.one(OPEN_IN_PILLAR, pillar_id=pillar_id)
    return int(row[0]) if row else 0


def open_in_mission(tx: Transaction, mission_id: str) -> dict[str, int]:
    """How many todos are in each state that is not an end."""
    return {str(status): int(count) for status, count in tx.all(OPEN_IN_MISSION, mission_id=mission_id)}


def capacity(tx: Transaction, mission: Mission) -> Capacity:
    """How full a mission is. Before a limit is used up, the caller has locked the mission."""
    counts, policy = open_in_mission(tx, mission.id), policy_of(mission)
    active = sum(count for status, count in counts.items() if status in ACTIVE)
    return Capacity(active, policy.active_limit, counts.get(Status.BACKLOG, 0), policy.backlog_limit)
