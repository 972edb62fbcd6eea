"""Brings the rows of a mission in line with its file: pillars with their chats, strategies and metrics.

The caller appends the returned events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Change, canonical_json
from punchlist.kernel.ids import new_id
from punchlist.missions import chats
from punchlist.missions import repository as mission_repository
from punchlist.missions.changes import MissionAction, MissionWrite
from punchlist.missions.model import ChatChannel, Metric, Pillar, Strategy

if TYPE_CHECKING:
    from punchlist.missions.config.model import MetricConfig, MissionConfig, PillarConfig

REASON: Final = "mission apply"


def apply_config(
    write: MissionWrite, conversations: Conversations, config: MissionConfig, previous: dict[str, Any] | None = None
) -> list[Change]:
    """Create, update and archive rows as the file demands. `previous` is the configuration of the file before."""
    tx, mission = write.tx, write.mission
    existing = {pillar.slug: pillar for pillar in mission_repository.pillars_of(tx, mission.id)}
    events: list[Change] = []
    wanted: dict[str, Pillar] = {}
    for position, pillar_config in enumerate(config.pillars):
        pillar = existing.get(pillar_config.slug)
        if pillar is None:
            pillar = _add_pillar(write, conversations, pillar_config, position)
            events.append(write.event(MissionAction.ADD_PILLAR, pillar.id, REASON, pillar._asdict(), to="active"))
        wanted[pillar.slug] = pillar._replace(
            name=pillar_config.name, description=pillar_config.description, position=position, status="active"
        )
    removed = {slug: pillar._replace(status="archived") for slug, pillar in existing.items() if slug not in wanted}
    for slug, pillar in (wanted | removed).items():
        if slug in existing and existing[slug] != pillar:
            mission_repository.update_pillar(tx, pillar)
            events.append(_changed(write, MissionAction.CHANGE_PILLAR, existing[slug], pillar))
    events += _set_strategies(write, config, previous, wanted, removed.values())
    events += _set_metrics(write, config, wanted)
    return events


def _add_pillar(write: MissionWrite, conversations: Conversations, config: PillarConfig, position: int) -> Pillar:
    id, tx, mission = new_id(), write.tx, write.mission
    chat, todo_chat = (
        chats.create_chat(
            tx,
            conversations,
            write.scope,
            chats.chat_id(mission.slug, config.slug, todos=channel is ChatChannel.PILLAR_TODO),
            title,
            chats.chat_metadata(channel, mission.id, mission.slug, id, config.slug),
        )
        for channel, title in ((ChatChannel.PILLAR, config.name), (ChatChannel.PILLAR_TODO, f"[TODOs] {config.name}"))
    )
    pillar = Pillar(
        id=id,
        mission_id=mission.id,
        slug=config.slug,
        name=config.name,
        description=config.description,
        position=position,
        status="active",
        conversation_id=chat.id,
        todo_conversation_id=todo_chat.id,
        created_at=tx.now(),
    )
    mission_repository.insert_pillar(tx, pillar)
    return pillar


def _set_strategies(
    write: MissionWrite,
    config: MissionConfig,
    previous: dict[str, Any] | None,
    pillars: dict[str, Pillar],
    removed: Iterable[Pillar],
) -> list[Change]:
    """Replaces all strategies of a pillar when they differ; removed pillars lose theirs."""
    tx, mission = write.tx, write.mission
    existing = mission_repository.strategies_of(tx, mission.id)
    before = {
        pillar["slug"]: {each["description"]: each["status"] for each in pillar["strategies"]}
        for pillar in (previous or {}).get("pillars", ())
    }
    rows: dict[str, dict[str, str]] = {pillar.id: {} for pillar in pillars.values()}
    for strategy in existing:
        rows.setdefault(strategy.pillar_id, {})[strategy.description] = strategy.status
    wanted: dict[str, list[tuple[str, str]]] = {pillar.id: [] for pillar in removed}
    for pillar in config.pillars:
        stated = {strategy.description: strategy.status for strategy in pillar.strategies}
        id = pillars[pillar.slug].id
        wanted[id] = merge_strategies(before.get(pillar.slug, {}), stated, rows[id])
    events = []
    for pillar_id, pairs in wanted.items():
        if pairs == [(each.description, each.status) for each in existing if each.pillar_id == pillar_id]:
            continue
        strategies = [
            Strategy(new_id(), mission.id, pillar_id, position, description, status)
            for position, (description, status) in enumerate(pairs)
        ]
        mission_repository.replace_strategies(tx, pillar_id, strategies)
        data = {"strategies": [strategy._asdict() for strategy in strategies]}
        events.append(write.event(MissionAction.SET_STRATEGIES, pillar_id, REASON, data))
    return events


def merge_strategies(
    before: Mapping[str, str], stated: Mapping[str, str], rows: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The strategies of a pillar, each a description with its status, after a new version of the file.

    `before` and `stated` are those of the old and the new file, `rows` the current ones. What the file does not change
    stays as the Lead left it: strategies it added, and the status of those it retired.
    """
    merged = {
        description: rows.get(description, status) if before.get(description) == status else status
        for description, status in stated.items()
    }
    added = {each: status for each, status in rows.items() if each not in stated and each not in before}
    return list({**merged, **added}.items())


def _set_metrics(write: MissionWrite, config: MissionConfig, pillars: dict[str, Pillar]) -> list[Change]:
    tx, mission = write.tx, write.mission
    existing = {metric.slug: metric for metric in mission_repository.metrics_of(tx, mission.id)}
    wanted = {
        metric.slug: (metric, pillars[pillar.slug].id, position)
        for pillar in config.pillars
        for position, metric in enumerate(pillar.metrics)
    }
    events = []
    for slug, (metric_config, pillar_id, position) in wanted.items():
        if slug not in existing:
            metric = _metric(new_id(), mission.id, pillar_id, position, metric_config, tx.now())
            mission_repository.insert_metric(tx, metric)
            events.append(write.event(MissionAction.ADD_METRIC, metric.id, REASON, metric._asdict(), to="active"))
    for slug, old in existing.items():
        if slug in wanted:
            metric_config, pillar_id, position = wanted[slug]
            new = _metric(old.id, mission.id, pillar_id, position, metric_config, old.created_at)
            new = new._replace(last_error=old.last_error, last_error_at=old.last_error_at)
        else:
            new = old._replace(status="archived")
        if new != old:
            mission_repository.update_metric(tx, new)
            events.append(_changed(write, MissionAction.CHANGE_METRIC, old, new))
    return events


def _metric(id: str, mission_id: str, pillar_id: str, position: int, config: MetricConfig, created_at: str) -> Metric:
    return Metric(
        id=id,
        mission_id=mission_id,
        pillar_id=pillar_id,
        slug=config.slug,
        name=config.name,
        unit=config.unit,
        target=float(config.target),
        warning=None if config.warning is None else float(config.warning),
        direction=config.direction,
        collector=canonical_json(dict(config.collector)),
        stale_after_hours=float(config.stale_after_hours),
        position=position,
        status="active",
        last_error=None,
        last_error_at=None,
        created_at=created_at,
    )


def _changed(write: MissionWrite, action: MissionAction, old: Pillar | Metric, new: Pillar | Metric) -> Change:
    return write.event(action, old.id, REASON, changed_columns(old, new), from_status=old.status, to=new.status)


def changed_columns(old: Any, new: Any) -> dict[str, Any]:
    """The new values of the columns that differ between two rows."""
    return {name: value for name, value in new._asdict().items() if getattr(old, name) != value}
