"""What changes in a mission when a file is applied, line by line for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from punchlist.kernel.text import excerpt
from punchlist.missions.config.json import cadence_json, config_json, metric_json, policy_json
from punchlist.missions.config.model import MissionConfig, PillarConfig

_ARROW = "→"


def introduced(config: MissionConfig) -> list[str]:
    """The lines for a mission that is new."""
    lines = [f"+ mission {config.slug} ({excerpt(config.name)})"]
    for pillar in config.pillars:
        lines += _pillar_added(pillar)
    lines += [f"+ template {template.slug}" for template in config.templates]
    lines += [f"+ check {name}" for name in config.checks]
    return lines


def differences(old: MissionConfig, new: MissionConfig) -> list[str]:
    """The lines for one that is there; none when both say the same."""
    return [
        *_fields("", *({"name": one.name, "description": one.description} for one in (old, new))),
        *_fields("todo.", policy_json(old.todo), policy_json(new.todo)),
        *_fields("cadence.", cadence_json(old.cadence), cadence_json(new.cadence)),
        *_pillars(old, new),
        *_metrics(old, new),
        *_named("template", _templates(old), _templates(new)),
        *_order("templates", list(_templates(old)), list(_templates(new))),
        *_named("check", old.checks, new.checks),
    ]


def _pillars(old: MissionConfig, new: MissionConfig) -> Iterator[str]:
    before, after = ({pillar.slug: pillar for pillar in config.pillars} for config in (old, new))
    for slug, pillar in after.items():
        if slug not in before:
            yield from _pillar_added(pillar, metrics=False)
            continue
        was = before[slug]
        yield from _fields(
            f"pillar {slug}.", *({"name": one.name, "description": one.description} for one in (was, pillar))
        )
        yield from _strategies(was, pillar)
    yield from (f"- pillar {slug}" for slug in before if slug not in after)
    yield from _order("pillars", list(before), list(after))


def _pillar_added(pillar: PillarConfig, *, metrics: bool = True) -> Iterator[str]:
    yield f"+ pillar {pillar.slug}"
    if metrics:
        yield from (f"+ metric {metric.slug}" for metric in pillar.metrics)
    yield from (_strategy("+", pillar.slug, one.description, one.status) for one in pillar.strategies)


def _strategies(old: PillarConfig, new: PillarConfig) -> Iterator[str]:
    before = {one.description: one.status for one in old.strategies}
    after = {one.description: one.status for one in new.strategies}
    if old.strategies == new.strategies:
        return
    said = False
    for description, status in after.items():
        if description not in before:
            yield _strategy("+", new.slug, description, status)
        elif before[description] != status:
            yield f"~ strategy of {new.slug}, {_shown(description)}: {before[description]} {_ARROW} {status}"
        else:
            continue
        said = True
    for description, status in before.items():
        if description not in after:
            yield _strategy("-", new.slug, description, status)
            said = True
    if not said:
        yield f"~ strategies of {new.slug}: in another order"


def _strategy(sign: str, pillar: str, description: str, status: str) -> str:
    return f"{sign} strategy of {pillar}: {_shown(description)} ({status})"


def _metrics(old: MissionConfig, new: MissionConfig) -> Iterator[str]:
    """By slug over the whole mission: a metric keeps its readings when it goes to another pillar."""
    before, after = (
        {
            metric.slug: {"pillar": pillar.slug, **metric_json(metric)}
            for pillar in config.pillars
            for metric in pillar.metrics
        }
        for config in (old, new)
    )
    yield from _named("metric", before, after)
    kept = {pillar.slug: pillar for pillar in old.pillars}
    for pillar in new.pillars:
        if pillar.slug in kept:
            names = [[one.slug for one in each.metrics] for each in (kept[pillar.slug], pillar)]
            yield from _order(f"metrics of {pillar.slug}", *names)


def _templates(config: MissionConfig) -> dict[str, Any]:
    return {template["slug"]: template for template in config_json(config)["templates"]}


def _named(what: str, old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for slug, said in new.items():
        if slug in old:
            yield from _fields(f"{what} {slug}.", old[slug], said)
        else:
            yield f"+ {what} {slug}"
    yield from (f"- {what} {slug}" for slug in old if slug not in new)


def _fields(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield f"~ {prefix}{key}: {_shown(old.get(key))} {_ARROW} {_shown(new.get(key))}"


def _order(what: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Only of those that stay: to come and to go is said elsewhere."""
    kept = [[slug for slug in each if slug in old and slug in new] for each in (old, new)]
    if kept[0] != kept[1]:
        yield f"~ {what}: now in the order {', '.join(kept[1])}"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return f"“{excerpt(value)}”" if value else "nothing"
    return excerpt(json.dumps(value, ensure_ascii=False), 80)
