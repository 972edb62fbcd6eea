"""What a mission's file makes of its rows: pillars with their chats, strategies and metrics.

Inside the transaction of `service.py`, which has locked the mission and writes down what is told here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Change, canonical
from punchlist.kernel.ids import new_id
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionEventWriter, change
from punchlist.missions.chats import service as chat_service
from punchlist.missions.config.model import MetricConfig, MissionConfig, PillarConfig
from punchlist.missions.model import Metric, Mission, Pillar, Strategy
from punchlist.missions.todos.lifecycle import ChatChannel
from punchlist.storage.store import Transaction

Row = TypeVar("Row", Pillar, Metric)
REASON = "mission apply"


def furnish(
    tx: Transaction, conversations: Conversations, scope: Scope, mission: Mission, config: MissionConfig
) -> Sequence[Change]:
    """Pillars, strategies and metrics as the file says; what is told of it."""
    told: list[Change] = []
    there = {pillar.slug: pillar for pillar in mission_repository.pillars_of(tx, mission.id)}
    kept: dict[str, Pillar] = {}
    for position, said in enumerate(config.pillars):
        pillar = there.get(said.slug)
        if pillar is None:
            pillar = _add_pillar(tx, conversations, scope, mission, said, position)
            told.append(
                change(scope, mission, MissionEventWriter.ADD_PILLAR, pillar.id, REASON, pillar._asdict(), to="active")
            )
        kept[said.slug] = pillar._replace(
            name=said.name, description=said.description, position=position, status="active"
        )
    gone = {slug: pillar._replace(status="archived") for slug, pillar in there.items() if slug not in kept}
    for slug, changed in (kept | gone).items():
        if slug in there and there[slug] != changed:
            mission_repository.update_pillar(tx, changed)
            told.append(_told(scope, mission, MissionEventWriter.CHANGE_PILLAR, there[slug], changed))
    told += _set_strategies(tx, scope, mission, config, kept, gone.values())
    told += _set_metrics(tx, scope, mission, config, kept)
    return told


def _add_pillar(
    tx: Transaction, conversations: Conversations, scope: Scope, mission: Mission, said: PillarConfig, position: int
) -> Pillar:
    id = new_id()
    made = [
        chat_service.make(
            tx,
            conversations,
            scope,
            chat_service.chat_id(mission.slug, said.slug, todos=channel is ChatChannel.PILLAR_TODO),
            title,
            chat_service.metadata(channel, mission.id, mission.slug, id, said.slug),
        )
        for channel, title in ((ChatChannel.PILLAR, said.name), (ChatChannel.PILLAR_TODO, f"[TODOs] {said.name}"))
    ]
    pillar = Pillar(
        id=id,
        mission_id=mission.id,
        slug=said.slug,
        name=said.name,
        description=said.description,
        position=position,
        status="active",
        conversation_id=made[0].id,
        todo_conversation_id=made[1].id,
        created_at=tx.now(),
    )
    mission_repository.insert_pillar(tx, pillar)
    return pillar


def _set_strategies(
    tx: Transaction,
    scope: Scope,
    mission: Mission,
    config: MissionConfig,
    pillars: dict[str, Pillar],
    gone: Iterable[Pillar],
) -> list[Change]:
    """Those of a pillar are replaced together, when they differ; a pillar that is gone has none."""
    there = mission_repository.strategies_of(tx, mission.id)
    wanted = {pillars[said.slug].id: said.strategies for said in config.pillars} | {pillar.id: () for pillar in gone}
    told = []
    for pillar_id, said in wanted.items():
        present = [(one.description, one.status) for one in there if one.pillar_id == pillar_id]
        if present == [(one.description, one.status) for one in said]:
            continue
        made = [
            Strategy(new_id(), mission.id, pillar_id, position, one.description, one.status)
            for position, one in enumerate(said)
        ]
        mission_repository.replace_strategies(tx, pillar_id, made)
        data = {"strategies": [one._asdict() for one in made]}
        told.append(change(scope, mission, MissionEventWriter.SET_STRATEGIES, pillar_id, REASON, data))
    return told


class _PillarChats(NamedTuple):
    pillar_id: str
    position: int
    said: MetricConfig


def _set_metrics(
    tx: Transaction, scope: Scope, mission: Mission, config: MissionConfig, pillars: dict[str, Pillar]
) -> list[Change]:
    there = {metric.slug: metric for metric in mission_repository.metrics_of(tx, mission.id)}
    wanted = {
        said.slug: _PillarChats(pillars[pillar.slug].id, position, said)
        for pillar in config.pillars
        for position, said in enumerate(pillar.metrics)
    }
    told = []
    for slug, place in wanted.items():
        if slug in there:
            continue
        metric = _metric(new_id(), mission.id, place, tx.now())
        mission_repository.insert_metric(tx, metric)
        told.append(
            change(scope, mission, MissionEventWriter.ADD_METRIC, metric.id, REASON, metric._asdict(), to="active")
        )
    for slug, metric in there.items():
        if slug in wanted:
            as_said = _metric(metric.id, mission.id, wanted[slug], metric.created_at)
            changed = as_said._replace(last_error=metric.last_error, last_error_at=metric.last_error_at)
        else:
            changed = metric._replace(status="archived")
        if changed != metric:
            mission_repository.update_metric(tx, changed)
            told.append(_told(scope, mission, MissionEventWriter.CHANGE_METRIC, metric, changed))
    return told


def _metric(id: str, mission_id: str, place: _PillarChats, created_at: str) -> Metric:
    said = place.said
    return Metric(
        id=id,
        mission_id=mission_id,
        pillar_id=place.pillar_id,
        slug=said.slug,
        name=said.name,
        unit=said.unit,
        target=said.target,
        warning=said.warning,
        direction=said.direction,
        collector=canonical(dict(said.collector)),
        stale_after_hours=said.stale_after_hours,
        position=place.position,
        status="active",
        last_error=None,
        last_error_at=None,
        created_at=created_at,
    )


def _told(scope: Scope, mission: Mission, action: MissionEventWriter, old: Row, new: Row) -> Change:
    return change(scope, mission, action, old.id, REASON, changes(old, new), came_from=old.status, to=new.status)


def changes(old: Any, new: Any) -> dict[str, Any]:
    """The columns of a row that differ, as they are after."""
    return {name: value for name, value in new._asdict().items() if getattr(old, name) != value}
