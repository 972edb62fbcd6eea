"""Lists the changes between two mission configurations, one line each. Works on the JSON of `MissionConfig.as_json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from punchlist.kernel.text import excerpt

Json = Mapping[str, Any]
_ARROW = "→"


def creation_lines(config: Json) -> list[str]:
    """The lines for a new mission."""
    lines = [f"+ mission {config['slug']} ({excerpt(config['name'])})"]
    for pillar in config["pillars"]:
        lines.append(f"+ pillar {pillar['slug']}")
        lines += [f"+ metric {metric['slug']}" for metric in pillar["metrics"]]
        lines += [_strategy_line("+", pillar, strategy) for strategy in pillar["strategies"]]
    lines += [f"+ template {template['slug']}" for template in config["templates"]]
    lines += [f"+ check {name}" for name in config["checks"]]
    return lines


def change_lines(old: Json, new: Json) -> list[str]:
    """The lines for an existing mission; empty when both configurations are equal."""
    old_templates, new_templates = _by_slug(old["templates"]), _by_slug(new["templates"])
    return [
        *_field_changes("", _name_and_description(old), _name_and_description(new)),
        *_field_changes("todo.", old["todo"], new["todo"]),
        *_field_changes("cadence.", old["cadence"], new["cadence"]),
        *_field_changes("limits.", old.get("limits", {}), new["limits"]),
        *_pillar_changes(_by_slug(old["pillars"]), _by_slug(new["pillars"])),
        *_metric_changes(old, new),
        *_item_changes("template", old_templates, new_templates),
        *_order_change("templates", list(old_templates), list(new_templates)),
        *_item_changes("check", old["checks"], new["checks"]),
    ]


def _pillar_changes(old: dict[str, Json], new: dict[str, Json]) -> Iterator[str]:
    for slug, pillar in new.items():
        if slug in old:
            before, after = _name_and_description(old[slug]), _name_and_description(pillar)
            yield from _field_changes(f"pillar {slug}.", before, after)
            yield from _strategy_changes(old[slug], pillar)
        else:
            yield f"+ pillar {slug}"
            yield from (_strategy_line("+", pillar, strategy) for strategy in pillar["strategies"])
    yield from (f"- pillar {slug}" for slug in old if slug not in new)
    yield from _order_change("pillars", list(old), list(new))


def _strategy_changes(old: Json, new: Json) -> Iterator[str]:
    if old["strategies"] == new["strategies"]:
        return
    before, after = ({strategy["description"]: strategy for strategy in pillar["strategies"]} for pillar in (old, new))
    lines = []
    for description, strategy in after.items():
        was = before.get(description)
        if was is None:
            lines.append(_strategy_line("+", new, strategy))
        elif was["status"] != strategy["status"]:
            status = f"{was['status']} {_ARROW} {strategy['status']}"
            lines.append(f"~ strategy of {new['slug']}, {_shown(description)}: {status}")
    lines += [_strategy_line("-", new, before[description]) for description in before if description not in after]
    yield from lines or [f"~ strategies of {new['slug']}: in another order"]


def _strategy_line(sign: str, pillar: Json, strategy: Json) -> str:
    return f"{sign} strategy of {pillar['slug']}: {_shown(strategy['description'])} ({strategy['status']})"


def _metric_changes(old: Json, new: Json) -> Iterator[str]:
    """Compared by slug across the whole mission: a metric keeps its readings when it moves to another pillar."""
    before, after = (
        {
            metric["slug"]: {"pillar": pillar["slug"], **metric}
            for pillar in config["pillars"]
            for metric in pillar["metrics"]
        }
        for config in (old, new)
    )
    yield from _item_changes("metric", before, after)
    old_pillars = _by_slug(old["pillars"])
    for pillar in new["pillars"]:
        if was := old_pillars.get(pillar["slug"]):
            old_order, new_order = list(_by_slug(was["metrics"])), list(_by_slug(pillar["metrics"]))
            yield from _order_change(f"metrics of {pillar['slug']}", old_order, new_order)


def _by_slug(items: Sequence[Json]) -> dict[str, Json]:
    return {item["slug"]: item for item in items}


def _name_and_description(config: Json) -> Json:
    return {"name": config["name"], "description": config["description"]}


def _item_changes(what: str, old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[str]:
    for slug, item in new.items():
        if slug in old:
            yield from _field_changes(f"{what} {slug}.", old[slug], item)
        else:
            yield f"+ {what} {slug}"
    yield from (f"- {what} {slug}" for slug in old if slug not in new)


def _field_changes(prefix: str, old: Json, new: Json) -> Iterator[str]:
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield f"~ {prefix}{key}: {_shown(old.get(key))} {_ARROW} {_shown(new.get(key))}"


def _order_change(what: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Compares only the items that both lists contain."""
    before, after = [slug for slug in old if slug in new], [slug for slug in new if slug in old]
    if before != after:
        yield f"~ {what}: now in the order {', '.join(after)}"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return f"“{excerpt(value)}”" if value else "nothing"
    return excerpt(json.dumps(value, ensure_ascii=False), 80)
